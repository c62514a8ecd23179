"""Assembles the streamed tool calls of one choice, in whatever way the server deals out their pieces.

Clients join pieces by `index` and concatenate every string. So each call leaves with one index, counted from 0 without
gaps, and one id, which no call of an earlier turn has; its id, type and name come once, in its first piece, and are
followed by its arguments.

Theory of operation. Servers do not agree on what identifies a call: some send no index, or 0 for each; no id, one id
for several calls, or a new id in every piece. So a piece is first given to a *candidate*: the call with its index and
id, else with its id, else with its index, else, if it has no index, the last call. Then the state of the candidate
decides whether the piece continues it or begins a call:

    the candidate          a piece without a name      a piece with its name        a piece with another name
    ---------------------  --------------------------  ---------------------------  -------------------------------
    does not exist         begins                      begins                       begins
    has no name yet        continues                   continues                    continues: this is the name
    has no arguments       continues                   continues (1)                begins if it has another id or
                                                                                    index or is the name of a tool,
                                                                                    else continues the name
    unfinished arguments   continues                   continues (1)                begins
    whole arguments        begins if arguments begin,  begins, unless it only       begins
                           else continues              repeats what its id has
                                                       sent, or has no arguments (1)

(1) A piece with its name, without arguments and with another id begins a call, unless the candidate's id has changed
before.

Two pieces with names in one list are two calls, unless they have the same id.

Arguments are whole when their outermost brackets are closed: then no further text can belong to them. `{}` is special:
many servers send it before the real arguments. It is held until it is known to be all.

Cumulative arguments, where each piece repeats all before it, are recognized once the concatenation would not be JSON.

A call is held until its name is known: until it is the name of a tool, or its arguments begin.
"""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.reply_validation import invalid_reply
from dragoman.adapters.common.stream_changes import ChangeRecorder
from dragoman.adapters.paths import Path

from .streamed_call import CallPiece, StreamedCall, read_piece
from .tool_calls import NO_ARGUMENTS, list_call_ids, list_tool_names

__all__ = ["ToolCallAssembler"]

_NONE = "{}"
_NO_NAMES: frozenset[str] = frozenset()  # shared: each stream has several empty sets
_BEGINNINGS = "{ \t\r\n"  # of a text that may begin other arguments
_CUT = ("length", "content_filter")
_PLACE: Path = ("choices", 0, "delta", "tool_calls")


