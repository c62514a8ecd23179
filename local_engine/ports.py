"""What a graph can do, judged by its inputs and outputs: a decoder with its cache, or an encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from .graph import Graph, Port
from .places import FolderError

__all__ = ["FLOAT16", "FLOAT32", "CacheLayout", "CachePort", "Decoder", "Encoder", "Hints", "read_ports"]

CacheLayout: TypeAlias = Literal["slots", "concat"]

FLOAT32, INT32, INT64, BOOL, FLOAT16 = 1, 6, 7, 9, 10
MOST_LAYERS, MOST_TOKENS, MOST_WIDTH = 1024, 1 << 22, 1 << 16
FED = {"input_ids", "attention_mask", "position_ids", "use_cache_branch"}
DEFAULT_NAMES = {
    "past_key_names": "past_key_values.%d.key",
    "past_value_names": "past_key_values.%d.value",
    "present_key_names": "present.%d.key",
    "present_value_names": "present.%d.value",
}


@dataclass(frozen=True, slots=True)
class CachePort:
    """One tensor of the cache: its input, its output, and its size (batch, heads, length, width)."""

    past: str
    present: str
    heads: int
    width: int


@dataclass(frozen=True, slots=True)
class Decoder:
    """A graph that continues a text. `slots`: past and present may be one buffer; `concat`: present grows out of past.

    `element` is the cache's type, `ids` that of `input_ids` (ONNX numbers). `extra` are the inputs beside `input_ids`
    and the cache, with their types. `last_only`: logits come for the last position alone.
    """

    layout: CacheLayout
    cache: tuple[CachePort, ...]
    element: int
    ids: int
    vocab: int
    extra: Mapping[str, int]
    logits: int = FLOAT32
    last_only: bool = False

    @property
    def row_bytes(self) -> int:
        """Bytes that one position of one sequence takes in the cache."""
        return sum(port.heads * port.width for port in self.cache) * (2 if self.element == FLOAT16 else 4)


@dataclass(frozen=True, slots=True)
class Encoder:
    """A graph that turns a text into vectors, (batch, tokens, width), or one (batch, width) if `pooled`."""

    output: str
    width: int
    pooled: bool
    inputs: frozenset[str]


@dataclass(frozen=True, slots=True)
class Hints:
    """What the JSON files say: names of the cache's tensors, and sizes, for where the graph leaves them open."""

    names: Mapping[str, str] = field(default_factory=dict)
    heads: int | None = None
    width: int | None = None
    hidden: int | None = None
    vocab: int | None = None


def read_ports(file: Path, graph: Graph, hints: Hints) -> Decoder | Encoder:
    """Judge a graph. Raises FolderError."""
    if "input_ids" not in graph.inputs:
        raise FolderError(f"{file} has no input input_ids, only {_listed(graph.inputs)}: it is no text model")
    if "logits" in graph.outputs:
        return _decoder(file, graph, hints)
    for output, pooled in (("sentence_embedding", True), ("last_hidden_state", False), ("token_embeddings", False)):
        if output in graph.outputs:
            return _encoder(file, graph, hints, output, pooled)
    raise FolderError(
        f"{file} has the outputs {_listed(graph.outputs)}: logits would make it a decoder, last_hidden_state,"
        " token_embeddings or sentence_embedding an encoder"
    )


def _listed(names: Mapping[str, Port]) -> str:
    shown = ", ".join(list(names)[:6])
    return shown + (", ..." if len(names) > 6 else "") or "none"


def _encoder(file: Path, graph: Graph, hints: Hints, output: str, pooled: bool) -> Encoder:
    unknown = set(graph.inputs) - {"input_ids", "attention_mask", "token_type_ids", "position_ids"}
    if unknown:
        raise FolderError(f"{file} asks for {', '.join(sorted(unknown))}, which this engine does not feed an encoder")
    width = _size(file, output, graph.outputs[output].shape, -1, MOST_WIDTH, hints.hidden)
    return Encoder(output, width, pooled, frozenset(graph.inputs))


