"""Brings whole tool calls into hub form, and reads the forms that calls and their pieces have in the world.

Clients parse the arguments as JSON, and give results by id. So each call has an id of its own, in the whole
conversation, a type, and arguments as text; a complete call without arguments gets `{}`.
"""

from __future__ import annotations

from typing import Any

import orjson

from dragoman.adapters.call import Context, JsonObject

from .call_signatures import unpack_signature

__all__ = [
    "NO_ARGUMENTS",
    "encode_arguments",
    "encode_function",
    "fill_arguments",
    "list_call_ids",
    "list_tool_names",
    "move_calls",
    "move_function_call",
    "normalize_calls",
    "read_id",
    "split_call",
]

NO_ARGUMENTS = "a call without arguments gets an empty object"
"""The reason of the change, for receipts."""

_NONE = "{}"
_OWN_KEYS = frozenset({"index", "id", "type", "function", "custom"})
_CALL_KEYS = ("tool_calls", "function_call")
_FLAT_KEYS = ("name", "arguments")


def normalize_calls(given: Any, ctx: Context) -> Any:
    """Bring the calls of a message into hub form: a list of calls, each with a type, text arguments and its own id.

    Returns the same object if nothing changes; values that are not calls stay, and the schema refuses them.
    """
    if isinstance(given, dict):
        given = [given]
    elif not isinstance(given, list):
        return given
    ids = set(list_call_ids(ctx.request))
    made = [_normalize_call(call, ids, ctx) if isinstance(call, dict) else call for call in given]
    return given if made == given else made


def fill_arguments(calls: Any) -> bool:
    """Give `{}` to whole calls without arguments, in place. Returns True if anything changed."""
    functions = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    bare = [one for one in functions if isinstance(one, dict) and one.get("arguments") == ""]
    for function in bare:
        function["arguments"] = _NONE
    return bool(bare)


def list_call_ids(request: JsonObject) -> frozenset[str]:
    """The ids of the calls in a chat request's messages: some servers count the calls of each answer from 0."""
    calls = (call for message in request.get("messages") or () for call in message.get("tool_calls") or ())
    return frozenset(call["id"] for call in calls)


def list_tool_names(request: JsonObject) -> frozenset[str]:
    """The names of the tools that a chat request offers."""
    tools = request.get("tools")
    said = [split_call(tool)[1] for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    return frozenset(one["name"] for one in said if isinstance(one.get("name"), str))


def move_function_call(holder: JsonObject, request: JsonObject) -> bool:
    """Make the deprecated `function_call` of a message or delta a tool call, if the request offers tools.

    Returns True if it was one. If there are tool calls too, they are the same call. An empty one says nothing, and is
    removed: some servers write every key that they know.
    """
    function = holder.get("function_call")
    if not isinstance(function, dict):
        return False
    if not any(function.get(key) for key in _FLAT_KEYS):
        del holder["function_call"]
        return False
    if not request.get("tools"):
        return False
    del holder["function_call"]
    if not holder.get("tool_calls"):
        holder["tool_calls"] = [{"function": function}]
    return True


def move_calls(message: Any, delta: JsonObject) -> bool:
    """Move the calls of a message to a delta without calls. Returns True if there were any."""
    found = {key: message[key] for key in _CALL_KEYS if message.get(key)} if isinstance(message, dict) else {}
    if not found or any(delta.get(key) for key in _CALL_KEYS):
        return False
    delta.update(found)
    return True


def read_id(call: JsonObject) -> str | None:
    """The id of a call or a piece as text; None if it has none."""
    found = call.get("id")
    if type(found) is int:
        return str(found)
    return found if type(found) is str and found else None


def split_call(call: JsonObject) -> tuple[str, JsonObject, JsonObject]:
    """(kind, name and arguments, other keys) of a call or a piece. The kind is 'function' or 'custom'.

    Some servers leave the type out, or write the name and the arguments next to the id.
    """
    rest = unpack_signature({key: value for key, value in call.items() if key not in _OWN_KEYS})
    for kind in ("function", "custom"):
        said = call.get(kind)
        if isinstance(said, dict):
            return kind, said, rest
    return "function", {key: rest.pop(key) for key in _FLAT_KEYS if key in rest}, rest


def encode_arguments(arguments: Any) -> str:
    """Write arguments that came as a JSON value; null has none."""
    return "" if arguments is None else orjson.dumps(arguments).decode()


def encode_function(function: Any, *, is_whole: bool) -> bool:
    """Write the arguments of the deprecated `function_call` as text, in place. Returns True if anything changed. Only a
    piece may lack them."""
    if not isinstance(function, dict) or type(function.get("arguments", None if is_whole else "")) is str:
        return False
    function["arguments"] = encode_arguments(function.get("arguments"))
    return True


def _normalize_call(call: JsonObject, ids: set[str], ctx: Context) -> JsonObject:
    kind, said, rest = split_call(call)
    key = "arguments" if kind == "function" else "input"
    if said and type(said.get(key)) is not str:
        said = {**said, key: encode_arguments(said.get(key))}
    call_id = read_id(call)
    if call_id is None or call_id in ids:
        call_id = ctx.new_id("call")
    ids.add(call_id)
    made = {"id": call_id, "type": kind, kind: said} if said else {"id": call_id, "type": kind}
    return {**made, **rest}
