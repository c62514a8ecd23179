"""A chat request's messages and tools as chat templates read them, and what they say of the model's thinking."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path

from .toolforms import Form

__all__ = ["RESERVED", "messages_for", "tools_for", "variables"]

RESERVED = frozenset(
    [
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


def messages_for(request: JsonObject, template: str, form: Form | None) -> list[JsonObject]:
    """The messages with text as strings, calls' arguments as objects, older roles as today's. Raises Fault."""
    return [_message(message, ("messages", place), template, form) for place, message in enumerate(request["messages"])]


def _message(message: JsonObject, path: Path, template: str, form: Form | None) -> JsonObject:
    role = message["role"]
    if role == "developer" and "developer" not in template:
        role = "system"
    found: JsonObject = {"role": "tool" if role == "function" else role}
    found["content"] = _text(message.get("content"), (*path, "content")) or message.get("refusal") or ""
    for key in ("name", "reasoning_content"):
        if message.get(key):
            found[key] = message[key]
    if message.get("tool_call_id"):
        found["tool_call_id"] = _id(message["tool_call_id"], form)
    calls = message.get("tool_calls") or []
    old = message.get("function_call")
    if old:
        calls = [{"id": "call_0", "type": "function", "function": old}]
    if calls:
        found["tool_calls"] = [_call(call, (*path, "tool_calls", at), form) for at, call in enumerate(calls)]
    return found


def _text(content: Any, path: Path) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    texts = []
    for place, part in enumerate(content):
        if part["type"] not in ("text", "refusal"):
            message = f"the model reads text only; {part['type']} is not served"
            raise Fault("unsupported_parameter", message, (*path, place, "type"), part["type"])
        texts.append(part[part["type"]])
    return "\n".join(texts)


def _call(call: JsonObject, path: Path, form: Form | None) -> JsonObject:
    if "function" not in call:
        raise Fault("unsupported_parameter", "custom tools are not served", (*path, "type"), call.get("type"))
    function = call["function"]
    arguments = function["arguments"]
    try:
        value = json.loads(arguments or "{}")
    except ValueError:
        value = None
    function = {"name": function["name"], "arguments": value if isinstance(value, dict) else arguments}
    return {"id": _id(call["id"], form), "type": "function", "function": function}


def _id(name: str, form: Form | None) -> str:
    """An id that the template takes: where it wants a length, one made from the given id."""
    length = form.id_length if form else 0
    if not length or (len(name) == length and name.isalnum()):
        return name
    return hashlib.sha256(name.encode()).hexdigest()[:length]


def tools_for(tools: list[JsonObject], chosen: frozenset[str]) -> list[JsonObject]:
    """The tools that may be called, as templates list them."""
    found = []
    for tool in tools:
        function = {key: value for key, value in tool["function"].items() if value is not None and key != "strict"}
        function.setdefault("description", "")
        function.setdefault("parameters", {"type": "object", "properties": {}})
        if function["name"] in chosen:
            found.append({"type": "function", "function": function})
    return found


def variables(request: JsonObject) -> dict[str, Any]:
    """What the request tells the template besides: `chat_template_kwargs`, and whether to think. Raises Fault."""
    found: dict[str, Any] = {}
    effort, thinking = request.get("reasoning_effort"), request.get("thinking")
    if effort is not None:
        found |= {"reasoning_effort": effort, "enable_thinking": effort != "none"}
    if thinking is not None:
        found["enable_thinking"] = thinking["type"] == "enabled"
    more = request.get("chat_template_kwargs") or {}
    for key in more:
        if key in RESERVED:
            raise Fault("invalid_request", f"{key} is not the request's to set", ("chat_template_kwargs", key))
    return found | more
