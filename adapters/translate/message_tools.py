"""Converts tools, and the choice among them, between Messages and chat.

A tool of Messages without a type, or of the type `custom`, is a function in chat. All others have types with a date:
Anthropic runs them, or its models were trained on them. Those that the client runs become functions, if their input is
documented (`client_run_tools`). The others follow the rule for tools that the provider runs
(`tools.drop_hosted_tools`). Names of Messages may have 128 characters, those of chat 64: longer ones are cut.

Sources: anthropic 2.12.0, ToolUnionParam and ToolChoiceParam; OpenAI OpenAPI 2.3, ChatCompletionTool.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.paths import Path, Places, nest_places

from .client_run_tools import define_tool
from .content_blocks import keep_marks
from .parameters import find_holder
from .tools import drop_hosted_tools, offer_only, shorten_name
from .unused_keys import record_unused_keys

__all__ = ["list_long_names", "to_chat_tools", "to_message_tools"]

_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_CHOICES_BACK = {word: kind for kind, word in _CHOICES.items()}
_TOOL_KEYS = frozenset({"type", "name", "description", "input_schema", "strict", "cache_control"})
_NAMES = {"name": "name", "description": "description", "input_schema": "parameters", "strict": "strict"}
_HINTS = ("eager_input_streaming", "defer_loading")
"""Keys of tools that decide how calls are streamed, and when the model reads a tool."""
_ANY_INPUT = {"type": "object", "properties": {}}
_DEFINED = "the client runs it, and other models do not know it: it becomes a function with the documented input"
_NO_TOOLS = "the request has no tools left to choose from"


def to_chat_tools(left: JsonObject, made: JsonObject, ctx: Context) -> None:
    """Convert the tools of a Messages request to chat, and the choice among them. Raises Fault if a tool that the
    provider runs cannot be dropped."""
    choice = left.pop("tool_choice", None)
    word = _to_chat_choice(choice)
    tools = left.pop("tools", None) or []
    functions: list[JsonObject] = []
    hosted: list[tuple[Path, Any]] = []
    placed: list[tuple[Path, JsonObject]] = []  # what each function was, and its path
    for i, tool in enumerate(tools):
        path: Path = ("tools", i)
        is_custom = tool.get("type") in (None, "custom")
        defined = tool if is_custom else define_tool(tool)
        if defined is None:
            hosted.append((path, tool["type"]))
            continue
        if not is_custom:
            ctx.receipt.record_conversion((*path, "type"), _DEFINED)
        placed.append((path, tool))
        functions.append(_to_function(defined, path, ctx))
    if hosted:
        drop_hosted_tools(hosted, functions, word, ctx)
    if functions:
        ctx.receipt.record_conversion(("tools",), "tools are converted to chat's form")
        ctx.receipt.map_paths_below("tools", partial(_list_places, placed))
        made["tools"] = functions
        _set_chat_choice(choice, word, made, ctx)
    elif choice is not None:
        ctx.receipt.record_drop(("tool_choice",), _NO_TOOLS, "form")


def list_long_names(request: JsonObject) -> dict[str, str]:
    """The names of a Messages request's tools that chat has in a shorter form: that form -> the name."""
    names = [tool.get("name") for tool in request.get("tools") or ()]
    return {short: name for name in names if isinstance(name, str) and (short := shorten_name(name)) != name}


def _to_function(tool: JsonObject, path: Path, ctx: Context) -> JsonObject:
    if not tool.keys() <= _TOOL_KEYS:
        _record_unused(tool, path, ctx)
    function = {_NAMES[key]: value for key, value in tool.items() if key in _NAMES and value is not None}
    function["name"] = shorten_name(tool["name"])
    if function["name"] != tool["name"]:
        ctx.receipt.record_conversion((*path, "name"), "names of functions have at most 64 characters in chat")
    made = {"type": "function", "function": function}
    return {**made, **keep_marks(tool, path, ctx)} if "cache_control" in tool else made


def _record_unused(tool: JsonObject, path: Path, ctx: Context) -> None:
    for key in _HINTS:
        if tool.get(key) is not None:
            ctx.receipt.record_drop((*path, key), "it does not change what the tool does", "form")
    neutral = ("allowed_callers",) if tool.get("allowed_callers") == ["direct"] else ()
    record_unused_keys(tool, (*_TOOL_KEYS, *_HINTS, *neutral), path, ctx, "chat")


def _list_places(placed: list[tuple[Path, JsonObject]]) -> Places:
    """Pair the paths in all tools with those in the functions in chat."""
    places: Places = []
    for k, (path, tool) in enumerate(placed):
        places += nest_places(_list_tool_places(tool), path, ("tools", k))
    return places


def _list_tool_places(tool: JsonObject) -> Places:
    names = {"input_schema": "parameters"}
    keys = [key for key in tool if key not in ("type", "cache_control")]
    return [*(((key,), ("function", names.get(key, key))) for key in keys), ((), ())]


def _to_chat_choice(choice: Any) -> Any:
    if not isinstance(choice, dict):
        return None
    if choice["type"] == "tool":
        return {"type": "function", "function": {"name": shorten_name(choice["name"])}}
    return _CHOICES[choice["type"]]


