"""Tools, and the choice among them, in chat's form and in that of Responses.

Responses has tools that run at the provider, which chat has not, and namespaces of functions, which are flattened:
`namespace__name`. `flattened` gives the way back.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path

__all__ = ["chat_choice", "chat_tools", "flat_name", "flattened", "responses_choice", "responses_tools"]

_LONGEST_NAME = 64
_FUNCTION_KEYS = ("name", "description", "parameters", "strict")


def flat_name(namespace: str | None, name: str) -> str:
    """One name of at most 64 characters; what is longer ends in a digest of the whole."""
    flat = f"{namespace}__{name}" if namespace else name
    if len(flat) <= _LONGEST_NAME or not namespace:
        return flat
    digest = sha256(flat.encode()).hexdigest()[:8]
    return f"{flat[: _LONGEST_NAME - len(digest) - 1]}_{digest}"


def flattened(tools: list[JsonObject] | None) -> Mapping[str, tuple[str, str]]:
    """Flat name -> (namespace, name), for the functions that stand in namespaces."""
    return {
        flat_name(space["name"], tool["name"]): (space["name"], tool["name"])
        for space in tools or ()
        if space.get("type") == "namespace"
        for tool in space.get("tools") or ()
    }


def chat_tools(tools: list[JsonObject], choice: Any, ctx: Context) -> list[JsonObject]:
    """Tools of a Responses request in chat's form. Raises Fault where a tool of the provider's cannot be left out."""
    made: list[JsonObject] = []
    places: list[tuple[Path, Path]] = []
    hosted: list[int] = []
    for i, tool in enumerate(tools):
        kind = tool.get("type")
        if kind == "namespace":
            own = [_chat_function(one, flat_name(tool["name"], one["name"])) for one in tool.get("tools") or ()]
            ctx.receipt.converted(("tools", i), "the namespace is part of the names", after=("tools", len(made)))
        elif kind == "function":
            own = [_chat_function(tool, tool["name"])]
        elif kind == "custom":
            own = [{"type": "custom", "custom": {key: value for key, value in tool.items() if key != "type"}}]
        else:
            hosted.append(i)
            continue
        places += [(("tools", i), ("tools", len(made) + k)) for k in range(len(own))]
        made += own
    _settle_hosted(tools, hosted, made, choice, ctx)
    ctx.receipt.converted(("tools",), "tools in chat's form")
    ctx.receipt.rerouted(places)
    return made


def responses_tools(tools: list[JsonObject], ctx: Context) -> list[JsonObject]:
    """Tools of a chat request in the form of Responses, where `strict` is always said."""
    ctx.receipt.converted(("tools",), "tools in the form of Responses")
    return [_responses_tool(tool) for tool in tools]


def chat_choice(choice: Any, ctx: Context) -> Any:
    if not isinstance(choice, dict):
        return choice
    kind = choice.get("type")
    if kind in ("function", "custom"):
        made: Any = {"type": kind, kind: {"name": flat_name(choice.get("namespace"), choice["name"])}}
    elif kind == "allowed_tools":
        tools = [chat_choice(tool, ctx) for tool in choice.get("tools") or ()]
        made = {"type": kind, "allowed_tools": {"mode": choice.get("mode"), "tools": tools}}
    else:
        text = f"tool_choice forces {kind}, which the model's provider does not have"
        raise Fault("unsupported_parameter", text, ("tool_choice",), choice, code="unsupported_parameter")
    ctx.receipt.converted(("tool_choice",), "in chat's form")
    return made


def responses_choice(choice: Any, ctx: Context) -> Any:
    if not isinstance(choice, dict):
        return choice
    kind = choice.get("type")
    ctx.receipt.converted(("tool_choice",), "in the form of Responses")
    if kind == "allowed_tools":
        allowed = choice["allowed_tools"]
        return {
            "type": kind,
            "mode": allowed["mode"],
            "tools": [responses_choice(one, ctx) for one in allowed["tools"]],
        }
    return {"type": kind, "name": choice[kind]["name"]} if kind in ("function", "custom") else choice


def _chat_function(tool: JsonObject, name: str) -> JsonObject:
    function = {key: tool[key] for key in _FUNCTION_KEYS if tool.get(key) is not None}
    return {"type": "function", "function": {**function, "name": name}}


def _responses_tool(tool: JsonObject) -> JsonObject:
    if tool.get("type") == "custom":
        return {"type": "custom", **tool["custom"]}
    function = tool["function"]
    made = {"type": "function", "name": function["name"], "parameters": function.get("parameters")}
    if function.get("description") is not None:
        made["description"] = function["description"]
    return {**made, "strict": bool(function.get("strict"))}


def _settle_hosted(
    tools: list[JsonObject], hosted: list[int], made: list[JsonObject], choice: Any, ctx: Context
) -> None:
    """Tools that run at the provider are left out while the model stays free to do without them."""
    forced = choice == "required" or isinstance(choice, dict)
    for i in hosted:
        kind = tools[i].get("type")
        if not made and forced:
            text = f"the model's provider does not have the tool {kind}, and nothing else remains to choose from"
            raise Fault("unsupported_parameter", text, ("tools", i), kind, code="unsupported_parameter")
        ctx.receipt.dropped(("tools", i), f"the model's provider does not have the tool {kind}")
