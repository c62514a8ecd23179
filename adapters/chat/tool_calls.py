"""Brings tool calls into hub form: whole calls, and the pieces of a stream.

Clients join the pieces of a streamed call by `index`, and concatenate every string. So each call has one index, counted
from 0 without gaps, and its id, type and name come once, with the first piece. Clients parse the arguments as JSON, so
a complete call without arguments gets `{}`.
"""

from __future__ import annotations

from typing import Any

import orjson

from dragoman.adapters.call import Context, JsonObject

__all__ = ["ToolCallNormalizer", "fill_arguments", "normalize_calls"]

_NONE = "{}"


def normalize_calls(calls: list[JsonObject], ctx: Context) -> bool:
    """Normalize whole calls in place: an id, a type, text arguments, and no index. Returns True if anything changed."""
    changed = False
    for call in calls:
        if not isinstance(call, dict):
            continue  # the schema refuses it
        changed |= _set_head(call, call.get("id") or ctx.new_id("call"))
        changed |= call.pop("index", None) is not None
        function = call.get("function")
        if isinstance(function, dict) and not isinstance(function.get("arguments"), str):
            function["arguments"] = _encode(function.get("arguments"))
            changed = True
    return changed


def fill_arguments(calls: Any) -> bool:
    """Give `{}` to whole calls without arguments, in place. Returns True if anything changed."""
    functions = [_function(call) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    bare = [function for function in functions if function.get("arguments") == ""]
    for function in bare:
        function["arguments"] = _NONE
    return bool(bare)


class ToolCallNormalizer:
    """The normalizer of the streamed calls of one choice. `placeholder`: a first `{}` may not be the arguments."""

    def __init__(self, ctx: Context, placeholder: bool) -> None:
        self._ctx = ctx
        self._placeholder = placeholder
        self._open: list[_OpenCall] = []
        self._by_index: dict[int, _OpenCall] = {}

    def normalize(self, pieces: list[JsonObject]) -> bool:
        """Normalize the pieces of one delta in place. Returns True if anything changed."""
        changed = False
        for piece in pieces:
            changed |= isinstance(piece, dict) and self._normalize(piece)
        return changed

    def make_missing_arguments(self) -> list[JsonObject]:
        """Make `{}` pieces for the calls without arguments, when the choice finishes."""
        bare = [call for call in self._open if call.needs_arguments]
        for call in bare:
            call.needs_arguments = False
        return [{"index": call.index, "function": {"arguments": _NONE}} for call in bare]

    def _normalize(self, piece: JsonObject) -> bool:
        call, new = self._find(piece)
        changed = piece.get("index") != call.index
        piece["index"] = call.index
        changed |= _set_head(piece, call.id) if new else _drop_repeated_keys(piece, call)
        function = piece.get("function")
        if isinstance(function, dict):
            call.needs_arguments |= new
            changed |= self._normalize_arguments(function, call, new)
        return changed

    def _find(self, piece: JsonObject) -> tuple[_OpenCall, bool]:
        index, call_id = piece.get("index"), piece.get("id") or None
        known = self._by_index.get(index) if isinstance(index, int) else self._by_id(call_id)
        if known is not None and call_id is not None and call_id != known.id:
            known = self._by_id(call_id)  # calls that share an index differ in their ids
        if known is not None:
            if isinstance(index, int):
                self._by_index[index] = known
            return known, False
        call = _OpenCall(len(self._open), call_id or self._ctx.new_id("call"), str(_function(piece).get("name") or ""))
        self._open.append(call)
        if isinstance(index, int):
            self._by_index[index] = call
        return call, True

    def _by_id(self, call_id: str | None) -> _OpenCall | None:
        if call_id is None:
            return self._open[-1] if self._open else None
        return next((call for call in self._open if call.id == call_id), None)

    def _normalize_arguments(self, function: JsonObject, call: _OpenCall, new: bool) -> bool:
        given = function.get("arguments")
        if given is None:
            return False
        text = given if isinstance(given, str) else _encode(given)
        if new and self._placeholder and text == _NONE:
            text = ""
        elif text:
            call.needs_arguments = False
        function["arguments"] = text
        return bool(text != given)


class _OpenCall:
    __slots__ = ("id", "index", "name", "needs_arguments")

    def __init__(self, index: int, call_id: str, name: str) -> None:
        self.index = index
        self.id = call_id
        self.name = name
        self.needs_arguments = False  # a function call whose arguments have not come yet


def _set_head(call: JsonObject, call_id: Any) -> bool:
    """Set the id and the type of a call in place. Returns True if anything changed."""
    changed = bool(call.get("id") != call_id or not call.get("type"))
    call["id"] = call_id
    call["type"] = call.get("type") or "function"
    return changed


def _drop_repeated_keys(piece: JsonObject, call: _OpenCall) -> bool:
    """Remove the id, type and name from a later piece of a call. Returns True if anything changed."""
    changed = False
    for key in ("id", "type"):
        if key in piece:
            del piece[key]
            changed = True
    function = _function(piece)
    if "name" in function and function["name"] in (None, "", call.name):
        del function["name"]
        changed = True
    return changed


def _function(piece: JsonObject) -> JsonObject:
    function = piece.get("function")
    return function if isinstance(function, dict) else {}


def _encode(arguments: Any) -> str:
    return "" if arguments is None else orjson.dumps(arguments).decode()
