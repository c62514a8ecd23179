"""The outline of an ONNX file, read without loading it: inputs, outputs, operators, the files that hold its tensors.

ONNX files are protocol buffers. Of https://github.com/onnx/onnx/blob/main/onnx/onnx.proto only the fields below are
walked; tensor data is stepped over, so a file of gigabytes is read in moments. A file that is no protocol buffer, or is
nested deeper than DEPTH, raises GraphError.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

__all__ = ["Graph", "GraphError", "Node", "Port", "read_graph"]

DEPTH = 16
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5

MODEL_GRAPH, MODEL_FUNCTIONS = 7, 25
GRAPH_NODE, GRAPH_INITIALIZER, GRAPH_INPUT, GRAPH_OUTPUT, GRAPH_SPARSE = 1, 5, 11, 12, 15
NODE_INPUT, NODE_OUTPUT, NODE_OP, NODE_ATTRIBUTE, NODE_DOMAIN = 1, 2, 4, 5, 7
ATTRIBUTE_TENSOR, ATTRIBUTE_GRAPH, ATTRIBUTE_TENSORS, ATTRIBUTE_GRAPHS, ATTRIBUTE_SPARSE = 5, 6, 10, 11, 22
FUNCTION_NODE = 7
TENSOR_EXTERNAL = 13
SPARSE_VALUES, SPARSE_INDICES = 1, 2

Value: TypeAlias = "int | tuple[int, int]"


class GraphError(Exception):
    """The file is no ONNX model that can be read."""


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output: element type as ONNX numbers it (1 float32, 7 int64, 9 bool, 10 float16), and dimensions."""

    name: str
    element: int
    shape: tuple[int | str | None, ...]


@dataclass(frozen=True, slots=True)
class Node:
    op: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(slots=True)
class Graph:
    """`nodes` are those of the main graph; `operators` and `external` also of subgraphs and functions."""

    inputs: dict[str, Port] = field(default_factory=dict)
    outputs: dict[str, Port] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    operators: set[str] = field(default_factory=set)
    external: list[tuple[str, int, int | None]] = field(default_factory=list)
    """Location, offset and length of each tensor that is stored beside the model."""


def read_graph(file: Path) -> Graph:
    """The outline of the model in `file`. Raises GraphError."""
    try:
        with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            reader = _Reader(data)
            reader.model()
            return reader.found
    except (OSError, ValueError) as error:
        raise GraphError(f"{file}: cannot be read as an ONNX model: {error}") from None


