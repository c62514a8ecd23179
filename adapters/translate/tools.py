"""Converts tools, and the choice among them, between chat and Responses.

Responses has tools that chat providers lack. They are converted as follows:

    function                        a function
    custom, a call with free text   a function with one text, `input`; its description has the grammar
    shell, local_shell, apply_patch a function (`responses.built_in_tools`)
    namespace of such tools         its tools, under flat names: `namespace__name`
    any other, run by the provider  dropped, if the model may choose freely among the rest

`map_tool_names` maps the names in calls back. Tools are in `tools`, or in the input as `additional_tools`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

import orjson

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path, Places, format_path, nest_places
from dragoman.adapters.responses.built_in_tools import BUILT_IN_TOOLS, BuiltInTool, find_built_in_tool

from .unused_keys import record_unused_keys

__all__ = [
    "ADDITIONAL_TOOLS",
    "OriginalTool",
    "decode_free_text",
    "drop_hosted_tools",
    "encode_free_text",
    "flatten_name",
    "list_tools",
    "map_tool_names",
    "offer_only",
    "shorten_name",
    "to_chat_tool_choice",
    "to_chat_tools",
    "to_responses_tool_choice",
    "to_responses_tools",
]

ADDITIONAL_TOOLS = "additional_tools"
"""The type of the items that offer more tools."""

_LONGEST_NAME = 64
_FUNCTION_KEYS = ("name", "description", "parameters", "strict")
_TOOL_KEYS = frozenset({"type", *_FUNCTION_KEYS})
_NAMESPACE = "namespace"
_CLIENT_TOOLS = ("function", "custom")  # types of tools that the client runs
_FREE_TEXT_SCHEMA = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}


class OriginalTool(NamedTuple):
    """The tool that a function in chat replaces. `takes_free_text`: its calls carry text, not JSON arguments.

    `built_in` is set if its calls are items of a type of their own.
    """

    name: str
    namespace: str | None = None
    takes_free_text: bool = False
    built_in: BuiltInTool | None = None

    def name_keys(self) -> JsonObject:
        """The keys of a call that name the tool."""
        return {"name": self.name} if self.namespace is None else {"name": self.name, "namespace": self.namespace}


def flatten_name(namespace: str | None, name: str) -> str:
    """Join a namespace and a name into at most 64 characters; a longer result is cut, and ends in a digest."""
    return shorten_name(f"{namespace}__{name}") if namespace else name


def shorten_name(name: str) -> str:
    """The name of a tool in at most 64 characters; a longer one is cut, and ends in a digest."""
    if len(name) <= _LONGEST_NAME:
        return name
    digest = sha256(name.encode()).hexdigest()[:8]
    return f"{name[: _LONGEST_NAME - len(digest) - 1]}_{digest}"


def list_tools(request: JsonObject) -> list[tuple[Path, JsonObject]]:
    """List every tool of a Responses request with its path: those of `tools`, then those that its input adds."""
    found: list[tuple[Path, JsonObject]] = [(("tools", i), tool) for i, tool in enumerate(request.get("tools") or ())]
    items = request.get("input")
    for i, item in enumerate(items if isinstance(items, list) else ()):
        if "type" in item and item["type"] == ADDITIONAL_TOOLS:
            found += [(("input", i, "tools", k), tool) for k, tool in enumerate(item.get("tools") or ())]
    return found


def map_tool_names(request: JsonObject) -> Mapping[str, OriginalTool]:
    """Map names of functions in chat to the tools of the Responses request that they replace."""
    known: dict[str, OriginalTool] = {}
    for _, tool in list_tools(request):
        for _, space, one in () if tool.get("type") == "function" else _list_client_tools(tool):
            free, built_in = one.get("type") == "custom", find_built_in_tool(one)
            if space is not None or free or built_in:
                known[flatten_name(space, one["name"])] = OriginalTool(one["name"], space, free, built_in)
    return known


def encode_free_text(text: Any) -> str:
    """Encode free text as the arguments of a function."""
    return orjson.dumps({"input": text}).decode()


def decode_free_text(arguments: str) -> str:
    """Decode the free text in a function's arguments; `{}` has none. Other arguments are the free text themselves."""
    try:
        found = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return arguments
    if found == {}:
        return ""
    text = found.get("input") if isinstance(found, dict) else None
    return text if isinstance(text, str) else arguments


