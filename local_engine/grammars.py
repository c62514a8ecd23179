"""Grammars for llguidance: JSON of a schema, and tool calls in a model's own form.

JSON is compact, with at most one space after a separator: small models that may write white space write nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dragoman.adapters.call import JsonObject

from .reasoning import Marks
from .toolforms import Form

__all__ = ["Function", "Mark", "call_after_marker", "json_of", "with_reasoning", "with_tools"]

Mark: TypeAlias = Callable[[str], str]
"""How a grammar writes a marker: a special token by its id, any other text quoted."""

MOST_CALLS = 8
ANY_TEXT = r"/(.|\n)*/"
SPACE = r"/[ \n]{0,2}/"
NO_ARGUMENTS: JsonObject = {"type": "object", "properties": {}, "additionalProperties": False}
COMBINING = {"additionalProperties", "unevaluatedProperties", "patternProperties", "allOf", "anyOf", "oneOf", "$ref"}


@dataclass(frozen=True, slots=True)
class Function:
    """A tool of the request: its parameters as a JSON Schema, whose every keyword counts if `strict`."""

    name: str
    parameters: JsonObject
    strict: bool = False


def json_of(schema: JsonObject, *, strict: bool) -> str:
    """The body of a rule: JSON that the schema allows. Not `strict` lets keywords go that cannot be enforced."""
    options = {
        "whitespace_flexible": False,
        "item_separator": ", ?",
        "key_separator": ": ?",
        "lenient": not strict,
    }
    return f"%json {json.dumps({**schema, 'x-guidance': options})}"


def with_tools(
    form: Form, functions: Sequence[Function], mark: Mark, *, parallel: bool, otherwise: str | None = None
) -> str:
    """Rules whose first is `body`: calls of these functions; or what `otherwise` says, where that is given."""
    body = "body: calls" if otherwise is None else f"body: calls | other\nother: {otherwise}"
    opening = f"{mark(form.open)} " if form.open and not form.bare else ""
    return "\n".join([body, f"calls: {opening}{_calls(form, mark, parallel)}", *_functions(form, functions)])


def call_after_marker(form: Form, functions: Sequence[Function], mark: Mark, *, parallel: bool = True) -> str:
    """A grammar of what follows the opening marker, up to the closing one."""
    calls = _after_marker(form, mark, parallel=parallel and (not form.close or form.payload == "python"))
    if form.payload == "python" and form.close:
        calls += f" {mark(form.close)}"
    return "\n".join([f"start: {SPACE} {calls}", *_functions(form, functions)])


def with_reasoning(rules: str, marks: Marks | None, mark: Mark, *, opened: bool) -> str:
    """A grammar of `body`, after reasoning where the model may reason: `opened` by its prompt, or by itself."""
    if marks is None:
        return f"start: body\n{rules}"
    closing = mark(marks.close)
    thought = f"{ANY_TEXT} {closing}" if closing.startswith("<[") else ANY_TEXT
    suffix = "" if closing.startswith("<[") else f"[suffix={closing}]"
    start = f"thought {SPACE} body" if opened else f"body | {mark(marks.open)} thought {SPACE} body"
    return f"start: {start}\nthought{suffix}: {thought}\n{rules}"


def _calls(form: Form, mark: Mark, parallel: bool) -> str:
    """All calls of a reply, after the first opening marker."""
    once = _after_marker(form, mark, parallel=parallel)
    if not form.close or form.payload == "python" or not parallel:
        return once
    return f'{once} ("\\n" {mark(form.open)} {once}){{0,{MOST_CALLS - 1}}}'


def _after_marker(form: Form, mark: Mark, *, parallel: bool) -> str:
    if form.payload == "python":
        again = f'(", " call){{0,{MOST_CALLS - 1}}}' if parallel else ""
        return f'"[" call {again} "]"'
    again = ""
    if parallel and form.joint:
        again = f"({_quoted(form.joint)} call){{0,{MOST_CALLS - 1}}}"
    elif parallel and form.payload == "named":
        again = f"({mark(form.open)} call){{0,{MOST_CALLS - 1}}}"
    closing = mark(form.close) if form.close else ""
    return " ".join(part for part in (_quoted(form.lead), "call", again, _quoted(form.tail), closing) if part)


def _functions(form: Form, functions: Sequence[Function]) -> list[str]:
    lines = ["call: " + " | ".join(f"call{place}" for place in range(len(functions)))]
    for place, function in enumerate(functions):
        lines += _function(form, function, place)
    return lines


def _function(form: Form, function: Function, place: int) -> list[str]:
    if form.payload == "python":
        return _python(function, place)
    schema = _closed(function.parameters)
    name = json.dumps(function.name, ensure_ascii=False)
    before = f'{{"name": {name}, "{form.arguments}": ' if form.payload == "objects" else f"{function.name}[ARGS]"
    after = _quoted("}") if form.payload == "objects" else ""
    return [
        f"call{place}: {_quoted(before)} args{place} {after}".rstrip(),
        f"args{place}: {json_of(schema, strict=function.strict)}",
    ]


def _python(function: Function, place: int) -> list[str]:
    """Keyword arguments with JSON values: the required ones first, then any of the others."""
    schema = function.parameters
    properties = schema.get("properties") or {}
    required = [name for name in properties if name in schema.get("required", ())]
    names = required + [name for name in properties if name not in required and _is_word(name)]
    shared: JsonObject = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    rules, parts = [], []
    for at, name in enumerate(names):
        value = properties[name] if isinstance(properties[name], dict) else {}
        rules.append(f"arg{place}x{at}: {json_of({**value, **shared}, strict=function.strict)}")
        parts.append(f"{_quoted(name + '=')} arg{place}x{at}")
    words = _listed(parts[: len(required)], parts[len(required) :])
    return [f"call{place}: {_quoted(function.name + '(')} {words} {_quoted(')')}", *rules]


def _listed(required: Sequence[str], optional: Sequence[str]) -> str:
    """All required parts, then any of the optional ones; without required ones a beginning of the optional ones."""
    if required:
        return ' ", " '.join(required) + "".join(f' (", " {part})?' for part in optional)
    listed = ""
    for at, part in reversed(list(enumerate(optional))):
        comma = '", " ' if at else ""
        listed = f"({comma}{part} {listed})?"
    return listed


def _closed(schema: JsonObject) -> JsonObject:
    """Parameters without further properties, where the schema lists some and says nothing of others."""
    if not schema:
        return NO_ARGUMENTS
    if schema.get("properties") is not None and not COMBINING & schema.keys():
        return {**schema, "additionalProperties": False}
    return schema


def _is_word(name: str) -> bool:
    return re.fullmatch(r"[A-Za-z_]\w*", name) is not None


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False) if text else ""
