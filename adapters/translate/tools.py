"""Tools, and the choice among them, in chat's form and in that of Responses.

Responses has tools that chat providers have not, and each finds a form there:

    function                        a function
    custom, a call with free text   a function with one text, `input`; its description has the grammar
    namespace of such tools         its tools, under flat names: `namespace__name`
    any other, run by the provider  left out, if the choice among the rest is free

`map_tool_names` gives the way back for names in calls. Tools are in `tools`, or in the input as `additional_tools`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import orjson

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path, format_path

from .unused_keys import record_unused_keys

__all__ = [
    "ADDITIONAL_TOOLS",
    "OriginalTool",
    "decode_free_text",
    "encode_free_text",
    "flatten_name",
    "list_tools",
    "map_tool_names",
    "to_chat_tool_choice",
    "to_chat_tools",
    "to_responses_tool_choice",
    "to_responses_tools",
]

ADDITIONAL_TOOLS = "additional_tools"
"""The type of the items that offer more tools."""

_LONGEST_NAME = 64
_FUNCTION_KEYS = ("name", "description", "parameters", "strict")
_CLIENT_TOOLS = ("function", "custom")  # the tools that the client runs
_FREE_TEXT_SCHEMA = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}


class OriginalTool(NamedTuple):
    """The tool that a function in chat replaces. `free` is true if it takes free text."""

    name: str
    namespace: str | None = None
    takes_free_text: bool = False

    def name_keys(self) -> JsonObject:
        """The keys that a call of it has."""
        return {"name": self.name} if self.namespace is None else {"name": self.name, "namespace": self.namespace}


def flatten_name(namespace: str | None, name: str) -> str:
    """One name of at most 64 characters; what is longer ends in a digest of the whole."""
    flat = f"{namespace}__{name}" if namespace else name
    if len(flat) <= _LONGEST_NAME or not namespace:
        return flat
    digest = sha256(flat.encode()).hexdigest()[:8]
    return f"{flat[: _LONGEST_NAME - len(digest) - 1]}_{digest}"


def list_tools(request: JsonObject) -> list[tuple[Path, JsonObject]]:
    """Every tool of a Responses request, with its path: those of `tools`, then those that its input adds."""
    found: list[tuple[Path, JsonObject]] = [(("tools", i), tool) for i, tool in enumerate(request.get("tools") or ())]
    items = request.get("input")
    for i, item in enumerate(items if isinstance(items, list) else ()):
        if item.get("type") == ADDITIONAL_TOOLS:
            found += [(("input", i, "tools", k), tool) for k, tool in enumerate(item.get("tools") or ())]
    return found


def map_tool_names(request: JsonObject) -> Mapping[str, OriginalTool]:
    """Name of a function in chat -> the tool, for those that are another in the Responses request."""
    known: dict[str, OriginalTool] = {}
    for _, tool in list_tools(request):
        for _, space, one in _list_client_tools(tool):
            free = one.get("type") == "custom"
            if space is not None or free:
                known[flatten_name(space, one["name"])] = OriginalTool(one["name"], space, free)
    return known


def encode_free_text(text: Any) -> str:
    """The arguments of a function for free text."""
    return orjson.dumps({"input": text}).decode()


def decode_free_text(arguments: str) -> str:
    """The free text in a function's arguments, none in `{}`; what is no such arguments is the text itself."""
    try:
        found = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return arguments
    if found == {}:
        return ""
    text = found.get("input") if isinstance(found, dict) else None
    return text if isinstance(text, str) else arguments