def to_chat_tools(tools: list[tuple[Path, JsonObject]], choice: Any, ctx: Context) -> list[JsonObject]:
    """Convert tools of a Responses request, with their paths, to chat; `choice` is its `tool_choice`.

    Raises Fault if names collide, or if a tool that the provider runs cannot be dropped.
    """
    if _are_functions(tools):  # in most requests
        made, placed = [_to_plain_function(tool, path, ctx) for path, tool in tools], tools
    else:
        made, placed = _convert_tools(tools, choice, ctx)
    ctx.receipt.record_conversion(("tools",), "tools are converted to chat's form")
    ctx.receipt.map_paths_below("tools", partial(_list_places, placed))
    return made


def _are_functions(tools: list[tuple[Path, JsonObject]]) -> bool:
    return not [tool for _, tool in tools if tool.get("type") != "function"]


def _convert_tools(
    tools: list[tuple[Path, JsonObject]], choice: Any, ctx: Context
) -> tuple[list[JsonObject], list[tuple[Path, JsonObject]]]:
    """Convert tools of any type. Returns the functions, and what each of them was, with its path. Raises Fault."""
    made: list[JsonObject] = []
    placed: list[tuple[Path, JsonObject]] = []
    hosted: list[tuple[Path, Any]] = []
    _check_names(tools)
    for path, tool in tools:
        if tool.get("type") == "function":
            made.append(_to_plain_function(tool, path, ctx))
            placed.append((path, tool))
            continue
        first = len(made)
        for inside, space, one in _list_client_tools(tool):
            place = (*path, *inside)
            made.append(_to_chat_function(one, flatten_name(space, one["name"]), place, ctx))
            placed.append((place, one))
        if tool.get("type") == _NAMESPACE:
            record_unused_keys(tool, ("type", "name", "tools"), path, ctx, "chat")
            ctx.receipt.record_conversion(path, "the namespace becomes part of the names", after=("tools", first))
            hosted += [((*path, "tools", k), one.get("type")) for k, one in _list_hosted_members(tool)]
        elif first == len(made):
            hosted.append((path, tool.get("type")))
    if hosted:
        drop_hosted_tools(hosted, made, choice, ctx)
    return made, placed


def to_responses_tools(tools: list[JsonObject], ctx: Context) -> list[JsonObject]:
    """Convert tools of a chat request to Responses, where `strict` is required."""
    ctx.receipt.record_conversion(("tools",), "tools are converted to the form of Responses")
    made = [_to_responses_tool(tool, ("tools", i), ctx) for i, tool in enumerate(tools)]
    for i, tool in enumerate(tools):
        kind = tool["type"]
        inner: Places = [(("format", "grammar"), ("format",)), *(((key,), (key,)) for key in tool[kind])]
        ctx.receipt.map_paths(nest_places(inner, ("tools", i, kind), ("tools", i)))
    return made


def to_chat_tool_choice(choice: Any, tools: list[JsonObject], ctx: Context) -> tuple[list[JsonObject], Any]:
    """Convert the choice among tools to chat. Returns the tools to offer, and the choice.

    Raises Fault if the choice needs a tool that the model's provider lacks.
    """
    if not isinstance(choice, dict):
        return tools, choice
    if choice.get("type") == "allowed_tools":
        return _restrict_tools(choice, tools, ctx)
    ctx.receipt.record_conversion(("tool_choice",), "it is converted to chat's form")
    ctx.receipt.map_paths([(("tool_choice",), ("tool_choice", "function"))])
    return tools, {"type": "function", "function": {"name": _read_chosen_name(choice)}}


def _restrict_tools(choice: JsonObject, tools: list[JsonObject], ctx: Context) -> tuple[list[JsonObject], Any]:
    types = {*_CLIENT_TOOLS, *BUILT_IN_TOOLS}
    names = {_read_chosen_name(one) for one in choice.get("tools") or () if one.get("type") in types}
    return offer_only(names, tools, choice, ctx), choice.get("mode", "auto")


