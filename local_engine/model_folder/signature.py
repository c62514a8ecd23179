"""The signature of a graph, read from its inputs and outputs: a decoder with its KV cache, or an encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from .files import FolderError
from .onnx_outline import GraphOutline, TensorInfo

__all__ = [
    "FLOAT16",
    "FLOAT32",
    "CacheLayout",
    "CacheTensor",
    "DecoderSignature",
    "EncoderSignature",
    "SignatureHints",
    "read_signature",
]

CacheLayout: TypeAlias = Literal["slots", "concat"]

FLOAT32, INT32, INT64, BOOL, FLOAT16 = 1, 6, 7, 9, 10
MAX_LAYERS, MAX_VOCAB, MAX_WIDTH = 1024, 1 << 22, 1 << 16
PROVIDED_INPUTS = {"input_ids", "attention_mask", "position_ids", "use_cache_branch"}
DEFAULT_NAMES = {
    "past_key_names": "past_key_values.%d.key",
    "past_value_names": "past_key_values.%d.value",
    "present_key_names": "present.%d.key",
    "present_value_names": "present.%d.value",
}


@dataclass(frozen=True, slots=True)
class CacheTensor:
    """One tensor of the KV cache, (batch, heads, length, width): the names of its input and output, and its sizes."""

    past: str
    present: str
    heads: int
    width: int


@dataclass(frozen=True, slots=True)
class DecoderSignature:
    """A graph that continues a text.

    Layouts: with `slots`, past and present may share a buffer; with `concat`, present is past with new entries
    appended. `cache_type`, `ids_type` and `logits_type` are numbers of ONNX types. `extra_inputs` maps the inputs other
    than `input_ids` and the cache to their types. With `last_logits_only`, the graph returns logits for the last
    position only.
    """

    layout: CacheLayout
    cache: tuple[CacheTensor, ...]
    cache_type: int
    ids_type: int
    vocab: int
    extra_inputs: Mapping[str, int]
    logits_type: int = FLOAT32
    last_logits_only: bool = False

    @property
    def bytes_per_position(self) -> int:
        """Size of one position of one sequence in the cache."""
        return sum(tensor.heads * tensor.width for tensor in self.cache) * (2 if self.cache_type == FLOAT16 else 4)


@dataclass(frozen=True, slots=True)
class EncoderSignature:
    """A graph that returns one vector per token, (batch, tokens, width), or per text, (batch, width), if `pooled`."""

    output: str
    width: int
    pooled: bool
    inputs: frozenset[str]


@dataclass(frozen=True, slots=True)
class SignatureHints:
    """Tensor names and sizes from the JSON files. Sizes are used only if the graph does not fix them."""

    names: Mapping[str, str] = field(default_factory=dict)
    heads: int | None = None
    width: int | None = None
    hidden: int | None = None
    vocab: int | None = None


def read_signature(file: Path, graph: GraphOutline, hints: SignatureHints) -> DecoderSignature | EncoderSignature:
    """Read the signature of a graph. Raises FolderError if the engine cannot run it."""
    if "input_ids" not in graph.inputs:
        raise FolderError(f"{file} has no input input_ids, only {_format_names(graph.inputs)}: it is not a text model")
    if "logits" in graph.outputs:
        return _read_decoder(file, graph, hints)
    for output, pooled in (("sentence_embedding", True), ("last_hidden_state", False), ("token_embeddings", False)):
        if output in graph.outputs:
            return _read_encoder(file, graph, hints, output, pooled)
    raise FolderError(
        f"{file} has the outputs {_format_names(graph.outputs)}: a decoder needs logits; an encoder needs"
        " last_hidden_state, token_embeddings or sentence_embedding"
    )


def _format_names(names: Mapping[str, TensorInfo]) -> str:
    shown = ", ".join(list(names)[:6])
    return shown + (", ..." if len(names) > 6 else "") or "none"


def _read_encoder(
    file: Path, graph: GraphOutline, hints: SignatureHints, output: str, pooled: bool
) -> EncoderSignature:
    unknown = set(graph.inputs) - {"input_ids", "attention_mask", "token_type_ids", "position_ids"}
    if unknown:
        raise FolderError(
            f"{file} has the inputs {', '.join(sorted(unknown))}, which the engine does not provide to encoders"
        )
    width = _read_size(file, output, graph.outputs[output].shape, -1, MAX_WIDTH, hints.hidden)
    return EncoderSignature(output, width, pooled, frozenset(graph.inputs))


def _read_decoder(file: Path, graph: GraphOutline, hints: SignatureHints) -> DecoderSignature:
    names = {**DEFAULT_NAMES, **hints.names}
    cache = tuple(_read_cache(file, graph, names, hints))
    if not cache:
        raise FolderError(
            f"{file} has no KV cache: no input is named {names['past_key_names'] % 0}. Export the model with past keys"
            " and values (`dragoman export`, or the task text-generation-with-past)"
        )
    own = {tensor.past for tensor in cache} | {"input_ids"}
    extra = {name: info.element_type for name, info in graph.inputs.items() if name not in own}
    if unknown := sorted(set(extra) - PROVIDED_INPUTS):
        raise FolderError(f"{file} has the inputs {', '.join(unknown)}, which the engine does not provide")
    cache_types = {graph.inputs[tensor.past].element_type for tensor in cache}
    if cache_types != {FLOAT32} and cache_types != {FLOAT16}:
        raise FolderError(
            f"{file} stores keys and values in types {sorted(cache_types)}; only float32 and float16 are supported"
        )
    shared = _shares_buffer(graph, cache) and "attention_mask" in extra and "use_cache_branch" not in extra
    layout: CacheLayout = "slots" if shared else "concat"
    ids_type = graph.inputs["input_ids"].element_type
    if ids_type not in (INT32, INT64):
        raise FolderError(f"{file} takes input_ids of type {ids_type}; only int32 and int64 are supported")
    logits = graph.outputs["logits"]
    if logits.element_type not in (FLOAT32, FLOAT16):
        raise FolderError(
            f"{file} returns logits of type {logits.element_type}; only float32 and float16 are supported"
        )
    vocab = _read_size(file, "logits", logits.shape, -1, MAX_VOCAB, hints.vocab)
    last_logits_only = len(logits.shape) == 3 and logits.shape[1] == 1
    return DecoderSignature(
        layout, cache, cache_types.pop(), ids_type, vocab, extra, logits.element_type, last_logits_only
    )


def _read_cache(file: Path, graph: GraphOutline, names: Mapping[str, str], hints: SignatureHints) -> list[CacheTensor]:
    found = []
    for layer in range(MAX_LAYERS + 1):
        pairs = [
            (names[f"past_{part}_names"] % layer, names[f"present_{part}_names"] % layer) for part in ("key", "value")
        ]
        if not any(past in graph.inputs for past, _ in pairs):
            break
        for past, present in pairs:
            if past not in graph.inputs or present not in graph.outputs:
                raise FolderError(
                    f"{file} has no {present if past in graph.inputs else past}, so its KV cache is incomplete"
                )
            shape = graph.inputs[past].shape
            if len(shape) != 4:
                raise FolderError(f"{file}: {past} has {len(shape)} dimensions, not (batch, heads, length, size)")
            sizes = [
                _read_size(file, past, shape, axis, MAX_WIDTH, hint)
                for axis, hint in ((1, hints.heads), (3, hints.width))
            ]
            found.append(CacheTensor(past, present, *sizes))
    if len(found) > 2 * MAX_LAYERS:
        raise FolderError(f"{file} has more than {MAX_LAYERS} layers")
    return found


def _read_size(
    file: Path, name: str, shape: tuple[int | str | None, ...], axis: int, limit: int, hint: int | None
) -> int:
    """Return a dimension: the graph's if it is fixed there, else the hint. Raises FolderError."""
    size = shape[axis] if shape else None
    size = size if isinstance(size, int) else hint or size
    if not isinstance(size, int):
        raise FolderError(f"{file}: dimension {axis} of {name} is not fixed ({size}), and config.json does not give it")
    if not 0 < size <= limit:
        raise FolderError(f"{file}: dimension {axis} of {name} is {size}; supported are 1 to {limit}")
    return size


def _shares_buffer(graph: GraphOutline, cache: tuple[CacheTensor, ...]) -> bool:
    """Whether every cache tensor is the past and the present of the same GroupQueryAttention node."""
    wanted = {(tensor.past, tensor.present) for tensor in cache}
    for node in graph.nodes:
        if node.op == "GroupQueryAttention" and node.domain == "com.microsoft":
            wanted -= set(zip(node.inputs[3:5], node.outputs[1:3], strict=False))
    return not wanted
