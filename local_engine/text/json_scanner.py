"""Incremental scanners for the JSON of tool calls: where a value ends, and the members of one call object."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Collection

from .segments import Segment

__all__ = ["JsonCallParser", "JsonValueScanner"]

SPACE = " \t\r\n"
ARGUMENTS = ("arguments", "parameters")
KNOWN_KEYS = frozenset({"name", "type", "id", "function", *ARGUMENTS})


class JsonValueScanner:
    """Finds the end of one value. Brackets are counted but not matched: the text is passed on, not validated."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = self._escaped = False
        self.done = False

    @property
    def is_quoted(self) -> bool:
        return self._in_string

    def add(self, char: str) -> bool:
        """Add a character; return whether it belongs to the value. `done` is set at the end of the value."""
        if self._in_string:
            self._add_to_string(char)
        elif char == '"':
            self._in_string = True
        elif char in "{[":
            self._depth += 1
        elif char in "}]" and self._depth:
            self._depth -= 1
            self.done = not self._depth
        elif not self._depth and char in ",}]" + SPACE:
            self.done = True
            return False
        return True

    def _add_to_string(self, char: str) -> None:
        if self._escaped:
            self._escaped = False
        elif char == "\\":
            self._escaped = True
        elif char == '"':
            self._in_string = False
            self.done = not self._depth


class State(enum.Enum):
    """The states of a JsonCallParser."""

    MEMBER = "member"
    KEY = "key"
    COLON = "colon"
    VALUE = "value"
    DONE = "done"
    BROKEN = "broken"


class JsonCallParser:
    """Parses `{"name": ..., "arguments": {...}}`, in either order, after its opening brace.

    The name is returned when it is complete, arguments as they arrive. With `names` None, every name is accepted;
    otherwise, another name or an unknown key leads to BROKEN. Arguments in a JSON string are returned as their JSON.
    """

    def __init__(self, names: Collection[str] | None = None) -> None:
        self._names = names
        self.state = State.MEMBER
        self.has_name = False
        self._key = ""
        self._value = JsonValueScanner()
        self._raw = ""
        self._pending = ""
        self._has_arguments = False

    @property
    def is_quoted(self) -> bool:
        return self.state is State.KEY or (self.state is State.VALUE and self._value.is_quoted)

    def add(self, char: str) -> list[Segment]:
        """Add the next character. After DONE or BROKEN, characters are ignored."""
        return _STEPS[self.state](self, char)

    def _parse_member(self, char: str) -> list[Segment]:
        if char == '"':
            self.state, self._raw, self._value = State.KEY, '"', JsonValueScanner()
            self._value.add(char)
        elif char == "}":
            return self._close()
        elif char not in SPACE + ",":
            self.state = State.BROKEN
        return []

    def _parse_key(self, char: str) -> list[Segment]:
        self._value.add(char)
        self._raw += char
        if self._value.done:
            self._key = str(_load_json(self._raw))
            is_unknown = self._names is not None and self._key not in KNOWN_KEYS
            self.state = State.BROKEN if is_unknown else State.COLON
        return []

    def _parse_colon(self, char: str) -> list[Segment]:
        if char == ":":
            self.state, self._raw, self._value = State.VALUE, "", JsonValueScanner()
        elif char not in SPACE:
            self.state = State.BROKEN
        return []

    def _parse_value(self, char: str) -> list[Segment]:
        if not self._raw and char in SPACE:
            return []
        belongs = self._value.add(char)
        is_arguments = self._key in ARGUMENTS and (self._raw or char)[0] == "{"
        if belongs:
            self._raw = "{" if is_arguments else self._raw + char
        segments = self._add_arguments(char) if belongs and is_arguments else []
        if not self._value.done:
            return segments
        self.state = State.MEMBER
        segments += self._finish_member()
        return segments if belongs or self.state is State.BROKEN else segments + self._parse_member(char)

    def _finish_member(self) -> list[Segment]:
        if self._key == "name":
            return self._set_name(_load_json(self._raw))
        if self._key in ARGUMENTS and self._raw[:1] != "{":
            value = _load_json(self._raw)
            return self._add_arguments(value if isinstance(value, str) else self._raw) if value is not None else []
        return []

    def _set_name(self, name: object) -> list[Segment]:
        if self.has_name or not isinstance(name, str) or (self._names is not None and name not in self._names):
            self.state = State.BROKEN
            return []
        self.has_name = True
        pending, self._pending = self._pending, ""
        return [Segment("call", name), *([Segment("arguments", pending)] if pending else [])]

    def _add_arguments(self, text: str) -> list[Segment]:
        self._has_arguments = True
        if self.has_name:
            return [Segment("arguments", text)]
        self._pending += text
        return []

    def _close(self) -> list[Segment]:
        self.state = State.DONE if self.has_name else State.BROKEN
        return [] if self._has_arguments or not self.has_name else [Segment("arguments", "{}")]


_STEPS: dict[State, Callable[[JsonCallParser, str], list[Segment]]] = {
    State.MEMBER: JsonCallParser._parse_member,
    State.KEY: JsonCallParser._parse_key,
    State.COLON: JsonCallParser._parse_colon,
    State.VALUE: JsonCallParser._parse_value,
    State.DONE: lambda call, char: [],
    State.BROKEN: lambda call, char: [],
}


def _load_json(raw: str) -> object:
    try:
        return json.loads(raw, strict=False)
    except ValueError:
        return None