def offer_only(names: Collection[str], tools: list[JsonObject], choice: Any, ctx: Context) -> list[JsonObject]:
    """The allowed ones of the tools of chat: most servers do not support `allowed_tools`. Raises Fault if none is
    left."""
    allowed = [k for k, tool in enumerate(tools) if tool[tool["type"]]["name"] in names]
    if not allowed:
        text = "tool_choice allows only tools that the model's provider does not have or the request does not offer"
        raise Fault("unsupported_parameter", text, ("tool_choice",), choice, code="unsupported_parameter")
    ctx.receipt.record_conversion(("tool_choice",), "only the allowed tools are offered")
    ctx.receipt.map_paths([(("tools", k), ("tools", place)) for place, k in enumerate(allowed)])
    return [tools[k] for k in allowed]


def _read_chosen_name(choice: JsonObject) -> str:
    kind = choice.get("type")
    if kind in BUILT_IN_TOOLS:
        return str(kind)
    if kind not in _CLIENT_TOOLS:
        text = f"tool_choice forces {kind}, which the model's provider does not have"
        raise Fault("unsupported_parameter", text, ("tool_choice",), choice, code="unsupported_parameter")
    return flatten_name(choice.get("namespace"), choice["name"])


def to_responses_tool_choice(choice: Any, ctx: Context) -> Any:
    """Convert the choice among tools of a chat request to Responses."""
    if not isinstance(choice, dict):
        return choice
    kind = choice.get("type")
    ctx.receipt.record_conversion(("tool_choice",), "it is converted to the form of Responses")
    inner: Places = [((key,), (key,)) for key in choice.get(str(kind), ())]
    ctx.receipt.map_paths(nest_places(inner, ("tool_choice", str(kind)), ("tool_choice",)))
    if kind == "allowed_tools":
        allowed = choice["allowed_tools"]
        return {
            "type": kind,
            "mode": allowed["mode"],
            "tools": [to_responses_tool_choice(one, ctx) for one in allowed["tools"]],
        }
    return {"type": kind, "name": choice[kind]["name"]} if kind in ("function", "custom") else choice


def _list_client_tools(tool: JsonObject) -> Iterator[tuple[Path, str | None, JsonObject]]:
    """(path inside, namespace, tool) of each tool that the client runs: the tool itself, or those in a namespace."""
    if tool.get("type") in _CLIENT_TOOLS:
        yield (), None, tool
    elif find_built_in_tool(tool):
        yield (), None, {**tool, "name": tool["type"]}
    elif tool.get("type") == _NAMESPACE:
        members = enumerate(tool.get("tools") or ())
        yield from ((("tools", k), tool["name"], one) for k, one in members if _runs_at_client(one))


def _check_names(tools: list[tuple[Path, JsonObject]]) -> None:
    """Check that tools of different namespaces have different names in chat. Raises Fault if two are the same."""
    spaces: dict[str, str | None] = {}
    for path, tool in tools if _NAMESPACE in [tool.get("type") for _, tool in tools] else ():
        for inside, space, one in _list_client_tools(tool):
            name = flatten_name(space, one["name"])
            if spaces.setdefault(name, space) != space:
                where = (*path, *inside, "name")
                text = f"{format_path(where)}: another tool has the name {name!r} too, under which chat knows this one"
                raise Fault("unsupported_parameter", text, where, one["name"], code="unsupported_parameter")


def _list_hosted_members(space: JsonObject) -> Iterator[tuple[int, JsonObject]]:
    yield from ((k, one) for k, one in enumerate(space.get("tools") or ()) if not _runs_at_client(one))


def _runs_at_client(tool: JsonObject) -> bool:
    """Whether the client runs the tool; in a namespace, `type` is optional for functions."""
    return tool.get("type", "function") in _CLIENT_TOOLS


