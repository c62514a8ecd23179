"""Convert a Databricks provider's replies to hub form: flat tools and formats, and function calls as items."""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import JsonObject

from .function_blocks import unpack_output_items
from .shapes import flatten_choice, flatten_format, flatten_tool

__all__ = ["convert_to_hub_forms"]


def convert_to_hub_forms(event: JsonObject) -> bool:
    """Convert the response and the item of an event in place. Return whether anything changed."""
    response, item = event.get("response"), event.get("item")
    altered = isinstance(response, dict) and _convert_response(response)
    if isinstance(item, dict):
        items = unpack_output_items([item])
        if items[0] is not item:
            event["item"] = items[0]
            altered = True
    return altered


def _convert_response(response: JsonObject) -> bool:
    made: JsonObject = {}
    tools: Any = response.get("tools")
    choice, text, output = response.get("tool_choice"), response.get("text"), response.get("output")
    if _has_nested(tools, "function"):
        made["tools"] = [flatten_tool(tool) for tool in tools]
    if _has_nested([choice], "function"):
        made["tool_choice"] = flatten_choice(choice)
    if isinstance(text, dict) and _has_nested([text.get("format")], "json_schema"):
        made["text"] = {**text, "format": flatten_format(text["format"])}
    if isinstance(output, list):
        made["output"] = unpack_output_items(output)
    altered = any(response[key] != value for key, value in made.items())
    response.update(made)
    return altered


def _has_nested(values: Any, key: str) -> bool:
    return isinstance(values, list) and any(isinstance(value, dict) and key in value for value in values)
