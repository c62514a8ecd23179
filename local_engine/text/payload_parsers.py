"""Incremental parsers for the payload between the markers of a tool call: JSON objects, `name[ARGS]{...}`, Python."""

from __future__ import annotations

import ast
import json
from collections.abc import Collection
from typing import Any, Protocol

from . import json_scanner
from .json_scanner import SPACE, JsonCallParser, JsonValueScanner
from .segments import Segment
from .tool_call_formats import ToolCallFormat

__all__ = ["PAYLOAD_PARSERS", "PayloadParser", "parse_python_calls"]

ARGS = "[ARGS]"
MAX_NAME = 256
JSON_WORDS = {"true": True, "false": False, "null": None}


class PayloadParser(Protocol):
    """Accepts characters until it is `done`. It may reject the last one: `add` then returns None.

    `raw` is the accepted text since the start of the last call.
    """

    done: bool
    raw: str

    @property
    def is_quoted(self) -> bool:
        """Whether the next character is inside a string, so that a marker would be text."""
        ...

    @property
    def in_call(self) -> bool:
        """Whether a call has started and not ended."""
        ...

    def add(self, char: str) -> list[Segment] | None:
        """Add a character; return the segments that it completes, or None to reject it."""
        ...


class JsonCallsParser:
    """Parses JSON objects with separators around them; one object if the format has no separators."""

    def __init__(self, tool_format: ToolCallFormat, names: Collection[str] | None) -> None:
        self._format = tool_format
        self._names = names
        self._call: JsonCallParser | None = None
        self.done = False
        self.raw = ""

    @property
    def is_quoted(self) -> bool:
        return self._call is not None and self._call.is_quoted

    @property
    def in_call(self) -> bool:
        return self._call is not None and self._call.has_name

    def add(self, char: str) -> list[Segment] | None:
        if self._call is None:
            return self._add_between_calls(char)
        segments = self._call.add(char)
        self.raw = char if self.in_call else self.raw + char
        if self._call.state is json_scanner.State.DONE:
            self._call, self.raw = None, ""
            self.done = not self._format.separators
        elif self._call.state is json_scanner.State.BROKEN:
            self.done = True
        return segments

    def _add_between_calls(self, char: str) -> list[Segment] | None:
        if char == "{":
            self._call = JsonCallParser(self._names)
        elif char not in SPACE + self._format.separators:
            self.done = True
            return None
        self.raw += char
        self.done = self._call is None and bool(char == self._format.suffix and char.strip())
        return []


class NamedCallParser:
    """Parses `name[ARGS]{...}`; the marker in the middle is optional."""

    def __init__(self, tool_format: ToolCallFormat, names: Collection[str] | None) -> None:
        self._value: JsonValueScanner | None = None
        self.done = False
        self.raw = ""

    @property
    def is_quoted(self) -> bool:
        return self._value is not None and self._value.is_quoted

    @property
    def in_call(self) -> bool:
        return self._value is not None

    def add(self, char: str) -> list[Segment] | None:
        if self._value is not None:
            self._value.add(char)
            self.done = self._value.done
            return [Segment("arguments", char)]
        self.raw += char
        if char != "{":
            self.done = len(self.raw) > MAX_NAME
            return []
        name = self.raw[:-1].strip().removesuffix(ARGS).strip()
        if not name:
            self.done = True
            return []
        self._value = JsonValueScanner()
        self._value.add(char)
        self.raw = ""
        return [Segment("call", name), Segment("arguments", char)]


class PythonCallsParser:
    """Parses `[f(a=1), g()]` when its brackets are closed."""

    def __init__(self, tool_format: ToolCallFormat, names: Collection[str] | None) -> None:
        self._names = names
        self._depth = 0
        self._quote = ""
        self._escaped = False
        self.done = False
        self.in_call = False
        self.raw = ""

    @property
    def is_quoted(self) -> bool:
        return bool(self._quote)

    def add(self, char: str) -> list[Segment] | None:
        if not self.raw.strip() and char not in SPACE + "[":
            self.done = True
            return None
        self.raw += char
        self._count_brackets(char)
        if self._depth or not self.raw.strip():
            return []
        self.done = True
        calls = parse_python_calls(self.raw, self._names)
        if calls is None:
            return []
        self.raw = ""
        return calls

    def _count_brackets(self, char: str) -> None:
        if self._escaped:
            self._escaped = False
        elif self._quote:
            self._escaped = char == "\\"
            self._quote = "" if char == self._quote else self._quote
        elif char in "\"'":
            self._quote = char
        else:
            self._depth += (char in "([{") - (char in ")]}")


def parse_python_calls(text: str, names: Collection[str] | None) -> list[Segment] | None:
    """Parse a Python list of calls with literal keyword arguments; return None for anything else."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        if not isinstance(tree, ast.List) or not tree.elts:
            return None
        return [piece for node in tree.elts for piece in _parse_call(node, names)]
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _parse_call(node: ast.expr, names: Collection[str] | None) -> list[Segment]:
    if not isinstance(node, ast.Call) or node.args:
        raise ValueError("not a call with keyword arguments")
    name = ast.unparse(node.func)
    if names is not None and name not in names:
        raise ValueError("not a tool of the request")
    arguments = {str(word.arg): _parse_literal(word.value) for word in node.keywords if word.arg}
    if len(arguments) < len(node.keywords):
        raise ValueError("duplicate or unnamed arguments")
    return [Segment("call", name), Segment("arguments", json.dumps(arguments, ensure_ascii=False, allow_nan=False))]


def _parse_literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Name) and node.id in JSON_WORDS:
        return JSON_WORDS[node.id]
    if isinstance(node, ast.Dict):
        return {_parse_key(key): _parse_literal(value) for key, value in zip(node.keys, node.values, strict=True)}
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_parse_literal(value) for value in node.elts]
    value = ast.literal_eval(node)
    if not isinstance(value, (str, int, float, bool, type(None))):
        raise ValueError("not a JSON value")
    return value


def _parse_key(node: ast.expr | None) -> str:
    key = ast.literal_eval(node) if node is not None else None
    if not isinstance(key, str):
        raise ValueError("a key must be a string")
    return key


PAYLOAD_PARSERS: dict[str, type[JsonCallsParser] | type[NamedCallParser] | type[PythonCallsParser]] = {
    "objects": JsonCallsParser,
    "named": NamedCallParser,
    "python": PythonCallsParser,
}