def _to_chat_function(tool: JsonObject, name: str, path: Path, ctx: Context) -> JsonObject:
    if tool.get("type") == "custom":
        return _to_free_text_function(tool, name, path, ctx)
    if built_in := find_built_in_tool(tool):
        ctx.receipt.record_conversion(path, f"the tool {name} is a function in chat")
        record_unused_keys(tool, ("type", "name", "environment", "allowed_callers"), path, ctx, "chat")
        return built_in.to_function()
    made = _to_plain_function(tool, path, ctx)
    made["function"]["name"] = name
    return made


def _to_plain_function(tool: JsonObject, path: Path, ctx: Context) -> JsonObject:
    if tool.keys() <= _TOOL_KEYS and None not in tool.values():  # most of them
        function = tool.copy()
        function.pop("type", None)
        return {"type": "function", "function": function}
    record_unused_keys(tool, _TOOL_KEYS, path, ctx, "chat")
    function = {key: tool[key] for key in _FUNCTION_KEYS if key in tool and tool[key] is not None}
    return {"type": "function", "function": function}


def _list_places(placed: list[tuple[Path, JsonObject]]) -> Places:
    """Pair the paths in all tools with those in the functions in chat."""
    places: Places = []
    for k, (path, tool) in enumerate(placed):
        places += nest_places([((), ()), *_list_function_places(tool)], path, ("tools", k))
    return places


def _list_function_places(tool: JsonObject) -> Places:
    """Pair the keys of a tool of Responses with those of the function in chat."""
    places: Places = [((key,), ("function", key)) for key in tool if key != "type"]
    return [*places, (("format",), ("function", "description"))] if tool.get("format") else places


def _to_free_text_function(tool: JsonObject, name: str, path: Path, ctx: Context) -> JsonObject:
    record_unused_keys(tool, ("type", "name", "description", "format"), path, ctx, "chat")
    form = tool.get("format") or {}
    texts = [tool["description"]] if tool.get("description") else []
    if form.get("definition"):
        texts.append(f"`input` follows this {form.get('syntax', '')} grammar:\n{form['definition']}")
        ctx.receipt.record_conversion(
            path, "free text becomes a function's argument in chat; its grammar is described but not enforced", "loss"
        )
    else:
        ctx.receipt.record_conversion(path, "free text becomes a function's argument in chat")
    described = {"description": "\n\n".join(texts)} if texts else {}
    return {"type": "function", "function": {"name": name, **described, "parameters": _FREE_TEXT_SCHEMA}}


def _to_responses_tool(tool: JsonObject, path: Path, ctx: Context) -> JsonObject:
    record_unused_keys(tool, ("type", tool["type"]), path, ctx, "Responses")
    if tool.get("type") == "custom":
        return {"type": "custom", **tool["custom"], **_flatten_format(tool["custom"], path, ctx)}
    function = tool["function"]
    record_unused_keys(function, _FUNCTION_KEYS, (*path, "function"), ctx, "Responses")
    made = {"type": "function", "name": function["name"], "parameters": function.get("parameters")}
    if function.get("description") is not None:
        made["description"] = function["description"]
    return {**made, "strict": bool(function.get("strict"))}


def _flatten_format(tool: JsonObject, path: Path, ctx: Context) -> JsonObject:
    """The format of a custom tool, if it has one: chat nests the grammar, Responses does not."""
    form = tool.get("format")
    if not (isinstance(form, dict) and isinstance(form.get("grammar"), dict)):
        return {}
    record_unused_keys(form, ("type", "grammar"), (*path, "custom", "format"), ctx, "Responses")
    return {"format": {"type": "grammar", **form["grammar"]}}


def drop_hosted_tools(hosted: list[tuple[Path, Any]], made: list[JsonObject], choice: Any, ctx: Context) -> None:
    """Drop tools that the provider would run, if the model has others or may answer without tools. Raises Fault if not.

    Without other tools, this needs a free choice and the policy `unsupported: drop`.
    """
    forced = choice == "required" or isinstance(choice, dict)
    for path, kind in hosted:
        if not made and (forced or ctx.target.policy.unsupported != "drop"):
            text = f"the model's provider does not have the tool {kind}, and no other tool remains"
            raise Fault("unsupported_parameter", text, path, kind, code="unsupported_parameter")
        ctx.receipt.record_drop(path, f"the model's provider does not have the tool {kind}")
