"""JSON Schemas that clients send, in tools and response formats: hostile input, never compiled, only bounded."""

from __future__ import annotations

from typing import Any

from .call import JsonObject
from .faults import Fault
from .paths import Path
from .validation import judge

__all__ = ["check_responses_schemas", "check_user_schemas"]


def check_user_schemas(body: JsonObject) -> None:
    """References stay inside the schema, patterns are short. Raises Fault.

    Size and depth are those of the body, which are bounded where it is read.
    """
    tools = body.get("tools")
    for i, tool in enumerate(tools if isinstance(tools, list) else ()):
        function = tool.get("function") if isinstance(tool, dict) else None
        if isinstance(function, dict) and function.get("parameters"):
            _check(function["parameters"], ("tools", i, "function", "parameters"), "invalid_function_parameters")
    form = body.get("response_format")
    described = form.get("json_schema") if isinstance(form, dict) else None
    if isinstance(described, dict) and described.get("schema"):
        _check(described["schema"], ("response_format", "json_schema", "schema"), "invalid_json_schema")


def check_responses_schemas(body: JsonObject) -> None:
    """The same for a Responses request, where tools and formats are flat. Raises Fault."""
    tools = body.get("tools")
    for i, tool in enumerate(tools if isinstance(tools, list) else ()):
        if isinstance(tool, dict) and isinstance(tool.get("parameters"), dict):
            _check(tool["parameters"], ("tools", i, "parameters"), "invalid_function_parameters")
    text = body.get("text")
    form = text.get("format") if isinstance(text, dict) else None
    if isinstance(form, dict) and isinstance(form.get("schema"), dict):
        _check(form["schema"], ("text", "format", "schema"), "invalid_json_schema")


def _check(schema: Any, path: Path, code: str) -> None:
    rules = judge("hub/chat.user_schema")
    if not rules.ok(schema):
        fault = next(rules.violations(schema)).fault()
        raise Fault("invalid_request", f"{path[0]}: {fault.message}", (*path, *fault.path), fault.value, code=code)
