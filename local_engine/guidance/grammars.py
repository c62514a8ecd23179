"""Grammars for llguidance: JSON of a schema, and tool calls in a model's format.

JSON is compact, with at most one space after a separator: a small model that may write white space writes little else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dragoman.adapters.call import JsonObject
from dragoman.local_engine.text.reasoning_parser import ReasoningMarkers
from dragoman.local_engine.text.tool_call_formats import ToolCallFormat

__all__ = [
    "FunctionTool",
    "WriteMarker",
    "write_call_grammar",
    "write_json_rule",
    "write_reasoning_grammar",
    "write_tool_rules",
]

WriteMarker: TypeAlias = Callable[[str], str]
"""Writes a marker in grammar syntax: a special token by its id, other text quoted."""

MAX_CALLS = 8
ANY_TEXT = r"/(.|\n)*/"
SPACE = r"/[ \n]{0,2}/"
NO_ARGUMENTS: JsonObject = {"type": "object", "properties": {}, "additionalProperties": False}
COMBINING_KEYWORDS = {
    "additionalProperties",
    "unevaluatedProperties",
    "patternProperties",
    "allOf",
    "anyOf",
    "oneOf",
    "$ref",
}


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A tool of the request. `parameters` is a JSON Schema; if `strict`, all its keywords must be enforced."""

    name: str
    parameters: JsonObject
    strict: bool = False


def write_json_rule(schema: JsonObject, *, strict: bool) -> str:
    """Write the body of a rule for JSON of a schema. Unless `strict`, keywords that cannot be enforced are ignored."""
    options = {
        "whitespace_flexible": False,
        "item_separator": ", ?",
        "key_separator": ": ?",
        "lenient": not strict,
    }
    return f"%json {json.dumps({**schema, 'x-guidance': options})}"


def write_tool_rules(
    tool_format: ToolCallFormat,
    functions: Sequence[FunctionTool],
    write_marker: WriteMarker,
    *,
    parallel: bool,
    otherwise: str | None = None,
) -> str:
    """Write rules for calls of these functions; the first is `body`. `otherwise` is the rule of an alternative."""
    body = "body: calls" if otherwise is None else f"body: calls | other\nother: {otherwise}"
    opening = f"{write_marker(tool_format.open)} " if tool_format.open and not tool_format.bare else ""
    return "\n".join(
        [
            body,
            f"calls: {opening}{_write_calls(tool_format, write_marker, parallel)}",
            *_write_functions(tool_format, functions),
        ]
    )


def write_call_grammar(
    tool_format: ToolCallFormat, functions: Sequence[FunctionTool], write_marker: WriteMarker, *, parallel: bool = True
) -> str:
    """Write the grammar of the text between the opening and the closing marker."""
    calls = _write_payload(
        tool_format, write_marker, parallel=parallel and (not tool_format.close or tool_format.payload == "python")
    )
    if tool_format.payload == "python" and tool_format.close:
        calls += f" {write_marker(tool_format.close)}"
    return "\n".join([f"start: {SPACE} {calls}", *_write_functions(tool_format, functions)])


def write_reasoning_grammar(
    rules: str, markers: ReasoningMarkers | None, write_marker: WriteMarker, *, opened: bool
) -> str:
    """Write the grammar of `body`, after optional reasoning, or after reasoning that the prompt `opened`."""
    if markers is None:
        return f"start: body\n{rules}"
    closing = write_marker(markers.close)
    thought = f"{ANY_TEXT} {closing}" if closing.startswith("<[") else ANY_TEXT
    suffix = "" if closing.startswith("<[") else f"[suffix={closing}]"
    start = f"thought {SPACE} body" if opened else f"body | {write_marker(markers.open)} thought {SPACE} body"
    return f"start: {start}\nthought{suffix}: {thought}\n{rules}"