def _set_chat_choice(choice: Any, word: Any, made: JsonObject, ctx: Context) -> None:
    if choice is None:
        return
    record_unused_keys(choice, ("type", "name", "disable_parallel_tool_use"), ("tool_choice",), ctx, "chat")
    ctx.receipt.record_conversion(("tool_choice",), "it is converted to chat's form")
    made["tool_choice"] = word
    places: Places = [(("tool_choice",), ("tool_choice", "function"))]
    if choice.get("disable_parallel_tool_use") is not None:
        made["parallel_tool_calls"] = not choice["disable_parallel_tool_use"]
        place = ("tool_choice", "disable_parallel_tool_use")
        ctx.receipt.record_conversion(place, "chat has a parameter for it", after=("parallel_tool_calls",))
        places.append((place, ("parallel_tool_calls",)))
    ctx.receipt.map_paths(places)


def to_message_tools(left: JsonObject, made: JsonObject, ctx: Context) -> None:
    """Convert the tools of a chat request to Messages, the choice among them, and whether it may call several at once.

    Raises Fault if the choice allows only tools that the request does not offer, or if a tool with free text cannot be
    dropped: Messages has only tools with JSON.
    """
    tools, choice = left.pop("tools", None) or [], left.pop("tool_choice", None)
    parallel = left.pop("parallel_tool_calls", None)
    if tools and isinstance(choice, dict) and choice["type"] == "allowed_tools":
        allowed = choice["allowed_tools"]
        names = {one[one["type"]]["name"] for one in allowed["tools"]}
        tools, choice = offer_only(names, tools, choice, ctx), allowed["mode"]
    functions = [i for i, tool in enumerate(tools) if tool["type"] == "function"]
    made_tools = [_to_message_tool(tools[i], ("tools", i), ctx) for i in functions]
    others: list[tuple[Path, Any]] = [(("tools", i), one["type"]) for i, one in enumerate(tools) if i not in functions]
    drop_hosted_tools(others, made_tools, choice, ctx)
    if not made_tools:
        for name, value in (("tool_choice", choice), ("parallel_tool_calls", parallel)):
            if value is not None:
                ctx.receipt.record_drop((name,), _NO_TOOLS, "form")
        return
    ctx.receipt.record_conversion(("tools",), "tools are converted to the form of Messages")
    made["tools"] = made_tools
    places: Places = []
    for new, i in enumerate(functions):
        inner = _list_function_places(tools[i]["function"])
        places += [*nest_places(inner, ("tools", i, "function"), ("tools", new)), (("tools", i), ("tools", new))]
    ctx.receipt.map_paths(places)
    _set_message_choice(choice, parallel, made, ctx)


def _to_message_tool(tool: JsonObject, path: Path, ctx: Context) -> JsonObject:
    function, inner = tool["function"], (*path, "function")
    record_unused_keys(tool, ("type", "function", "cache_control"), path, ctx, "Messages")
    record_unused_keys(function, ("name", "description", "parameters", "strict"), inner, ctx, "Messages")
    schema = _to_input_schema(function.get("parameters"), path, ctx)
    made = {"name": function["name"], "description": function.get("description"), "input_schema": schema}
    if function.get("strict") is False:
        ctx.receipt.record_drop((*inner, "strict"), "leaving it out means the same", "form")
    made |= {"strict": function.get("strict") or None, "cache_control": tool.get("cache_control")}
    return {key: value for key, value in made.items() if value is not None}


def _to_input_schema(schema: JsonObject | None, path: Path, ctx: Context) -> JsonObject:
    """The schema of a tool's input: its type is required, and arguments are objects."""
    if schema is None:
        ctx.receipt.record_fill((*path, "input_schema"), "Messages requires the schema of a tool's input")
        return _ANY_INPUT
    if "type" in schema:
        return schema
    ctx.receipt.record_fill((*path, "input_schema", "type"), "Messages requires the type of a tool's input")
    return {"type": "object", **schema}


def _list_function_places(said: JsonObject) -> Places:
    names = {"parameters": "input_schema"}
    return [((key,), (names.get(key, key),)) for key in said]


def _set_message_choice(choice: Any, parallel: Any, made: JsonObject, ctx: Context) -> None:
    if choice is None and parallel is not False:
        if parallel is not None:
            ctx.receipt.record_drop(("parallel_tool_calls",), "leaving it out means the same", "form")
        return
    made["tool_choice"] = _to_message_choice(choice)
    if choice is not None:
        ctx.receipt.record_conversion(("tool_choice",), "it is converted to the form of Messages")
        if isinstance(choice, dict):
            inner = ("tool_choice", choice["type"])
            ctx.receipt.map_paths([(inner, ("tool_choice",))])
    if parallel is None:
        return
    if made["tool_choice"]["type"] == "none":
        ctx.receipt.record_drop(("parallel_tool_calls",), "no tool may be called", "form")
        return
    find_holder(made, "tool_choice", "parallel_tool_calls", ctx)["disable_parallel_tool_use"] = not parallel
    ctx.receipt.record_rename(
        ("parallel_tool_calls",), ("tool_choice", "disable_parallel_tool_use"), "Messages says it with the choice"
    )


def _to_message_choice(choice: Any) -> JsonObject:
    if isinstance(choice, dict):
        return {"type": "tool", "name": choice[choice["type"]]["name"]}
    if choice is None:
        return {"type": "auto"}
    return {"type": _CHOICES_BACK[choice]}
