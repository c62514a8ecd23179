"""A configuration file during the checks: a tree of values with their positions, and the problems found so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, TypeAlias

from dragoman.adapters.paths import Path, format_path
from dragoman.adapters.suggestions import find_nearest

from .masks import is_secret, mask_secrets, mask_spans
from .problems import ConfigErrors, Problem, Severity, Span

__all__ = ["ConfigText", "Document", "Node", "Scalar", "did_you_mean"]

Scalar: TypeAlias = str | int | float | bool | None


@dataclass(slots=True)
class Node:
    """A value and its position. `raw` is the text before variables were substituted. A `broken` value has a problem
    already, so further checks skip it."""

    value: Scalar | dict[str, Node] | list[Node]
    span: Span
    key: Span | None = None
    raw: str | None = None
    broken: bool = False

    @property
    def plain(self) -> Any:
        """The value without the positions."""
        if isinstance(self.value, dict):
            return {name: child.plain for name, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.plain for child in self.value]
        return self.value

    @property
    def source_text(self) -> str:
        """A scalar as written in the file: variables appear by name, never by value."""
        return str(self.value if self.raw is None else self.raw)


@dataclass(frozen=True, slots=True)
class ConfigText:
    """A configuration file as people may see it: its lines, with secrets masked, and the line of each value, by the
    value's path as in `providers.lakehouse.base_url`."""

    file: str
    lines: tuple[str, ...]
    places: Mapping[str, int]


class Document:
    """A file by the name that the user gave it: its lines with secrets masked, its tree, and its problems."""

    def __init__(self, file: str, lines: list[str]) -> None:
        self.file = file
        self.lines = lines
        self.root = Node({}, Span(1, 1, 1, 1))
        self.problems: list[Problem] = []
        self.files: list[FilePath] = []
        """Further files that it was read from."""

    def find(self, path: Path) -> Node | None:
        """The node at a path, or None."""
        node: Node | None = self.root
        for part in path:
            if node is None:
                return None
            if isinstance(node.value, dict):
                node = node.value.get(str(part))
            elif isinstance(node.value, list) and isinstance(part, int) and part < len(node.value):
                node = node.value[part]
            else:
                return None
        return node

    def describe(self) -> ConfigText:
        """The file as people may see it."""
        places = {format_path(path): (node.key or node.span).line for path, node in _list_nodes((), self.root)}
        return ConfigText(self.file, tuple(self.lines), places)

    def text(self, *path: str | int) -> str | None:
        """The text at a path; None if there is no text, or a broken one."""
        node = self.find(path)
        return node.value if node and isinstance(node.value, str) and not node.broken else None

    def is_broken(self, *path: str | int) -> bool:
        """True if the value at a path has a problem already, so that nothing follows from what it lacks."""
        node = self.find(path)
        return node is not None and node.broken

    def find_key(self, name: str) -> Span:
        """The place of a key at the beginning of a line."""
        number = next((number for number, line in enumerate(self.lines, 1) if line.startswith(f"{name}:")), 1)
        return Span(number, 1, number, 1 + len(name))

    def mapping(self, *path: str | int) -> dict[str, Node]:
        """The mapping at a path, empty if there is none."""
        node = self.find(path)
        return node.value if node and isinstance(node.value, dict) else {}

    def items(self, *path: str | int) -> list[Node]:
        """The list at a path, empty if there is none."""
        node = self.find(path)
        return node.value if node and isinstance(node.value, list) else []

    def list_texts(self) -> Iterator[tuple[Path, Node, str]]:
        """Every text in the tree: path, node, text."""
        return _list_texts((), self.root)

    def mask_as(self, path: Path, node: Node) -> None:
        """Mask the lines of a node's texts that are secrets if the node is at this path."""
        secrets = [child.span for place, child, text in _list_texts(path, node) if is_secret(place, child.raw or text)]
        self.lines = mask_spans(self.lines, secrets)

    def line_of(self, *path: str | int) -> int:
        """The line of the key at a path, or of the nearest part that exists; counted from 1."""
        return self._find_span(path, at_key=True).line

    def add_problem(
        self,
        path: Path,
        code: str,
        message: str,
        *,
        expected: str = "",
        hint: str = "",
        severity: Severity = "error",
        at_key: bool = False,
        span: Span | None = None,
    ) -> None:
        """Add a problem with the value at a path, or with its key if `at_key` is set. If the path does not exist, its
        nearest part that exists is underlined. A broken value gets no further problem."""
        node = self.find(path)
        if node is not None and node.broken:
            return
        span = span or self._find_span(path, at_key)
        source = self.lines[span.line - 1] if 0 < span.line <= len(self.lines) else ""
        end = span.end_column if span.end_line == span.line else len(source.rstrip()) + 1
        width = max(1, end - span.column)
        key_path, message, expected, hint = map(mask_secrets, (format_path(path), message, expected, hint))
        place = (self.file, span.line, span.column)
        self.problems.append(Problem(*place, code, key_path, message, expected, hint, severity, source, width))

    def fatal_error(
        self, span: Span | None, code: str, message: str, *, expected: str = "", hint: str = ""
    ) -> ConfigErrors:
        """The error to raise if no further check is possible. Without a span it is about the whole file."""
        self.add_problem((), code, message, expected=expected, hint=hint, span=span or Span(0, 0, 0, 0))
        return ConfigErrors(self.problems)

    def _find_span(self, path: Path, at_key: bool) -> Span:
        while path and self.find(path) is None:
            path = path[:-1]
        node = self.find(path) or self.root
        collection = isinstance(node.value, (dict, list))
        empty = node.span.line == node.span.end_line and node.span.column == node.span.end_column
        if node.key and (at_key or collection or empty):
            return node.key
        if collection:  # as long as its first character
            return Span(node.span.line, node.span.column, node.span.line, node.span.column + 1)
        return node.span


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean "this"?`, or an empty text if no known word is similar."""
    close = find_nearest(word, list(known))
    return f'did you mean "{close[0]}"?' if close else ""


def _list_texts(path: Path, node: Node) -> Iterator[tuple[Path, Node, str]]:
    if isinstance(node.value, str):
        yield path, node, node.value
    elif isinstance(node.value, dict):
        for name, child in node.value.items():
            yield from _list_texts((*path, name), child)
    elif isinstance(node.value, list):
        for position, child in enumerate(node.value):
            yield from _list_texts((*path, position), child)


def _list_nodes(path: Path, node: Node) -> Iterator[tuple[Path, Node]]:
    """All nodes below a node, with their paths."""
    children: Iterable[tuple[str | int, Node]] = ()
    if isinstance(node.value, dict):
        children = node.value.items()
    elif isinstance(node.value, list):
        children = enumerate(node.value)
    for name, child in children:
        yield (*path, name), child
        yield from _list_nodes((*path, name), child)
