"""The pieces of streamed tool calls, and what is known of a call while its pieces come."""

from __future__ import annotations

from typing import NamedTuple

from dragoman.adapters.call import JsonObject

from .arguments import Arguments
from .tool_calls import encode_arguments, read_id, split_call

__all__ = ["CallPiece", "StreamedCall", "read_piece"]

_KEYS = {"function": "arguments", "custom": "input"}
_AFTER_STRING = ",:}] \t\r\n"  # what may follow a string in JSON
_BEFORE_VALUE = ":,["  # what may precede an object in JSON


class CallPiece(NamedTuple):
    """What a piece says. `place` is its index; `text` is None if it has no arguments; `rest` are its other keys, and
    `unread` the names of those that no call has a place for."""

    place: int | str | None
    id: str | None
    kind: str
    name: str
    text: str | None
    rest: JsonObject
    unread: list[str]


class StreamedCall:
    """A call. `held` are arguments that have not been sent, `rest` other keys that have not."""

    __slots__ = (
        "arguments",
        "changes_id",
        "has_text",
        "held",
        "id",
        "ids",
        "index",
        "is_cumulative",
        "is_placeholder",
        "is_sent",
        "kind",
        "last_list",
        "more_name",
        "name",
        "places",
        "rest",
    )

    def __init__(self, kind: str, name: str) -> None:
        self.kind = kind
        self.name = name
        self.index = 0
        self.id = ""
        self.last_list = 0  # the number of the list with its last piece
        self.ids: set[str] = set()  # the server's
        self.places: set[int | str] = set()
        self.arguments = Arguments()
        self.held = ""
        self.has_text = False  # a piece to be sent has the key of the arguments
        self.more_name = ""
        self.rest: JsonObject = {}
        self.is_sent = False
        self.is_placeholder = False  # `{}` came, and may not be the arguments
        self.is_cumulative = False
        self.changes_id = False

    @property
    def is_whole(self) -> bool:
        """Whether no further text can belong to the arguments."""
        return self.kind == "function" and (self.is_placeholder or self.arguments.is_closed)

    def has_other_id(self, server_id: str | None) -> bool:
        """Whether the call has ids, and the server's id of a piece is none of them."""
        return server_id is not None and bool(self.ids) and server_id not in self.ids

    def repeats(self, text: str) -> bool:
        """Whether a text repeats the whole arguments, or replaces the placeholder."""
        return self.is_placeholder or text == self.arguments.text().strip()

    def measure_repetition(self, text: str) -> int | None:
        """The length of the beginning of a text that repeats all arguments so far; None if it does not."""
        known = self.arguments.length
        if not known or len(text) < known or not (self.is_cumulative or text[0] in "{ \n"):
            return None
        before = self.arguments.text()
        if not text.startswith(before):
            return None
        self.is_cumulative |= self.arguments.is_closed or not self._may_continue(before, text)
        return known if self.is_cumulative else None

    def _may_continue(self, before: str, text: str) -> bool:
        """Whether the text, which begins as the arguments before it, may follow them in valid JSON."""
        if self.arguments.is_in_string:
            end = text.find('"') + 1
            return text[end : end + 1] in _AFTER_STRING
        return before.rstrip()[-1:] in _BEFORE_VALUE

    def join(self, piece: CallPiece, tools: frozenset[str]) -> None:
        """Let a piece continue the call: what it says of the id and of the name. `tools` are names of tools."""
        if not (self.is_sent or self.name or self.arguments.length):
            self.kind = piece.kind
        self.changes_id |= self.has_other_id(piece.id)
        if not piece.name or piece.name == self.name:
            return
        grown = self.name + piece.name
        is_cumulative = piece.name.startswith(self.name) and piece.name in tools
        if is_cumulative and not any(name.startswith(grown) for name in tools):
            grown = piece.name
        if self.is_sent:
            self.more_name += grown[len(self.name) :]
        self.name = grown

    def write(self, text: str) -> list[JsonObject]:
        """A piece that only adds to the arguments."""
        return [{"index": self.index, self.kind: {_KEYS[self.kind]: text}}]

    def take_first(self) -> list[JsonObject]:
        """The first piece, with all that is held."""
        self.is_sent = True
        said: JsonObject = {"name": self.name, **self._take_text()}
        return [{"index": self.index, "id": self.id, "type": self.kind, self.kind: said, **self._take_rest()}]

    def take(self) -> list[JsonObject]:
        """A later piece, with all that is held."""
        said = self._take_text()
        if self.more_name:
            said, self.more_name = {"name": self.more_name, **said}, ""
        return [{"index": self.index, self.kind: said, **self._take_rest()}]

    def _take_text(self) -> JsonObject:
        said: JsonObject = {_KEYS[self.kind]: self.held} if self.has_text else {}
        self.held, self.has_text = "", False
        return said

    def _take_rest(self) -> JsonObject:
        rest, self.rest = self.rest, {}
        return rest


def read_piece(given: JsonObject) -> CallPiece:
    """Read a piece in any provider's form."""
    kind, said, rest = split_call(given)
    key = _KEYS[kind]
    index, name, text = given.get("index"), said.get("name"), said.get(key)
    unread = [one for one in said if said[one] and one != key and not (one == "name" and type(name) is str)]
    unread += [one for one in _KEYS if given.get(one) and given[one] is not said]
    return CallPiece(
        index if type(index) is int or type(index) is str else None,
        read_id(given),
        kind,
        name if type(name) is str else "",
        text if text is None or type(text) is str else encode_arguments(text),
        rest,
        unread,
    )
