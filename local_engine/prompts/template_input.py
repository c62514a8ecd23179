"""The input of chat templates: messages, tools and variables, converted from a chat request."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path
from dragoman.local_engine.text.tool_call_formats import ToolCallFormat

__all__ = ["RESERVED_VARIABLES", "convert_messages", "convert_tools", "read_template_variables"]

RESERVED_VARIABLES = frozenset(
    [
        "self",
        "messages",
        "tools",
        "documents",
        "add_generation_prompt",
        "bos_token",
        "eos_token",
        "pad_token",
        "unk_token",
        "raise_exception",
        "strftime_now",
        "range",
        "namespace",
        "dict",
        "joiner",
        "cycler",
    ]
)


def convert_messages(request: JsonObject, template: str, tool_format: ToolCallFormat | None) -> list[JsonObject]:
    """Convert messages: text to strings, call arguments to objects, deprecated roles to current ones. Raises Fault."""
    return [
        _convert_message(message, ("messages", index), template, tool_format)
        for index, message in enumerate(request["messages"])
    ]


def _convert_message(message: JsonObject, path: Path, template: str, tool_format: ToolCallFormat | None) -> JsonObject:
    role = message["role"]
    if role == "developer" and "developer" not in template:
        role = "system"
    found: JsonObject = {"role": "tool" if role == "function" else role}
    found["content"] = _join_text(message.get("content"), (*path, "content")) or message.get("refusal") or ""
    for key in ("name", "reasoning_content"):
        if message.get(key):
            found[key] = message[key]
    if message.get("tool_call_id"):
        found["tool_call_id"] = _convert_id(message["tool_call_id"], tool_format)
    calls = message.get("tool_calls") or []
    legacy_call = message.get("function_call")
    if legacy_call:
        calls = [{"id": "call_0", "type": "function", "function": legacy_call}]
    if calls:
        found["tool_calls"] = [
            _convert_call(call, (*path, "tool_calls", index), tool_format) for index, call in enumerate(calls)
        ]
    return found


def _join_text(content: Any, path: Path) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    texts = []
    for index, part in enumerate(content):
        if part["type"] not in ("text", "refusal"):
            message = f"the model accepts text only; {part['type']} is not supported"
            raise Fault("unsupported_parameter", message, (*path, index, "type"), part["type"])
        texts.append(part[part["type"]])
    return "\n".join(texts)


def _convert_call(call: JsonObject, path: Path, tool_format: ToolCallFormat | None) -> JsonObject:
    if "function" not in call:
        raise Fault("unsupported_parameter", "custom tools are not supported", (*path, "type"), call.get("type"))
    function = call["function"]
    arguments = function["arguments"]
    try:
        value = json.loads(arguments or "{}")
    except ValueError:
        value = None
    function = {"name": function["name"], "arguments": value if isinstance(value, dict) else arguments}
    return {"id": _convert_id(call["id"], tool_format), "type": "function", "function": function}


def _convert_id(name: str, tool_format: ToolCallFormat | None) -> str:
    """Convert an id: if the template requires a length, derive one of that length from the given id."""
    length = tool_format.id_length if tool_format else 0
    if not length or (len(name) == length and name.isalnum()):
        return name
    return hashlib.sha256(name.encode()).hexdigest()[:length]


def convert_tools(tools: list[JsonObject], selected: frozenset[str]) -> list[JsonObject]:
    """Convert the tools that may be called to the form that templates expect."""
    found = []
    for tool in tools:
        function = {key: value for key, value in tool["function"].items() if value is not None and key != "strict"}
        function.setdefault("description", "")
        function.setdefault("parameters", {"type": "object", "properties": {}})
        if function["name"] in selected:
            found.append({"type": "function", "function": function})
    return found


def read_template_variables(request: JsonObject) -> JsonObject:
    """Read the other variables of the template: `chat_template_kwargs`, and whether to reason. Raises Fault."""
    found: JsonObject = {}
    effort, thinking = request.get("reasoning_effort"), request.get("thinking")
    if effort is not None:
        found |= {"reasoning_effort": effort, "enable_thinking": effort != "none"}
    if thinking is not None:
        found["enable_thinking"] = thinking["type"] == "enabled"
    more = request.get("chat_template_kwargs") or {}
    for key in more:
        if key in RESERVED_VARIABLES:
            raise Fault("invalid_request", f"{key} cannot be set by a request", ("chat_template_kwargs", key))
    return found | more
