"""Tools of Responses that the client runs and that chat lacks: shells and patches. In chat each is a function.

    tool           function in chat    its arguments            call, and the client's result
    shell          shell               the call's `action`      shell_call, shell_call_output
    local_shell    local_shell         the call's `action`      local_shell_call, local_shell_call_output
    apply_patch    apply_patch         the call's `operation`   apply_patch_call, apply_patch_call_output

A shell in a container runs at OpenAI, so it is not among them.

Source: OpenAI Python SDK, tool parameters, and response input item parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import jsonschema_rs
import orjson

from dragoman.adapters.call import JsonObject
from dragoman.adapters.jsontext import read_any

__all__ = [
    "BUILT_IN_CALLS",
    "BUILT_IN_RESULTS",
    "BUILT_IN_TOOLS",
    "BuiltInTool",
    "find_built_in_tool",
    "read_result",
    "runs_at_client",
]

_TEXT, _COUNT = {"type": "string"}, {"type": ["integer", "null"]}
_CONTAINERS = ("container_auto", "container_reference")


class BuiltInTool(NamedTuple):
    """A tool by its type, which is the name of its function in chat too.

    `action` is the key of a call that holds what to do; in chat it is the arguments, by the schema `parameters`.
    `rules` are further keywords of that schema that are checked and not sent. `fixed` are keys that each action has.
    """

    type: str
    prefix: str
    action: str
    description: str
    properties: JsonObject
    required: tuple[str, ...]
    rules: JsonObject = {}  # noqa: RUF012 - never altered
    fixed: JsonObject = {}  # noqa: RUF012 - never altered

    @property
    def call_type(self) -> str:
        """The type of an item with a call."""
        return f"{self.type}_call"

    @property
    def result_type(self) -> str:
        """The type of an item with the result of a call."""
        return f"{self.type}_call_output"

    @property
    def parameters(self) -> JsonObject:
        """The JSON Schema of the arguments in chat."""
        return {"type": "object", "properties": self.properties, "required": [*self.required]}

    def to_function(self) -> JsonObject:
        """The tool as a tool of chat."""
        function = {"name": self.type, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}

    def encode_action(self, item: JsonObject) -> str:
        """The arguments in chat of a call."""
        action = item.get(self.action)
        if isinstance(action, dict):
            action = {key: value for key, value in action.items() if value is not None and key not in self.fixed}
        return orjson.dumps(action).decode()

    def decode_action(self, arguments: str) -> JsonObject | None:
        """What a call does, from its arguments in chat; None if they do not fit."""
        try:
            found = read_any(arguments.encode())
        except ValueError:
            return None
        if not _compile(self.type)(found):
            return None
        return {**self.fixed, **{key: value for key, value in found.items() if value is not None}}


BUILT_IN_TOOLS: Mapping[str, BuiltInTool] = {
    tool.type: tool
    for tool in (
        BuiltInTool(
            "shell",
            "sh",
            "action",
            "Runs shell commands on the user's machine, in order, and returns what they print.",
            {
                "commands": {"type": "array", "items": _TEXT, "minItems": 1},
                "timeout_ms": _COUNT,
                "max_output_length": _COUNT,
            },
            ("commands",),
        ),
        BuiltInTool(
            "local_shell",
            "lsh",
            "action",
            "Runs one program on the user's machine and returns what it prints. `command` is the program followed by "
            'its arguments; use ["bash", "-lc", "..."] for a line of shell.',
            {
                "command": {"type": "array", "items": _TEXT, "minItems": 1},
                "env": {"type": ["object", "null"], "additionalProperties": _TEXT},
                "timeout_ms": _COUNT,
                "user": {"type": ["string", "null"]},
                "working_directory": {"type": ["string", "null"]},
            },
            ("command",),
            fixed={"type": "exec", "env": {}},
        ),
        BuiltInTool(
            "apply_patch",
            "apc",
            "operation",
            "Creates, updates or deletes one file. `path` is relative to the workspace. `diff` is needed to create or "
            "update a file. Each of its lines begins with + if it is added, with - if it is removed, and with a space "
            "if it stays. To update a file, give some lines around each change, and begin each place with a line @@.",
            {"type": {"enum": ["create_file", "update_file", "delete_file"]}, "path": _TEXT, "diff": _TEXT},
            ("type", "path"),
            rules={"if": {"properties": {"type": {"const": "delete_file"}}}, "else": {"required": ["diff"]}},
        ),
    )
}
BUILT_IN_CALLS: Mapping[str, BuiltInTool] = {tool.call_type: tool for tool in BUILT_IN_TOOLS.values()}
BUILT_IN_RESULTS: Mapping[str, BuiltInTool] = {tool.result_type: tool for tool in BUILT_IN_TOOLS.values()}


def find_built_in_tool(tool: JsonObject) -> BuiltInTool | None:
    """The tool that a request offers, if it is one of these and the client runs it."""
    found = BUILT_IN_TOOLS.get(str(tool.get("type")))
    return found if found is not None and runs_at_client(tool) else None


def runs_at_client(one: JsonObject) -> bool:
    """Whether a tool or a call has no container, in which it would run at OpenAI."""
    environment: Any = one.get("environment")
    return not (isinstance(environment, dict) and environment.get("type") in _CONTAINERS)


def read_result(item: JsonObject) -> tuple[Any, str]:
    """The id of the call that a result answers, and the result as text.

    Results of local shells name the call as `id` in OpenAI's reference, as `call_id` in its guide.
    """
    call_id, output = item.get("call_id") or item.get("id"), item.get("output")
    if isinstance(output, str) and item.get("status") != "failed":
        return call_id, output
    said = output if isinstance(output, list) else {"status": item.get("status"), "output": output}
    return call_id, orjson.dumps(said).decode()


@cache
def _compile(name: str) -> Any:
    tool = BUILT_IN_TOOLS[name]
    return jsonschema_rs.Draft202012Validator({**tool.parameters, **tool.rules}).is_valid
