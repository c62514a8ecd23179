"""Checks rules of a chat request that span several fields, for every dialect."""

from __future__ import annotations

from operator import methodcaller
from typing import Any

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault

__all__ = ["check_coherence"]

_GET_ROLE = methodcaller("get", "role")


def check_coherence(body: JsonObject) -> None:
    """Check that a forced tool is among the tools, and that every tool result answers an earlier call.

    The body must be valid by its dialect's schema. Raises Fault, with the path as the client wrote it.
    """
    _check_forced_tool(body)
    _check_tool_results(body["messages"])


def _check_forced_tool(body: JsonObject) -> None:
    choice = body.get("tool_choice")
    name = _function_name(choice) if isinstance(choice, dict) else None
    if name is None or any(_function_name(tool) == name for tool in _list_objects(body.get("tools"))):
        return
    path = ("tool_choice", "function", "name")
    raise Fault(
        "invalid_request", f"tool_choice names {name!r}, which is not among the tools", path, name, code="invalid_value"
    )


def _check_tool_results(messages: list[JsonObject]) -> None:
    if "tool" not in [*map(_GET_ROLE, messages)]:
        return
    called: set[str] = set()
    for i, message in enumerate(messages):
        role = message.get("role")
        if role == "assistant":
            if "tool_calls" in message:
                called.update([str(call.get("id")) for call in _list_objects(message["tool_calls"])])
        elif role == "tool" and str(message.get("tool_call_id")) not in called:
            path = ("messages", i, "tool_call_id")
            text = f"messages[{i}].tool_call_id answers no earlier tool call"
            code = "invalid_value" if "tool_call_id" in message else "missing_required_parameter"
            raise Fault("invalid_request", text, path, message.get("tool_call_id"), code=code)


def _list_objects(value: Any) -> list[JsonObject]:
    """The objects in a list, none for another value: a dialect's schema may not check this field."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _function_name(holder: JsonObject) -> Any:
    function = holder.get("function")
    return function.get("name") if isinstance(function, dict) else None
