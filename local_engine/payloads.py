"""What stands between a tool call's markers, read while it comes: JSON objects, `name[ARGS]{...}`, Python calls."""

from __future__ import annotations

import ast
import json
from collections.abc import Collection
from typing import Any, Protocol

from . import jsonscan
from .jsonscan import SPACE, CallObject, Value
from .pieces import Piece
from .toolforms import Form

__all__ = ["PAYLOADS", "Payload", "read_python"]

ARGS = "[ARGS]"
LONGEST_NAME = 256
JSON_WORDS = {"true": True, "false": False, "null": None}


class Payload(Protocol):
    """Takes characters until it is `over`; the last one given may be refused, and `take` then gives None.

    `raw` is what was taken since the last call began; `quoted` says that a marker here would be text.
    """

    over: bool
    raw: str

    @property
    def quoted(self) -> bool: ...

    @property
    def inside(self) -> bool:
        """Whether a call has begun and not ended."""
        ...

    def take(self, char: str) -> list[Piece] | None: ...


class Objects:
    """JSON objects, with separators around them. A form without separators holds one object."""

    def __init__(self, form: Form, names: Collection[str] | None) -> None:
        self._form = form
        self._names = names
        self._call: CallObject | None = None
        self.over = False
        self.raw = ""

    @property
    def quoted(self) -> bool:
        return self._call is not None and self._call.quoted

    @property
    def inside(self) -> bool:
        return self._call is not None and self._call.named

    def take(self, char: str) -> list[Piece] | None:
        if self._call is None:
            return self._between(char)
        told = self._call.take(char)
        self.raw = char if self.inside else self.raw + char
        if self._call.state is jsonscan.State.DONE:
            self._call, self.raw = None, ""
            self.over = not self._form.around
        elif self._call.state is jsonscan.State.BROKEN:
            self.over = True
        return told

    def _between(self, char: str) -> list[Piece] | None:
        if char == "{":
            self._call = CallObject(self._names)
        elif char not in SPACE + self._form.around:
            self.over = True
            return None
        self.raw += char
        self.over = self._call is None and bool(char == self._form.tail and char.strip())
        return []


class Named:
    """`name[ARGS]{...}`, the marker in the middle being optional."""

    def __init__(self, form: Form, names: Collection[str] | None) -> None:
        self._value: Value | None = None
        self.over = False
        self.raw = ""

    @property
    def quoted(self) -> bool:
        return self._value is not None and self._value.quoted

    @property
    def inside(self) -> bool:
        return self._value is not None

    def take(self, char: str) -> list[Piece] | None:
        if self._value is not None:
            self._value.take(char)
            self.over = self._value.done
            return [Piece("arguments", char)]
        self.raw += char
        if char != "{":
            self.over = len(self.raw) > LONGEST_NAME
            return []
        name = self.raw[:-1].strip().removesuffix(ARGS).strip()
        if not name:
            self.over = True
            return []
        self._value = Value()
        self._value.take(char)
        self.raw = ""
        return [Piece("call", name), Piece("arguments", char)]


class Python:
    """`[f(a=1), g()]`: read once its brackets are closed."""

    def __init__(self, form: Form, names: Collection[str] | None) -> None:
        self._names = names
        self._depth = 0
        self._quote = ""
        self._escaped = False
        self.over = False
        self.inside = False
        self.raw = ""

    @property
    def quoted(self) -> bool:
        return bool(self._quote)

    def take(self, char: str) -> list[Piece] | None:
        if not self.raw.strip() and char not in SPACE + "[":
            self.over = True
            return None
        self.raw += char
        self._count(char)
        if self._depth or not self.raw.strip():
            return []
        self.over = True
        calls = read_python(self.raw, self._names)
        if calls is None:
            return []
        self.raw = ""
        return calls

    def _count(self, char: str) -> None:
        if self._escaped:
            self._escaped = False
        elif self._quote:
            self._escaped = char == "\\"
            self._quote = "" if char == self._quote else self._quote
        elif char in "\"'":
            self._quote = char
        else:
            self._depth += (char in "([{") - (char in ")]}")


def read_python(text: str, names: Collection[str] | None) -> list[Piece] | None:
    """The calls of a Python list of calls with literal keyword arguments; None for anything else."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        if not isinstance(tree, ast.List) or not tree.elts:
            return None
        return [piece for node in tree.elts for piece in _python_call(node, names)]
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _python_call(node: ast.expr, names: Collection[str] | None) -> list[Piece]:
    if not isinstance(node, ast.Call) or node.args:
        raise ValueError("no call with keyword arguments")
    name = ast.unparse(node.func)
    if names is not None and name not in names:
        raise ValueError("no tool of the request")
    arguments = {str(word.arg): _literal(word.value) for word in node.keywords if word.arg}
    if len(arguments) < len(node.keywords):
        raise ValueError("arguments twice, or without a name")
    return [Piece("call", name), Piece("arguments", json.dumps(arguments, ensure_ascii=False, allow_nan=False))]


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Name) and node.id in JSON_WORDS:
        return JSON_WORDS[node.id]
    if isinstance(node, ast.Dict):
        return {_key(key): _literal(value) for key, value in zip(node.keys, node.values, strict=True)}
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_literal(value) for value in node.elts]
    value = ast.literal_eval(node)
    if not isinstance(value, (str, int, float, bool, type(None))):
        raise ValueError("no value of JSON")
    return value


def _key(node: ast.expr | None) -> str:
    key = ast.literal_eval(node) if node is not None else None
    if not isinstance(key, str):
        raise ValueError("a key is a string")
    return key


PAYLOADS: dict[str, type[Objects] | type[Named] | type[Python]] = {
    "objects": Objects,
    "named": Named,
    "python": Python,
}
