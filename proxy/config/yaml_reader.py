"""Reader of the configuration file: YAML as a tree of values with their positions.

It reads the YAML library's node graph instead of its objects, because only the graph has duplicate keys, aliases and
positions. The file must be UTF-8 text of at most 1 MiB, without tags, and without aliases that multiply or contain
themselves. Merge keys (`<<`) are merged; top-level keys that begin with `x-` are left out: they hold what aliases name.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.nodes import Node as YamlNode

from dragoman.adapters.paths import Path as KeyPath
from dragoman.adapters.paths import format_path

from .document import Document, Node, Scalar
from .masks import is_secret, mask_named_secrets, mask_spans
from .problems import ConfigErrors, Span
from .yaml_syntax import compose, compose_sections

__all__ = ["MAX_BYTES", "parse_document", "read_document"]

MAX_BYTES = 1024 * 1024
_MAX_NODES = 100_000
_MAX_DEPTH = 64
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
_TAG = "tag:yaml.org,2002:"
_TEXTS = {"str", "timestamp", "merge", "value"}
_MERGE = f"{_TAG}merge"
_EXTENSION = "x-"
"""How names of top-level keys begin that are not for dragoman."""


def read_document(path: Path) -> Document:
    """Read the file into a document with masked lines. Raises ConfigErrors if it cannot be read as YAML."""
    document = Document(str(path), [])
    return parse_document(document, _decode(document, _read_bytes(document, path)))


def parse_document(document: Document, text: str) -> Document:
    """Fill the empty document from the text, and return it. A section with a syntax error stays empty and broken.
    Raises ConfigErrors."""
    lines = text.splitlines()
    document.lines = [mask_named_secrets(line) for line in lines]  # until the positions of secrets are known
    builder = _Builder(document)
    try:
        sections = _compose(document, text)
        document.root = builder.build_root(sections)
    except RecursionError:
        raise document.fatal_error(None, "too-deep", f"values are nested more than {_MAX_DEPTH} levels deep") from None
    is_whole = None not in sections.values()
    document.lines = mask_spans(lines if is_whole else document.lines, builder.secrets)
    for key_path, code, message, span in builder.problems:
        document.add_problem(key_path, code, message, span=span)
        node = document.find(key_path)
        if node is not None and code == "tag":
            node.broken = True
    return document


def _compose(document: Document, text: str) -> Mapping[str, YamlNode | None]:
    """The whole graph under an empty name; or, if the text has a syntax error, a graph for each section."""
    try:
        graph = compose(document, text)
    except ConfigErrors:
        document.problems.clear()  # the sections tell the same
        if sections := compose_sections(document, text):
            return sections
        raise
    if graph is None:
        raise document.fatal_error(None, "empty", "the file is empty", hint="`dragoman init` writes one to begin with")
    if not isinstance(graph, MappingNode):
        raise document.fatal_error(
            _start(graph), "invalid-value", "the file is not a mapping", expected="lines of `key: value`"
        )
    return {"": graph}


def _read_bytes(document: Document, path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        hint = f"looked for {path.absolute()}; `dragoman init` writes a file to begin with"
        raise document.fatal_error(None, "no-file", error.strerror or "no such file", hint=hint) from None
    except OSError as error:
        message = f"{error.strerror}{_describe_mode(path)}"
        raise document.fatal_error(None, "unreadable", message, hint=_suggest_access(error)) from None
    if len(data) > MAX_BYTES:
        raise document.fatal_error(None, "too-large", "the file is larger than 1 MiB")
    return data


def _describe_mode(path: Path) -> str:
    try:
        return f" (mode {stat.filemode(path.stat().st_mode)})"
    except OSError:
        return ""


def _suggest_access(error: OSError) -> str:
    match error:
        case PermissionError():
            return f"dragoman runs as user {os.geteuid()}, who must be able to read the file and to enter its folder"
        case IsADirectoryError():
            return "name a file; if you mount it into a container, check its path: missing files become folders"
        case _:
            return ""


def _decode(document: Document, data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"the file is not UTF-8 text: byte 0x{data[error.start]:02x} at offset {error.start}"
        raise document.fatal_error(None, "not-text", message) from None
    if match := _CONTROL.search(text):
        line, column = text.count("\n", 0, match.start()) + 1, match.start() - text.rfind("\n", 0, match.start())
        message = f"the file contains the control character U+{ord(match[0]):04X}; is it a text file?"
        raise document.fatal_error(Span(line, column, line, column + 1), "not-text", message)
    return text


class _Builder:
    """Builds the tree from the YAML library's graph. Aliases become copies, which count toward the limit of values.

    `secrets` are the spans to mask, `problems` those to add after masking: path, code, message, span.
    """

    def __init__(self, document: Document) -> None:
        self.secrets: list[Span] = []
        self.problems: list[tuple[KeyPath, str, str, Span]] = []
        self._document = document
        self._count = 0
        self._open: list[YamlNode] = []

    def build_root(self, sections: Mapping[str, YamlNode | None]) -> Node:
        """The tree of the file, or of those of its sections that could be read; the others are empty and broken."""
        entries: dict[str, Node] = {}
        for name, graph in sections.items():
            if isinstance(graph, MappingNode):
                entries |= dict(self._build_entries(graph, ()))
            else:
                key = self._document.find_key(name)
                entries[name] = Node({}, key, key, broken=True)
        return Node({name: node for name, node in entries.items() if not name.startswith(_EXTENSION)}, Span(1, 1, 1, 1))

    def build(self, graph: YamlNode, path: KeyPath, key: Span | None = None) -> Node:
        """The tree below a node of the graph. Raises ConfigErrors beyond the limits."""
        self._count += 1
        if self._count > _MAX_NODES:
            message = f"the file has more than {_MAX_NODES} values; each use of an alias counts"
            raise self._document.fatal_error(_start(graph), "alias-bomb", message)
        if any(graph is node for node in self._open):
            raise self._document.fatal_error(_start(graph), "recursive-alias", "this value contains an alias of itself")
        if len(self._open) >= _MAX_DEPTH:
            message = f"values are nested more than {_MAX_DEPTH} levels deep"
            raise self._document.fatal_error(_start(graph), "too-deep", message)
        self._open.append(graph)
        node = Node(self._build_value(graph, path), _span(graph), key)
        self._open.pop()
        return node

    def _build_value(self, graph: YamlNode, path: KeyPath) -> Scalar | dict[str, Node] | list[Node]:
        kind = str(graph.tag).removeprefix(_TAG)
        if isinstance(graph, ScalarNode) and kind in _TEXTS | {"null", "bool", "int", "float"}:
            if is_secret(path, graph.value):
                self.secrets.append(_span(graph))
            return _parse_scalar(kind, graph.value)
        if isinstance(graph, MappingNode) and kind == "map":
            return dict(self._build_entries(graph, path))
        if isinstance(graph, SequenceNode) and kind == "seq":
            return [self.build(item, (*path, position)) for position, item in enumerate(graph.value)]
        self.problems.append((path, "tag", "YAML tags are not supported; write ${NAME} or ${file:PATH}", _start(graph)))
        return None

    def _build_entries(self, graph: MappingNode, path: KeyPath) -> Iterator[tuple[str, Node]]:
        first: dict[str, int] = {}
        merged: dict[str, Node] = {}
        for key, value in graph.value:
            span = _span(key)
            if key.tag == _MERGE:
                merged = {**self._merge(value, path), **merged}
                continue
            if not isinstance(key, ScalarNode):
                self.problems.append((path, "invalid-value", "a key must be plain text", _start(key)))
                continue
            name = str(key.value)
            if name in first:
                owner = format_path(path) or "the file"
                message = f'the key "{name}" appears twice in {owner}; first on line {first[name]}'
                self.problems.append(((*path, name), "duplicate-key", message, span))
            first.setdefault(name, span.line)
            yield name, self.build(value, (*path, name), span)
        yield from ((name, node) for name, node in merged.items() if name not in first)

    def _merge(self, graph: YamlNode, path: KeyPath) -> dict[str, Node]:
        """The entries of the mapping, or of the list of mappings, after a `<<`. Of equal keys the first counts."""
        entries: dict[str, Node] = {}
        for source in graph.value if isinstance(graph, SequenceNode) else [graph]:
            if not isinstance(source, MappingNode):
                message = "<< merges mappings only, as in <<: *name"
                self.problems.append((path, "invalid-value", message, _start(source)))
                continue
            found = self.build(source, path).value
            entries = {**(found if isinstance(found, dict) else {}), **entries}
        return entries


def _parse_scalar(kind: str, text: str) -> Scalar:
    digits = text.replace("_", "").lower()
    try:
        if kind == "int":
            return int(digits, 0 if digits.lstrip("+-").startswith(("0x", "0o", "0b")) else 10)
        if kind == "float":
            return float(digits.replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError:
        return text  # a number with too many digits
    if kind == "bool":
        return digits in ("true", "yes", "on")
    return None if kind == "null" else text


def _span(graph: YamlNode) -> Span:
    start, end = graph.start_mark, graph.end_mark
    return Span(start.line + 1, start.column + 1, end.line + 1, end.column + 1)


def _start(graph: YamlNode) -> Span:
    start = graph.start_mark
    return Span(start.line + 1, start.column + 1, start.line + 1, start.column + 2)