def _write_calls(tool_format: ToolCallFormat, write_marker: WriteMarker, parallel: bool) -> str:
    """Write the calls of a reply, without the first opening marker."""
    first = _write_payload(tool_format, write_marker, parallel=parallel)
    if not tool_format.close or tool_format.payload == "python" or not parallel:
        return first
    return f'{first} ("\\n" {write_marker(tool_format.open)} {first}){{0,{MAX_CALLS - 1}}}'


def _write_payload(tool_format: ToolCallFormat, write_marker: WriteMarker, *, parallel: bool) -> str:
    if tool_format.payload == "python":
        more_calls = f'(", " call){{0,{MAX_CALLS - 1}}}' if parallel else ""
        return f'"[" call {more_calls} "]"'
    more_calls = ""
    if parallel and tool_format.joiner:
        more_calls = f"({_quote(tool_format.joiner)} call){{0,{MAX_CALLS - 1}}}"
    elif parallel and tool_format.payload == "named":
        more_calls = f"({write_marker(tool_format.open)} call){{0,{MAX_CALLS - 1}}}"
    closing = write_marker(tool_format.close) if tool_format.close else ""
    return " ".join(
        part for part in (_quote(tool_format.prefix), "call", more_calls, _quote(tool_format.suffix), closing) if part
    )


def _write_functions(tool_format: ToolCallFormat, functions: Sequence[FunctionTool]) -> list[str]:
    lines = ["call: " + " | ".join(f"call{index}" for index in range(len(functions)))]
    for index, function in enumerate(functions):
        lines += _write_function(tool_format, function, index)
    return lines


def _write_function(tool_format: ToolCallFormat, function: FunctionTool, index: int) -> list[str]:
    if tool_format.payload == "python":
        return _write_python_function(function, index)
    schema = _close_schema(function.parameters)
    name = json.dumps(function.name, ensure_ascii=False)
    before = (
        f'{{"name": {name}, "{tool_format.arguments}": '
        if tool_format.payload == "objects"
        else f"{function.name}[ARGS]"
    )
    after = _quote("}") if tool_format.payload == "objects" else ""
    return [
        f"call{index}: {_quote(before)} args{index} {after}".rstrip(),
        f"args{index}: {write_json_rule(schema, strict=function.strict)}",
    ]


def _write_python_function(function: FunctionTool, index: int) -> list[str]:
    """Write a call with keyword arguments and JSON values: the required ones first, then any of the others."""
    schema = function.parameters
    properties = schema.get("properties") or {}
    required = [name for name in properties if name in schema.get("required", ())]
    names = required + [name for name in properties if name not in required and _is_identifier(name)]
    shared: JsonObject = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    rules, parts = [], []
    for position, name in enumerate(names):
        value = properties[name] if isinstance(properties[name], dict) else {}
        rules.append(f"arg{index}x{position}: {write_json_rule({**value, **shared}, strict=function.strict)}")
        parts.append(f"{_quote(name + '=')} arg{index}x{position}")
    words = _list_arguments(parts[: len(required)], parts[len(required) :])
    return [f"call{index}: {_quote(function.name + '(')} {words} {_quote(')')}", *rules]


def _list_arguments(required: Sequence[str], optional: Sequence[str]) -> str:
    """Write all required arguments, then any optional ones; without required ones, a prefix of the optional ones."""
    if required:
        return ' ", " '.join(required) + "".join(f' (", " {part})?' for part in optional)
    arguments = ""
    for position, part in reversed(list(enumerate(optional))):
        comma = '", " ' if position else ""
        arguments = f"({comma}{part} {arguments})?"
    return arguments


def _close_schema(schema: JsonObject) -> JsonObject:
    """Exclude other properties, if the schema lists properties and has no rule for others."""
    if not schema:
        return NO_ARGUMENTS
    if schema.get("properties") is not None and not COMBINING_KEYWORDS & schema.keys():
        return {**schema, "additionalProperties": False}
    return schema


def _is_identifier(name: str) -> bool:
    return re.fullmatch(r"[A-Za-z_]\w*", name) is not None


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False) if text else ""
