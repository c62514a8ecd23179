"""Convert tools, tool choices and formats of Databricks' Responses API between nested and flat forms."""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import JsonObject

__all__ = ["flatten_choice", "flatten_format", "flatten_tool", "nest_choice", "nest_format", "nest_tool"]


def flatten_tool(tool: Any) -> Any:
    """Return a nested function tool in the hub's flat form, and any other tool unchanged."""
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict):
        return tool
    made = {"type": "function", "strict": False, **function}
    made.setdefault("parameters", None)
    return made


def nest_tool(tool: JsonObject) -> JsonObject:
    """Return a flat function tool in the nested form, which requires a description and parameters; others unchanged."""
    if tool.get("type") != "function" or "function" in tool:
        return tool
    function = {key: value for key, value in tool.items() if key != "type" and value is not None}
    function.setdefault("description", "")
    function.setdefault("parameters", {"type": "object", "properties": {}})
    return {"type": "function", "function": function}


def flatten_choice(choice: Any) -> Any:
    """Return a nested choice of a function in the hub's flat form, and any other choice unchanged."""
    function = choice.get("function") if isinstance(choice, dict) else None
    return {"type": "function", "name": function["name"]} if isinstance(function, dict) else choice


def nest_choice(choice: Any) -> Any:
    """Return a flat choice of a function in the nested form, and any other choice unchanged."""
    if isinstance(choice, dict) and choice.get("type") == "function" and "name" in choice:
        return {"type": "function", "function": {"name": choice["name"]}}
    return choice


def flatten_format(form: JsonObject) -> JsonObject:
    """Return a nested format `json_schema` in the hub's flat form, and any other format unchanged."""
    described = form.get("json_schema")
    return {"type": form.get("type"), **described} if isinstance(described, dict) else form


def nest_format(form: JsonObject) -> JsonObject:
    """Return a flat format `json_schema` in the nested form, and any other format unchanged."""
    if form.get("type") != "json_schema" or "json_schema" in form:
        return form
    return {"type": "json_schema", "json_schema": {key: value for key, value in form.items() if key != "type"}}
