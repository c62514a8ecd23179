"""Validates a client's Messages request: the limits for hostile input, the schema, and what no schema can say.

Sources: Anthropic's guides to tool use (each `tool_use` has its result in the next turn, names of tools are unique) and
to extended thinking (the budget is below `max_tokens`, no tool is forced, the temperature is 1), and the sentences of
its API about them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault, join_faults
from dragoman.adapters.paths import Path
from dragoman.adapters.steering_keys import refuse_steering
from dragoman.adapters.user_schemas import check_messages_schemas
from dragoman.adapters.validation import Validator

from .turns import check_turns

__all__ = ["check_request"]

_INTERLEAVED = "interleaved-thinking"
"""The beta with which a budget counts all thinking between the calls, so that it may exceed `max_tokens`."""
_FORCED = ("any", "tool")


def check_request(body: JsonObject, validator: Validator, betas: Collection[str] = ()) -> bool:
    """Check the limits for hostile input, the dialect's schema, then how the parameters fit together.

    `betas` are those of the header `anthropic-beta`. Returns whether values have keys that the dialect does not define:
    they are extra parameters. Raises Fault with all others; its path is the client's.
    """
    refuse_steering(body)
    check_messages_schemas(body)
    has_extras = validator.check_with_extras(body)
    faults = [*_check_thinking(body, betas), *_check_tools(body), *check_turns(body)]
    if faults:
        raise join_faults(faults)
    return has_extras


def _check_thinking(body: JsonObject, betas: Collection[str]) -> Iterator[Fault]:
    thinking = body.get("thinking")
    if not isinstance(thinking, dict) or thinking["type"] != "enabled":
        return
    budget, limit = thinking["budget_tokens"], body.get("max_tokens")
    may_exceed = any(beta.startswith(_INTERLEAVED) for beta in betas)
    if limit and budget is not None and budget >= limit and not may_exceed:
        yield _refuse("max_tokens must be greater than thinking.budget_tokens", ("max_tokens",), limit)
    if body.get("temperature") not in (None, 1):
        text = "temperature may only be set to 1 when thinking is enabled"
        yield _refuse(text, ("temperature",), body["temperature"])
    if (body.get("tool_choice") or {}).get("type") in _FORCED:
        text = "thinking may not be enabled when tool_choice forces tool use"
        yield _refuse(text, ("thinking",), thinking)


def _check_tools(body: JsonObject) -> Iterator[Fault]:
    tools = body.get("tools") or ()
    names = {tool["name"] for tool in tools if tool.get("name") is not None}
    if len(names) < len(tools):
        yield from _list_repeated_names(tools)
    choice = body.get("tool_choice") or {}
    if choice.get("type") != "tool" or choice["name"] in names:
        return
    if all("name" in tool for tool in tools) and not body.get("mcp_servers"):
        yield _refuse(
            f"tool {str(choice['name'])[:100]!r} not found in provided tools", ("tool_choice", "name"), choice["name"]
        )


def _list_repeated_names(tools: Collection[JsonObject]) -> Iterator[Fault]:
    names = set[str]()
    for i, tool in enumerate(tools):
        name = tool.get("name")
        if name in names:
            yield _refuse("tool names must be unique", ("tools", i, "name"), name)
        elif name is not None:
            names.add(name)


def _refuse(text: str, path: Path, value: Any) -> Fault:
    return Fault("invalid_request", text, path, value, code="invalid_value")