def _decoder(file: Path, graph: Graph, hints: Hints) -> Decoder:
    names = {**DEFAULT_NAMES, **hints.names}
    cache = tuple(_cache(file, graph, names, hints))
    if not cache:
        raise FolderError(
            f"{file} has no cache: no input is called {names['past_key_names'] % 0}. Export the model with past keys"
            " and values (`dragoman export`, or the task text-generation-with-past)"
        )
    own = {port.past for port in cache} | {"input_ids"}
    extra = {name: port.element for name, port in graph.inputs.items() if name not in own}
    if unknown := sorted(set(extra) - FED):
        raise FolderError(f"{file} asks for {', '.join(unknown)}, which this engine does not feed")
    elements = {graph.inputs[port.past].element for port in cache}
    if elements != {FLOAT32} and elements != {FLOAT16}:
        raise FolderError(
            f"{file} keeps keys and values in types {sorted(elements)}: only float32 and float16 are served"
        )
    shared = _shares_buffer(graph, cache) and "attention_mask" in extra and "use_cache_branch" not in extra
    layout: CacheLayout = "slots" if shared else "concat"
    ids = graph.inputs["input_ids"].element
    if ids not in (INT32, INT64):
        raise FolderError(f"{file} takes input_ids of type {ids}: only int32 and int64 are served")
    logits = graph.outputs["logits"]
    if logits.element not in (FLOAT32, FLOAT16):
        raise FolderError(f"{file} gives logits of type {logits.element}: only float32 and float16 are served")
    vocab = _size(file, "logits", logits.shape, -1, MOST_TOKENS, hints.vocab)
    last_only = len(logits.shape) == 3 and logits.shape[1] == 1
    return Decoder(layout, cache, elements.pop(), ids, vocab, extra, logits.element, last_only)


def _cache(file: Path, graph: Graph, names: Mapping[str, str], hints: Hints) -> list[CachePort]:
    found = []
    for layer in range(MOST_LAYERS + 1):
        pairs = [
            (names[f"past_{part}_names"] % layer, names[f"present_{part}_names"] % layer) for part in ("key", "value")
        ]
        if not any(past in graph.inputs for past, _ in pairs):
            break
        for past, present in pairs:
            if past not in graph.inputs or present not in graph.outputs:
                raise FolderError(f"{file} lacks {present if past in graph.inputs else past}, half of its cache")
            shape = graph.inputs[past].shape
            if len(shape) != 4:
                raise FolderError(f"{file}: {past} has {len(shape)} dimensions, not (batch, heads, length, size)")
            sizes = [
                _size(file, past, shape, axis, MOST_WIDTH, hint) for axis, hint in ((1, hints.heads), (3, hints.width))
            ]
            found.append(CachePort(past, present, *sizes))
    if len(found) > 2 * MOST_LAYERS:
        raise FolderError(f"{file} has more than {MOST_LAYERS} layers")
    return found


def _size(file: Path, name: str, shape: tuple[int | str | None, ...], axis: int, most: int, hint: int | None) -> int:
    """A dimension as the graph fixes it, else as the hint says."""
    size = shape[axis] if shape else None
    size = size if isinstance(size, int) else hint or size
    if not isinstance(size, int):
        raise FolderError(f"{file}: dimension {axis} of {name} is not fixed ({size}), nor does config.json tell it")
    if not 0 < size <= most:
        raise FolderError(f"{file}: dimension {axis} of {name} is {size}; 1 to {most} are served")
    return size


def _shares_buffer(graph: Graph, cache: tuple[CachePort, ...]) -> bool:
    """True if every cache tensor goes into one GroupQueryAttention and comes out of the same."""
    wanted = {(port.past, port.present) for port in cache}
    for node in graph.nodes:
        if node.op == "GroupQueryAttention" and node.domain == "com.microsoft":
            wanted -= set(zip(node.inputs[3:5], node.outputs[1:3], strict=False))
    return not wanted
