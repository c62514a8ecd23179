"""Reading the file as a tree whose every part knows where it stands.

The YAML library's node graph is read instead of its objects, because nothing is lost there: keys that stand twice,
aliases, places. The file must be UTF-8 text of at most 1 MiB, without tags, and without aliases that grow or that hold
themselves.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.nodes import Node as YamlNode

from dragoman.adapters.paths import Path as KeyPath
from dragoman.adapters.paths import dotted

from .document import Document, Node, Scalar
from .masks import hide, is_secret, masked, masked_by_name
from .problems import Span

__all__ = ["MOST_BYTES", "parse", "read"]

MOST_BYTES = 1024 * 1024
_MOST_NODES = 100_000
_MOST_DEPTH = 64
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
_TAG = "tag:yaml.org,2002:"
_TEXTS = {"str", "timestamp", "merge", "value"}


def read(path: Path) -> Document:
    """The file as a document, its lines masked. Raises ConfigErrors where it cannot be read as YAML at all."""
    document = Document(str(path), [])
    return parse(document, _decoded(document, _bytes(document, path)))


def parse(document: Document, text: str) -> Document:
    """The empty document with the text in it. Raises ConfigErrors."""
    lines = text.splitlines()
    document.lines = [masked_by_name(line) for line in lines]  # until it is known where the secrets stand
    graph = _graph(document, text)
    if graph is None:
        raise document.fatal(None, "empty", "the file is empty", hint="`dragoman init` writes one to begin with")
    if not isinstance(graph, MappingNode):
        raise document.fatal(
            _start(graph), "invalid-value", "the file is not a mapping", expected="lines of `key: value`"
        )
    builder = _Builder(document)
    document.root = builder.build(graph, ())
    document.lines = hide(lines, builder.secrets)
    for key_path, code, message, span in builder.notes:
        document.add(key_path, code, message, span=span)
        node = document.find(key_path)
        if node is not None and code == "tag":
            node.broken = True
    return document


def _bytes(document: Document, path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError as error:
        hint = f"looked for {path.absolute()}; `dragoman init` writes a file to begin with"
        raise document.fatal(None, "no-file", error.strerror or "no such file", hint=hint) from None
    except OSError as error:
        raise document.fatal(None, "unreadable", f"{error.strerror}{_mode(path)}") from None
    if len(data) > MOST_BYTES:
        raise document.fatal(None, "too-large", "the file is larger than 1 MiB")
    return data


def _mode(path: Path) -> str:
    try:
        return f" (mode {stat.filemode(path.stat().st_mode)})"
    except OSError:
        return ""


def _decoded(document: Document, data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"the file is not UTF-8 text: byte 0x{data[error.start]:02x} at offset {error.start}"
        raise document.fatal(None, "not-text", message) from None
    if found := _CONTROL.search(text):
        line, column = text.count("\n", 0, found.start()) + 1, found.start() - text.rfind("\n", 0, found.start())
        message = f"the file holds the control character U+{ord(found[0]):04X}; is it a text file?"
        raise document.fatal(Span(line, column, line, column + 1), "not-text", message)
    return text


def _graph(document: Document, text: str) -> YamlNode | None:
    try:
        graph: YamlNode | None = YAML(typ="rt", pure=True).compose(StringIO(text))
    except MarkedYAMLError as error:
        raise _syntax(document, error) from None
    except YAMLError as error:
        raise document.fatal(None, "syntax", masked(str(error).splitlines()[0])) from None
    except RecursionError:
        raise document.fatal(None, "too-deep", f"values are nested more than {_MOST_DEPTH} levels deep") from None
    return graph


def _syntax(document: Document, error: MarkedYAMLError) -> Exception:
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return document.fatal(None, "syntax", masked(str(error.problem)))
    span = Span(mark.line + 1, mark.column + 1, mark.line + 1, mark.column + 2)
    line = document.lines[mark.line] if mark.line < len(document.lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())] or line[mark.column : mark.column + 1] == "\t":
        return document.fatal(span, "tab", "tabs cannot indent YAML", hint="use spaces")
    message = masked(str(error.problem))
    if "another document" in message:
        return document.fatal(span, "syntax", "a second document begins here; a configuration is one document")
    if "expected <block end>" in message:
        return document.fatal(span, "syntax", "this line is not indented like the lines that it belongs to")
    if error.context and error.context_mark:
        message += f", {error.context} that begins on line {error.context_mark.line + 1}"
    return document.fatal(span, "syntax", message, hint=_advice(line, line[mark.column :], message))


def _advice(line: str, rest: str, message: str) -> str:
    if "flow mapping" in message and "${" in line:
        return 'inside { } a variable needs quotes: "${NAME}"'
    first = "*" if "alias" in message else rest[:1]
    if first in ("*", "@", "%", "`", "&", "!"):
        return f"put a text that begins with {first} into quotes"
    if "mapping values are not allowed" in message:
        return "is this line indented as the one above? A text with a colon in it needs quotes"
    return ""


class _Builder:
    """Makes the tree from the YAML library's graph. Aliases become copies, counted.

    `secrets` are the places of what must not be shown, `notes` the problems to add once that is known: path, code,
    message, place.
    """

    def __init__(self, document: Document) -> None:
        self.secrets: list[Span] = []
        self.notes: list[tuple[KeyPath, str, str, Span]] = []
        self._document = document
        self._count = 0
        self._open: list[YamlNode] = []

    def build(self, graph: YamlNode, path: KeyPath, key: Span | None = None) -> Node:
        self._count += 1
        if self._count > _MOST_NODES:
            message = f"the file has more than {_MOST_NODES} values, aliases counted each time"
            raise self._document.fatal(_start(graph), "alias-bomb", message)
        if any(graph is node for node in self._open):
            raise self._document.fatal(_start(graph), "recursive-alias", "this value holds an alias of itself")
        if len(self._open) >= _MOST_DEPTH:
            message = f"values are nested more than {_MOST_DEPTH} levels deep"
            raise self._document.fatal(_start(graph), "too-deep", message)
        self._open.append(graph)
        node = Node(self._value(graph, path), _span(graph), key)
        self._open.pop()
        return node

    def _value(self, graph: YamlNode, path: KeyPath) -> Scalar | dict[str, Node] | list[Node]:
        kind = str(graph.tag).removeprefix(_TAG)
        if isinstance(graph, ScalarNode) and kind in _TEXTS | {"null", "bool", "int", "float"}:
            if is_secret(path, graph.value):
                self.secrets.append(_span(graph))
            return _scalar(kind, graph.value)
        if isinstance(graph, MappingNode) and kind == "map":
            return dict(self._entries(graph, path))
        if isinstance(graph, SequenceNode) and kind == "seq":
            return [self.build(item, (*path, position)) for position, item in enumerate(graph.value)]
        self.notes.append((path, "tag", "YAML tags are not used here; write ${NAME} or ${file:PATH}", _start(graph)))
        return None

    def _entries(self, graph: MappingNode, path: KeyPath) -> Iterator[tuple[str, Node]]:
        first: dict[str, int] = {}
        for key, value in graph.value:
            span = _span(key)
            if not isinstance(key, ScalarNode):
                self.notes.append((path, "invalid-value", "a key must be plain text", _start(key)))
                continue
            name = str(key.value)
            if name in first:
                owner = dotted(path) or "the file"
                message = f'the key "{name}" stands twice in {owner}: first on line {first[name]}'
                self.notes.append(((*path, name), "duplicate-key", message, span))
            first.setdefault(name, span.line)
            yield name, self.build(value, (*path, name), span)


def _scalar(kind: str, text: str) -> Scalar:
    digits = text.replace("_", "").lower()
    try:
        if kind == "int":
            return int(digits, 0 if digits.lstrip("+-").startswith(("0x", "0o", "0b")) else 10)
        if kind == "float":
            return float(digits.replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError:
        return text  # too long a number
    if kind == "bool":
        return digits in ("true", "yes", "on")
    return None if kind == "null" else text


def _span(graph: YamlNode) -> Span:
    start, end = graph.start_mark, graph.end_mark
    return Span(start.line + 1, start.column + 1, end.line + 1, end.column + 1)


def _start(graph: YamlNode) -> Span:
    start = graph.start_mark
    return Span(start.line + 1, start.column + 1, start.line + 1, start.column + 2)