class _Reader:
    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.found = Graph()

    def fields(self, low: int, high: int) -> Iterator[tuple[int, Value]]:
        """The fields of a message: number, and the integer or the span that it holds."""
        at = low
        while at < high:
            key, at = self.varint(at, high)
            kind = key & 7
            if kind == VARINT:
                value, at = self.varint(at, high)
                yield key >> 3, value
                continue
            if kind == LENGTH:
                size, at = self.varint(at, high)
            elif kind in (FIXED32, FIXED64):
                size = 4 if kind == FIXED32 else 8
            else:
                raise ValueError(f"wire type {kind} at byte {at}")
            if at + size > high:
                raise ValueError(f"a field at byte {at} reaches beyond its message")
            yield key >> 3, (at, at + size)
            at += size

    def varint(self, at: int, high: int) -> tuple[int, int]:
        value = shift = 0
        while at < high and shift < 70:
            byte = self.data[at]
            value |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                return value, at
        raise ValueError(f"no end of a number at byte {at}")

    def spans(self, span: tuple[int, int]) -> Iterator[tuple[int, tuple[int, int]]]:
        return ((number, value) for number, value in self.fields(*span) if isinstance(value, tuple))

    def text(self, span: tuple[int, int]) -> str:
        return self.data[span[0] : span[1]].decode("utf-8", "replace")

    def model(self) -> None:
        graphs = 0
        for number, span in self.spans((0, len(self.data))):
            if number == MODEL_GRAPH:
                graphs += 1
                self.graph(span, 0)
            elif number == MODEL_FUNCTIONS:
                for inner, node in self.spans(span):
                    if inner == FUNCTION_NODE:
                        self.node(node, 1)
        if graphs != 1:
            raise ValueError(f"{graphs} graphs where one belongs")

    def graph(self, span: tuple[int, int], depth: int) -> None:
        if depth > DEPTH:
            raise ValueError(f"graphs are nested deeper than {DEPTH}")
        for number, inner in self.spans(span):
            if number == GRAPH_NODE:
                self.node(inner, depth)
            elif number == GRAPH_INITIALIZER:
                self.tensor(inner)
            elif number == GRAPH_SPARSE:
                self.sparse(inner)
            elif depth == 0 and number in (GRAPH_INPUT, GRAPH_OUTPUT):
                port = self.port(inner)
                (self.found.inputs if number == GRAPH_INPUT else self.found.outputs)[port.name] = port

    def node(self, span: tuple[int, int], depth: int) -> None:
        op = domain = ""
        inputs, outputs = [], []
        for number, inner in self.spans(span):
            if number == NODE_INPUT:
                inputs.append(self.text(inner))
            elif number == NODE_OUTPUT:
                outputs.append(self.text(inner))
            elif number == NODE_OP:
                op = self.text(inner)
            elif number == NODE_DOMAIN:
                domain = self.text(inner)
            elif number == NODE_ATTRIBUTE:
                self.attribute(inner, depth)
        self.found.operators.add(f"{domain}.{op}" if domain else op)
        if depth == 0:
            self.found.nodes.append(Node(op, domain, tuple(inputs), tuple(outputs)))

    def attribute(self, span: tuple[int, int], depth: int) -> None:
        for number, inner in self.spans(span):
            if number in (ATTRIBUTE_GRAPH, ATTRIBUTE_GRAPHS):
                self.graph(inner, depth + 1)
            elif number in (ATTRIBUTE_TENSOR, ATTRIBUTE_TENSORS):
                self.tensor(inner)
            elif number == ATTRIBUTE_SPARSE:
                self.sparse(inner)

    def sparse(self, span: tuple[int, int]) -> None:
        for number, inner in self.spans(span):
            if number in (SPARSE_VALUES, SPARSE_INDICES):
                self.tensor(inner)

    def tensor(self, span: tuple[int, int]) -> None:
        entries: dict[str, str] = {}
        for number, inner in self.spans(span):
            if number == TENSOR_EXTERNAL:
                pair = {key: self.text(value) for key, value in self.spans(inner)}
                entries[pair.get(1, "")] = pair.get(2, "")
        if entries:
            length = entries.get("length")
            place = (entries.get("location", ""), int(entries.get("offset", 0)), int(length) if length else None)
            self.found.external.append(place)

    def port(self, span: tuple[int, int]) -> Port:
        """ValueInfo: name 1, type 2 { tensor 1 { element 1, shape 2 { dimension 1 { value 1 | name 2 } } } }."""
        name, element = "", 0
        shape: list[int | str | None] = []
        for number, inner in self.spans(span):
            if number == 1:
                name = self.text(inner)
            elif number == 2:
                for _, tensor in (pair for pair in self.spans(inner) if pair[0] == 1):
                    element, shape = self.tensor_type(tensor)
        return Port(name, element, tuple(shape))

    def tensor_type(self, span: tuple[int, int]) -> tuple[int, list[int | str | None]]:
        element = 0
        shape: list[int | str | None] = []
        for number, value in self.fields(*span):
            if number == 1 and isinstance(value, int):
                element = value
            elif number == 2 and isinstance(value, tuple):
                shape = [self.dimension(inner) for key, inner in self.spans(value) if key == 1]
        return element, shape

    def dimension(self, span: tuple[int, int]) -> int | str | None:
        for number, value in self.fields(*span):
            if number == 1 and isinstance(value, int):
                return value
            if number == 2 and isinstance(value, tuple):
                return self.text(value)
        return None
