"""JSON read while it comes, as far as tool calls need it: where a value ends, and the members of one object."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Collection

from .pieces import Piece

__all__ = ["CallObject", "Value"]

SPACE = " \t\r\n"
ARGUMENTS = ("arguments", "parameters")
USUAL_KEYS = frozenset({"name", "type", "id", "function", *ARGUMENTS})


class Value:
    """Finds the end of one value. Brackets are counted, not matched: what a model writes is passed on, not judged."""

    def __init__(self) -> None:
        self._depth = 0
        self._quoted = self._escaped = False
        self.done = False

    @property
    def quoted(self) -> bool:
        return self._quoted

    def take(self, char: str) -> bool:
        """Whether the character belongs to the value; `done` once it was the last, or one came that does not."""
        if self._quoted:
            self._quote(char)
        elif char == '"':
            self._quoted = True
        elif char in "{[":
            self._depth += 1
        elif char in "}]" and self._depth:
            self._depth -= 1
            self.done = not self._depth
        elif not self._depth and char in ",}]" + SPACE:
            self.done = True
            return False
        return True

    def _quote(self, char: str) -> None:
        if self._escaped:
            self._escaped = False
        elif char == "\\":
            self._escaped = True
        elif char == '"':
            self._quoted = False
            self.done = not self._depth


class State(enum.Enum):
    MEMBER = "member"
    KEY = "key"
    COLON = "colon"
    VALUE = "value"
    DONE = "done"
    BROKEN = "broken"


class CallObject:
    """`{"name": ..., "arguments": {...}}`, in either order, after its opening brace.

    The name is told once it is whole, arguments as they come. `names` None takes every name; otherwise another name,
    or an unusual key, is BROKEN. Arguments written as a string of JSON are told as that JSON.
    """

    def __init__(self, names: Collection[str] | None = None) -> None:
        self._names = names
        self.state = State.MEMBER
        self.named = False
        self._key = ""
        self._value = Value()
        self._raw = ""
        self._pending = ""
        self._argued = False

    @property
    def quoted(self) -> bool:
        return self.state is State.KEY or (self.state is State.VALUE and self._value.quoted)

    def take(self, char: str) -> list[Piece]:
        """The next character. After DONE or BROKEN it takes no more."""
        return _STEPS[self.state](self, char)

    def _member(self, char: str) -> list[Piece]:
        if char == '"':
            self.state, self._raw, self._value = State.KEY, '"', Value()
            self._value.take(char)
        elif char == "}":
            return self._close()
        elif char not in SPACE + ",":
            self.state = State.BROKEN
        return []

    def _in_key(self, char: str) -> list[Piece]:
        self._value.take(char)
        self._raw += char
        if self._value.done:
            self._key = str(_parsed(self._raw))
            strange = self._names is not None and self._key not in USUAL_KEYS
            self.state = State.BROKEN if strange else State.COLON
        return []

    def _colon(self, char: str) -> list[Piece]:
        if char == ":":
            self.state, self._raw, self._value = State.VALUE, "", Value()
        elif char not in SPACE:
            self.state = State.BROKEN
        return []

    def _in_value(self, char: str) -> list[Piece]:
        if not self._raw and char in SPACE:
            return []
        mine = self._value.take(char)
        shown = self._key in ARGUMENTS and (self._raw or char)[0] == "{"
        if mine:
            self._raw = "{" if shown else self._raw + char
        told = self._argue(char) if mine and shown else []
        if not self._value.done:
            return told
        self.state = State.MEMBER
        told += self._member_done()
        return told if mine or self.state is State.BROKEN else told + self._member(char)

    def _member_done(self) -> list[Piece]:
        if self._key == "name":
            return self._name(_parsed(self._raw))
        if self._key in ARGUMENTS and self._raw[:1] != "{":
            value = _parsed(self._raw)
            return self._argue(value if isinstance(value, str) else self._raw) if value is not None else []
        return []

    def _name(self, name: object) -> list[Piece]:
        if self.named or not isinstance(name, str) or (self._names is not None and name not in self._names):
            self.state = State.BROKEN
            return []
        self.named = True
        pending, self._pending = self._pending, ""
        return [Piece("call", name), *([Piece("arguments", pending)] if pending else [])]

    def _argue(self, text: str) -> list[Piece]:
        self._argued = True
        if self.named:
            return [Piece("arguments", text)]
        self._pending += text
        return []

    def _close(self) -> list[Piece]:
        self.state = State.DONE if self.named else State.BROKEN
        return [] if self._argued or not self.named else [Piece("arguments", "{}")]


_STEPS: dict[State, Callable[[CallObject, str], list[Piece]]] = {
    State.MEMBER: CallObject._member,
    State.KEY: CallObject._in_key,
    State.COLON: CallObject._colon,
    State.VALUE: CallObject._in_value,
    State.DONE: lambda call, char: [],
    State.BROKEN: lambda call, char: [],
}


def _parsed(raw: str) -> object:
    try:
        return json.loads(raw, strict=False)
    except ValueError:
        return None
