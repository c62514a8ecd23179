"""JSON Schemas that clients send, in tools and response formats: untrusted, never compiled, only limited."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any

import orjson

from .call import JsonObject
from .faults import Fault
from .jsontext import may_be_deeper
from .paths import Path, format_path, lookup
from .validation import Validator, load_validator, walk_levels

__all__ = ["check_messages_schemas", "check_responses_schemas", "check_user_schemas"]

_PARAMETERS, _FORMAT = "invalid_function_parameters", "invalid_json_schema"


def check_user_schemas(body: JsonObject) -> None:
    """Check the JSON Schemas of a chat request: their size, that references stay inside, that patterns are short.

    Raises Fault `invalid_request` with the path of the schema; the message has the place inside it.
    """
    if _may_exceed_limits(body.get("tools")):
        for i, tool in _list_objects(body, "tools"):
            _check(tool, ("tools", i), ("function", "parameters"), _PARAMETERS)
    if "functions" in body:
        for i, function in _list_objects(body, "functions"):
            _check(function, ("functions", i), ("parameters",), _PARAMETERS)
    if "response_format" in body:
        _check(body, (), ("response_format", "json_schema", "schema"), _FORMAT)


def check_responses_schemas(body: JsonObject) -> None:
    """Check the JSON Schemas of a Responses request, as `check_user_schemas` does. Raises Fault.

    Its tools and formats are flat, or nested as in chat; namespaces hold tools, and the input may add some.
    """
    if _may_exceed_limits(body.get("tools")):
        _check_tools(body, ())
    given = body.get("input")
    for i, item in enumerate(given) if type(given) is list else ():
        if type(item) is dict and "type" in item and item["type"] == "additional_tools":
            _check_tools(item, ("input", i))
    if "text" in body:
        _check(body, (), ("text", "format", "schema"), _FORMAT)
        _check(body, (), ("text", "format", "json_schema", "schema"), _FORMAT)


def check_messages_schemas(body: JsonObject) -> None:
    """Check the JSON Schemas of a Messages request, as `check_user_schemas` does. Raises Fault."""
    if _may_exceed_limits(body.get("tools")):
        for i, tool in _list_objects(body, "tools"):
            _check(tool, ("tools", i), ("input_schema",), _PARAMETERS)
            for k, inner in _list_objects(tool, "tools"):
                _check(inner, ("tools", i, "tools", k), ("input_schema",), _PARAMETERS)
    if "output_config" in body or "output_format" in body:
        _check(body, (), ("output_config", "format", "schema"), _FORMAT)
        _check(body, (), ("output_format", "schema"), _FORMAT)


def _check_tools(holder: JsonObject, above: Path) -> None:
    for i, tool in _list_objects(holder, "tools"):
        path: Path = (*above, "tools", i)
        _check(tool, path, ("parameters",), _PARAMETERS)
        _check(tool, path, ("function", "parameters"), _PARAMETERS)
        for k, inner in _list_objects(tool, "tools"):
            _check(inner, (*path, "tools", k), ("parameters",), _PARAMETERS)


def _list_objects(holder: JsonObject, name: str) -> Iterable[tuple[int, JsonObject]]:
    found = holder.get(name)
    return [(i, one) for i, one in enumerate(found) if isinstance(one, dict)] if isinstance(found, list) else ()


def _check(holder: JsonObject, above: Path, below: Path, code: str) -> None:
    schema = lookup(holder, below)
    if not isinstance(schema, dict | list) or not schema:
        return
    rules = load_validator("hub/chat.user_schema")
    why = _find_exceeded_limit(schema, rules)
    path = above + below
    if why is not None:
        raise Fault("invalid_request", f"{format_path(path)} is not accepted: the schema {why}", path, code=code)
    if rules.accepts(schema) or (found := rules.first_violation(schema)) is None:
        return
    problem = found.message.removeprefix(format_path(found.path)).strip()
    text = f"{format_path(path)} is not accepted: {_pointer(found.path)} {problem}"
    raise Fault("invalid_request", text, path, found.value, code=code)


def _may_exceed_limits(tools: Any) -> bool:
    """False if no schema in these tools can break a rule: together they are small, and no key has a rule."""
    if not tools:
        return False
    try:
        text = orjson.dumps(tools)
    except TypeError:
        return True  # nested too deeply
    nodes = _limits(load_validator("hub/chat.user_schema"))[1]
    return len(text) > nodes or _may_break_rule(text)


@lru_cache(maxsize=32)
def _may_break_rule(text: bytes) -> bool:
    """As `_may_exceed_limits`, for short JSON text. The requests of one client mostly have the same tools."""
    _, _, depth, keys = _limits(load_validator("hub/chat.user_schema"))
    return may_be_deeper(text, depth) or any(key in text for key in keys)


def _find_exceeded_limit(schema: Any, rules: Validator) -> str | None:
    """Describe the limit of the schema file that is exceeded; None if none is. A small schema is not walked."""
    size, nodes, depth, _ = _limits(rules)
    try:
        text = orjson.dumps(schema)
    except TypeError:
        return f"is nested too deeply; the limit is {depth} levels"
    if len(text) > size:
        return f"has {len(text)} bytes; the limit is {size}"
    if len(text) <= nodes and not may_be_deeper(text, depth):
        return None
    return _walk(schema, nodes, depth)


@cache
def _limits(rules: Validator) -> tuple[int, int, int, list[bytes]]:
    """The largest size in bytes, number of values and depth, and the keys that have rules, as JSON."""
    schema = rules.schema
    keys = [orjson.dumps(key) for key in schema["$defs"]["value"]["properties"]]
    return schema["x-max-bytes"], schema["x-max-nodes"], schema["x-max-depth"], keys


def _walk(schema: Any, nodes: int, depth: int) -> str | None:
    seen = 0
    for number, level in enumerate(walk_levels(schema), 1):
        seen += len(level)
        if seen > nodes:
            return f"has more than {nodes} values"
        if number > depth and any(isinstance(one, dict | list) for one in level):
            return f"is nested too deeply; the limit is {depth} levels"
    return None


def _pointer(path: Path) -> str:
    """A JSON pointer as a reference writes it, `#/properties/a`."""
    return "#" + "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)