def to_chat_tools(tools: list[tuple[Path, JsonObject]], choice: Any, ctx: Context) -> list[JsonObject]:
    """Tools of a Responses request in chat's form. Raises Fault if a tool of the provider's cannot be left out."""
    made: list[JsonObject] = []
    places: list[tuple[Path, Path]] = []
    hosted: list[tuple[Path, Any]] = []
    _check_names(tools)
    for path, tool in tools:
        own = [
            _to_chat_function(one, flatten_name(space, one["name"]), (*path, *inside), ctx)
            for inside, space, one in _list_client_tools(tool)
        ]
        if tool.get("type") == "namespace":
            record_unused_keys(tool, ("type", "name", "tools"), path, ctx, "chat")
            ctx.receipt.record_conversion(path, "the namespace is part of the names", after=("tools", len(made)))
            hosted += [((*path, "tools", k), one.get("type")) for k, one in _list_hosted_members(tool)]
        elif not own:
            hosted.append((path, tool.get("type")))
        places += [(path, ("tools", len(made) + k)) for k in range(len(own))]
        made += own
    _drop_hosted(hosted, made, choice, ctx)
    ctx.receipt.record_conversion(("tools",), "tools in chat's form")
    ctx.receipt.map_paths(places)
    return made


def to_responses_tools(tools: list[JsonObject], ctx: Context) -> list[JsonObject]:
    """Tools of a chat request in the form of Responses, where `strict` is always said."""
    ctx.receipt.record_conversion(("tools",), "tools in the form of Responses")
    return [_to_responses_tool(tool, ("tools", i), ctx) for i, tool in enumerate(tools)]


def to_chat_tool_choice(choice: Any, tools: list[JsonObject], ctx: Context) -> tuple[list[JsonObject], Any]:
    """The tools to offer in chat, and the choice among them. Raises Fault for what the model's provider lacks."""
    if not isinstance(choice, dict):
        return tools, choice
    if choice.get("type") == "allowed_tools":
        return _restrict_tools(choice, tools, ctx)
    ctx.receipt.record_conversion(("tool_choice",), "in chat's form")
    return tools, {"type": "function", "function": {"name": _read_chosen_name(choice)}}


def _restrict_tools(choice: JsonObject, tools: list[JsonObject], ctx: Context) -> tuple[list[JsonObject], Any]:
    """Most chat servers know no list of allowed tools, so only those are offered."""
    names = {_read_chosen_name(one) for one in choice.get("tools") or () if one.get("type") in _CLIENT_TOOLS}
    allowed = [k for k, tool in enumerate(tools) if tool["function"]["name"] in names]
    if not allowed:
        text = "tool_choice allows only tools that the model's provider does not have or the request does not offer"
        raise Fault("unsupported_parameter", text, ("tool_choice",), choice, code="unsupported_parameter")
    ctx.receipt.record_conversion(("tool_choice",), "only the allowed tools are offered")
    ctx.receipt.map_paths([(("tools", k), ("tools", place)) for place, k in enumerate(allowed)])
    return [tools[k] for k in allowed], choice.get("mode", "auto")


def _read_chosen_name(choice: JsonObject) -> str:
    kind = choice.get("type")
    if kind not in _CLIENT_TOOLS:
        text = f"tool_choice forces {kind}, which the model's provider does not have"
        raise Fault("unsupported_parameter", text, ("tool_choice",), choice, code="unsupported_parameter")
    return flatten_name(choice.get("namespace"), choice["name"])


def to_responses_tool_choice(choice: Any, ctx: Context) -> Any:
    """A choice among the tools of a chat request in the form of Responses."""
    if not isinstance(choice, dict):
        return choice
    kind = choice.get("type")
    ctx.receipt.record_conversion(("tool_choice",), "in the form of Responses")
    if kind == "allowed_tools":
        allowed = choice["allowed_tools"]
        return {
            "type": kind,
            "mode": allowed["mode"],
            "tools": [to_responses_tool_choice(one, ctx) for one in allowed["tools"]],
        }
    return {"type": kind, "name": choice[kind]["name"]} if kind in ("function", "custom") else choice


