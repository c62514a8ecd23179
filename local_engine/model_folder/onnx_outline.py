"""The outline of an ONNX file: inputs, outputs, operators and the files that store its tensors, without loading it.

ONNX files are protocol buffers (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto). The parser visits only the
fields below and skips tensor data, so it reads a file of gigabytes in moments. A file that is not a protocol buffer, or
is nested deeper than MAX_DEPTH, raises GraphError.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

__all__ = ["GraphError", "GraphOutline", "Node", "TensorInfo", "read_outline"]

MAX_DEPTH = 16
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5

MODEL_GRAPH, MODEL_FUNCTIONS = 7, 25
GRAPH_NODE, GRAPH_INITIALIZER, GRAPH_INPUT, GRAPH_OUTPUT, GRAPH_SPARSE = 1, 5, 11, 12, 15
NODE_INPUT, NODE_OUTPUT, NODE_OP, NODE_ATTRIBUTE, NODE_DOMAIN = 1, 2, 4, 5, 7
ATTRIBUTE_TENSOR, ATTRIBUTE_GRAPH, ATTRIBUTE_TENSORS, ATTRIBUTE_GRAPHS, ATTRIBUTE_SPARSE = 5, 6, 10, 11, 22
FUNCTION_NODE = 7
TENSOR_EXTERNAL = 13
SPARSE_VALUES, SPARSE_INDICES = 1, 2

FieldValue: TypeAlias = "int | tuple[int, int]"


class GraphError(Exception):
    """The file cannot be read as an ONNX model."""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """An input or output. `element_type` is the number of an ONNX type: 1 float32, 7 int64, 9 bool, 10 float16."""

    name: str
    element_type: int
    shape: tuple[int | str | None, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """An operator of the main graph with the names of its tensors."""

    op: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(slots=True)
class GraphOutline:
    """`nodes` come from the main graph only; `operators` and `external_data` also from subgraphs and functions."""

    inputs: dict[str, TensorInfo] = field(default_factory=dict)
    outputs: dict[str, TensorInfo] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    operators: set[str] = field(default_factory=set)
    external_data: list[tuple[str, int, int | None]] = field(default_factory=list)
    """Location, offset and length of each tensor that is stored in another file."""


def read_outline(file: Path) -> GraphOutline:
    """Read the outline of the model in `file`. Raises GraphError."""
    try:
        with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            parser = _OutlineParser(data)
            parser.parse_model()
            return parser.outline
    except (OSError, ValueError) as error:
        raise GraphError(f"{file}: cannot be read as an ONNX model: {error}") from None


class _OutlineParser:
    """Reads protocol buffer messages. A span is the (start, end) of a field's bytes in the file."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.outline = GraphOutline()

    def read_fields(self, low: int, high: int) -> Iterator[tuple[int, FieldValue]]:
        """Iterate over the fields of a message: the field number, and the integer or the span of its value."""
        at = low
        while at < high:
            key, at = self.read_varint(at, high)
            kind = key & 7
            if kind == VARINT:
                value, at = self.read_varint(at, high)
                yield key >> 3, value
                continue
            if kind == LENGTH:
                size, at = self.read_varint(at, high)
            elif kind in (FIXED32, FIXED64):
                size = 4 if kind == FIXED32 else 8
            else:
                raise ValueError(f"wire type {kind} at byte {at}")
            if at + size > high:
                raise ValueError(f"a field at byte {at} extends beyond its message")
            yield key >> 3, (at, at + size)
            at += size

    def read_varint(self, at: int, high: int) -> tuple[int, int]:
        value = shift = 0
        while at < high and shift < 70:
            byte = self.data[at]
            value |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                return value, at
        raise ValueError(f"unterminated number at byte {at}")

    def read_spans(self, span: tuple[int, int]) -> Iterator[tuple[int, tuple[int, int]]]:
        return ((number, value) for number, value in self.read_fields(*span) if isinstance(value, tuple))

    def read_text(self, span: tuple[int, int]) -> str:
        return self.data[span[0] : span[1]].decode("utf-8", "replace")

    def parse_model(self) -> None:
        graphs = 0
        for number, span in self.read_spans((0, len(self.data))):
            if number == MODEL_GRAPH:
                graphs += 1
                self.parse_graph(span, 0)
            elif number == MODEL_FUNCTIONS:
                for inner, node in self.read_spans(span):
                    if inner == FUNCTION_NODE:
                        self.parse_node(node, 1)
        if graphs != 1:
            raise ValueError(f"the file has {graphs} graphs instead of one")

    def parse_graph(self, span: tuple[int, int], depth: int) -> None:
        if depth > MAX_DEPTH:
            raise ValueError(f"graphs are nested deeper than {MAX_DEPTH}")
        for number, inner in self.read_spans(span):
            if number == GRAPH_NODE:
                self.parse_node(inner, depth)
            elif number == GRAPH_INITIALIZER:
                self.parse_tensor(inner)
            elif number == GRAPH_SPARSE:
                self.parse_sparse_tensor(inner)
            elif depth == 0 and number in (GRAPH_INPUT, GRAPH_OUTPUT):
                info = self.parse_tensor_info(inner)
                (self.outline.inputs if number == GRAPH_INPUT else self.outline.outputs)[info.name] = info

    def parse_node(self, span: tuple[int, int], depth: int) -> None:
        op = domain = ""
        inputs, outputs = [], []
        for number, inner in self.read_spans(span):
            if number == NODE_INPUT:
                inputs.append(self.read_text(inner))
            elif number == NODE_OUTPUT:
                outputs.append(self.read_text(inner))
            elif number == NODE_OP:
                op = self.read_text(inner)
            elif number == NODE_DOMAIN:
                domain = self.read_text(inner)
            elif number == NODE_ATTRIBUTE:
                self.parse_attribute(inner, depth)
        self.outline.operators.add(f"{domain}.{op}" if domain else op)
        if depth == 0:
            self.outline.nodes.append(Node(op, domain, tuple(inputs), tuple(outputs)))

    def parse_attribute(self, span: tuple[int, int], depth: int) -> None:
        for number, inner in self.read_spans(span):
            if number in (ATTRIBUTE_GRAPH, ATTRIBUTE_GRAPHS):
                self.parse_graph(inner, depth + 1)
            elif number in (ATTRIBUTE_TENSOR, ATTRIBUTE_TENSORS):
                self.parse_tensor(inner)
            elif number == ATTRIBUTE_SPARSE:
                self.parse_sparse_tensor(inner)

    def parse_sparse_tensor(self, span: tuple[int, int]) -> None:
        for number, inner in self.read_spans(span):
            if number in (SPARSE_VALUES, SPARSE_INDICES):
                self.parse_tensor(inner)

    def parse_tensor(self, span: tuple[int, int]) -> None:
        entries: dict[str, str] = {}
        for number, inner in self.read_spans(span):
            if number == TENSOR_EXTERNAL:
                pair = {key: self.read_text(value) for key, value in self.read_spans(inner)}
                entries[pair.get(1, "")] = pair.get(2, "")
        if entries:
            length = entries.get("length")
            entry = (entries.get("location", ""), int(entries.get("offset", 0)), int(length) if length else None)
            self.outline.external_data.append(entry)

    def parse_tensor_info(self, span: tuple[int, int]) -> TensorInfo:
        """ValueInfo: name 1, type 2 { tensor 1 { element 1, shape 2 { dimension 1 { value 1 | name 2 } } } }."""
        name, element_type = "", 0
        shape: list[int | str | None] = []
        for number, inner in self.read_spans(span):
            if number == 1:
                name = self.read_text(inner)
            elif number == 2:
                for _, tensor in (pair for pair in self.read_spans(inner) if pair[0] == 1):
                    element_type, shape = self.parse_tensor_type(tensor)
        return TensorInfo(name, element_type, tuple(shape))

    def parse_tensor_type(self, span: tuple[int, int]) -> tuple[int, list[int | str | None]]:
        element_type = 0
        shape: list[int | str | None] = []
        for number, value in self.read_fields(*span):
            if number == 1 and isinstance(value, int):
                element_type = value
            elif number == 2 and isinstance(value, tuple):
                shape = [self.parse_dimension(inner) for key, inner in self.read_spans(value) if key == 1]
        return element_type, shape

    def parse_dimension(self, span: tuple[int, int]) -> int | str | None:
        for number, value in self.read_fields(*span):
            if number == 1 and isinstance(value, int):
                return value
            if number == 2 and isinstance(value, tuple):
                return self.read_text(value)
        return None