class ToolCallAssembler:
    """The assembler of the calls of one choice. `changes` gets what is more than a change of form."""

    def __init__(self, ctx: Context, changes: ChangeRecorder) -> None:
        self._ctx = ctx
        self._changes = changes
        self._tools = _NO_NAMES
        self._calls: list[StreamedCall] = []
        self._sent = 0
        self._lists = 0
        self._by_place: dict[int | str, StreamedCall] = {}
        self._by_id: dict[str, StreamedCall] = {}
        self._ids = _NO_NAMES  # those that clients get, and got in earlier turns

    @property
    def has_calls(self) -> bool:
        """Whether a call has begun."""
        return any(call.name for call in self._calls)

    def add(self, given: Any) -> Any:
        """Take `tool_calls` of a delta. Returns the pieces to send now: the same object if nothing changes.

        Values that are not calls are returned as they are.
        """
        if type(given) is dict:
            return [*self.add([given])]
        if type(given) is not list:
            return given
        if not self._lists:
            self._tools, self._ids = list_tool_names(self._ctx.request), list_call_ids(self._ctx.request)
        self._lists += 1
        made: list[Any] = []
        for piece in given:
            made += self._add(piece) if type(piece) is dict else [piece]
        return given if len(made) == len(given) and all(map(_is_same, made, given)) else made

    def finish(self, reason: str) -> list[JsonObject]:
        """Return what is still held when the choice finishes, with `{}` for whole calls without arguments.

        `reason` is the hub's finish reason. Raises Fault if a call has no name, unless the choice was cut off.
        """
        made: list[JsonObject] = []
        for call in self._calls:
            if call.name:
                made += self._flush(call)
                if reason == "tool_calls" and call.kind == "function" and not call.arguments.length:
                    self._changes.record_fill(_PLACE, NO_ARGUMENTS)
                    made += call.write(_NONE)
            elif call.arguments.length and reason not in _CUT:
                raise invalid_reply("a tool call has no name")
            elif call.arguments.length:
                self._changes.record_drop(_PLACE, "a call that was cut off before its name")
            else:
                self._changes.record_drop(_PLACE, "a call without a name and arguments")
        return made

    def _add(self, given: JsonObject) -> list[JsonObject]:
        if self._add_plain(given):
            return [given]
        piece = read_piece(given)
        call = self._candidate(piece)
        before: list[JsonObject] = []
        if call is None or self._begins(piece, call):
            name = piece.name
            if call is not None:
                self._changes.record_conversion(_PLACE, "calls that share an index or an id get their own")
                name = name or call.name
                if not call.has_other_id(piece.id):
                    before = self._flush(call)  # no piece can reach it any more
            call = StreamedCall(piece.kind, name)
            self._calls.append(call)
        else:
            call.join(piece, self._tools)
        self._set_addresses(piece, call)
        made = self._write(piece, call)
        if made == [given]:
            return [*before, given]
        for key in piece.unread:
            self._changes.record_drop(_PLACE, f"a streamed call has no place for {key!r}")
        return [*before, *made]

    def _add_plain(self, given: JsonObject) -> bool:
        """Take a piece that only adds to the arguments of a sent call, as most do; False if it is another."""
        place, said = given.get("index"), given.get("function")
        if len(given) != 2 or type(place) is not int or type(said) is not dict or len(said) != 1:
            return False
        call, text = self._by_place.get(place), said.get("arguments")
        if call is None or type(text) is not str or not text or text[0] in _BEGINNINGS:
            return False
        if not call.is_sent or call.is_placeholder or call.index != place or call.kind != "function":
            return False
        call.arguments.add(text)
        call.last_list = self._lists
        return True

    # Which call

    def _candidate(self, piece: CallPiece) -> StreamedCall | None:
        there = None if piece.place is None else self._by_place.get(piece.place)
        if there is not None and (piece.id is None or piece.id in there.ids):
            return there
        known = None if piece.id is None else self._by_id.get(piece.id)
        if known is not None or there is not None or piece.place is not None:
            return known or there
        return self._calls[-1] if self._calls else None

    def _begins(self, piece: CallPiece, call: StreamedCall) -> bool:
        if not call.name:
            return False
        text = (piece.text or "").strip()
        if not piece.name:
            return text[:1] == "{" and call.is_whole and not call.repeats(text)
        is_known = piece.id is not None and piece.id in call.ids
        if call.last_list == self._lists and not is_known:
            return True
        other_id = call.has_other_id(piece.id)
        is_between = (
            bool(piece.text) and call.arguments.length and not call.is_whole
        )  # white space of JSON that goes on
        if piece.name == call.name and not text and not is_between:
            return other_id and not call.changes_id
        if call.is_whole:
            is_repeated = call.name == piece.name and call.repeats(text)
            return not (is_repeated and piece.id is not None and (is_known or call.changes_id))
        if call.arguments.length or piece.name == call.name:
            return piece.name != call.name
        other_index = piece.place is not None and bool(call.places) and piece.place not in call.places
        return other_id or other_index or not self._continues_name(call.name, piece.name)

    def _continues_name(self, so_far: str, more: str) -> bool:
        """Whether two pieces of a name belong together; without a list of tools, all do."""
        if more not in self._tools or any(name.startswith(so_far + more) for name in self._tools):
            return True
        return more.startswith(so_far) and so_far not in self._tools

    # What it becomes

    def _set_addresses(self, piece: CallPiece, call: StreamedCall) -> None:
        call.last_list = self._lists
        if piece.place is not None:
            self._by_place[piece.place] = call
            call.places.add(piece.place)
        if piece.id is not None:
            self._by_id[piece.id] = call
            call.ids.add(piece.id)
            if not call.id and piece.id not in self._ids and not call.is_sent:
                call.id = piece.id
                self._ids |= {piece.id}

    def _write(self, piece: CallPiece, call: StreamedCall) -> list[JsonObject]:
        text = self._take_text(piece.text, call)
        if call.is_sent and text is None and not (piece.rest or call.more_name):
            return []
        call.rest.update(piece.rest)
        if text is not None:
            call.held += text
            call.has_text = True
        return self._send(call) if self._is_ready(call) else []

    def _take_text(self, text: str | None, call: StreamedCall) -> str | None:
        """The new part of the arguments; None if there is none."""
        if not text:
            return text
        if call.kind == "custom":
            call.arguments.add(text)
            return text
        if call.is_placeholder:
            call.is_placeholder = False
            if text.lstrip()[:1] != "{":
                text = _NONE + text
            elif text.strip() == _NONE:
                call.is_placeholder, text = True, None
            self._changes.record_conversion(_PLACE, "an empty object before the arguments is removed")
            if text is None:
                return None
        elif not call.arguments.length and text.strip() == _NONE:
            call.is_placeholder = True
            return ""
        elif (known := call.measure_repetition(text)) is not None:
            self._changes.record_conversion(_PLACE, "arguments that repeat earlier ones are removed")
            text = text[known:] or None
        if text:
            call.arguments.add(text)
        return text

    def _is_ready(self, call: StreamedCall) -> bool:
        if call.is_sent:
            return True
        return bool(call.name) and (not self._tools or call.name in self._tools or bool(call.arguments.length))

    def _flush(self, call: StreamedCall) -> list[JsonObject]:
        """What is held of a call that gets no more."""
        made = [] if call.is_sent else self._send(call)
        if call.is_placeholder:
            call.is_placeholder = False
            call.arguments.add(_NONE)
            made += call.write(_NONE)
        return made

    def _send(self, call: StreamedCall) -> list[JsonObject]:
        if call.is_sent:
            return call.take()
        call.index, self._sent = self._sent, self._sent + 1
        if not call.id:
            call.id = self._ctx.new_id("call")
            self._ids |= {call.id}
        return call.take_first()


def _is_same(made: Any, given: Any) -> bool:
    return made is given