def _list_client_tools(tool: JsonObject) -> Iterator[tuple[Path, str | None, JsonObject]]:
    """(path inside, namespace, tool) for each that the client runs: the tool itself, or those in its namespace."""
    if tool.get("type") in _CLIENT_TOOLS:
        yield (), None, tool
    elif tool.get("type") == "namespace":
        members = enumerate(tool.get("tools") or ())
        yield from ((("tools", k), tool["name"], one) for k, one in members if _runs_at_client(one))


def _check_names(tools: list[tuple[Path, JsonObject]]) -> None:
    """Raise Fault if tools of two namespaces would have one name in chat: calls could not be assigned."""
    spaces: dict[str, str | None] = {}
    for path, tool in tools:
        for inside, space, one in _list_client_tools(tool):
            name = flatten_name(space, one["name"])
            if spaces.setdefault(name, space) != space:
                where = (*path, *inside, "name")
                text = f"{format_path(where)}: another tool has the name {name!r} too, under which chat knows this one"
                raise Fault("unsupported_parameter", text, where, one["name"], code="unsupported_parameter")


def _list_hosted_members(space: JsonObject) -> Iterator[tuple[int, JsonObject]]:
    yield from ((k, one) for k, one in enumerate(space.get("tools") or ()) if not _runs_at_client(one))


def _runs_at_client(tool: JsonObject) -> bool:
    """True for what the client runs; in a namespace, functions need not say that they are."""
    return tool.get("type", "function") in _CLIENT_TOOLS


def _to_chat_function(tool: JsonObject, name: str, path: Path, ctx: Context) -> JsonObject:
    if tool.get("type") == "custom":
        return _to_free_text_function(tool, name, path, ctx)
    record_unused_keys(tool, ("type", *_FUNCTION_KEYS), path, ctx, "chat")
    function = {key: tool[key] for key in _FUNCTION_KEYS if tool.get(key) is not None}
    return {"type": "function", "function": {**function, "name": name}}


def _to_free_text_function(tool: JsonObject, name: str, path: Path, ctx: Context) -> JsonObject:
    record_unused_keys(tool, ("type", "name", "description", "format"), path, ctx, "chat")
    form = tool.get("format") or {}
    texts = [tool["description"]] if tool.get("description") else []
    if form.get("definition"):
        texts.append(f"`input` follows this {form.get('syntax', '')} grammar:\n{form['definition']}")
        ctx.receipt.record_conversion(
            path, "free text is a function's argument in chat; its grammar is described but not enforced", "loss"
        )
    else:
        ctx.receipt.record_conversion(path, "free text is a function's argument in chat")
    described = {"description": "\n\n".join(texts)} if texts else {}
    return {"type": "function", "function": {"name": name, **described, "parameters": _FREE_TEXT_SCHEMA}}


def _to_responses_tool(tool: JsonObject, path: Path, ctx: Context) -> JsonObject:
    record_unused_keys(tool, ("type", tool["type"]), path, ctx, "Responses")
    if tool.get("type") == "custom":
        return {"type": "custom", **tool["custom"]}
    function = tool["function"]
    record_unused_keys(function, _FUNCTION_KEYS, (*path, "function"), ctx, "Responses")
    made = {"type": "function", "name": function["name"], "parameters": function.get("parameters")}
    if function.get("description") is not None:
        made["description"] = function["description"]
    return {**made, "strict": bool(function.get("strict"))}


def _drop_hosted(hosted: list[tuple[Path, Any]], made: list[JsonObject], choice: Any, ctx: Context) -> None:
    """Tools that run at the provider are left out while the model stays free to do without them, and has others; the
    policy may drop them all."""
    forced = choice == "required" or isinstance(choice, dict)
    for path, kind in hosted:
        if not made and (forced or ctx.target.policy.unsupported != "drop"):
            text = f"the model's provider does not have the tool {kind}, and nothing else remains to choose from"
            raise Fault("unsupported_parameter", text, path, kind, code="unsupported_parameter")
        ctx.receipt.record_drop(path, f"the model's provider does not have the tool {kind}")
