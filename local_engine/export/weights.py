"""Weights, from safetensors files or a seed. Both are mappings with the tensor names of transformers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .spec import ExportError, ModelSpec

__all__ = ["RandomWeights", "SafetensorsFolder", "Tensor", "weight_shapes", "write_safetensors"]

Tensor: TypeAlias = NDArray[Any]

HEADER_LIMIT = 100_000_000
_DTYPES = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "BF16": "<u2"}


class SafetensorsFolder(Mapping[str, Tensor]):
    """The tensors of all `*.safetensors` files of a folder, memory-mapped, as float16, float32 or float64.

    bfloat16 is converted to float32, because numpy has no such type. Raises ExportError for a malformed file.
    """

    def __init__(self, folder: Path) -> None:
        self._entries: dict[str, tuple[Tensor, dict[str, Any]]] = {}
        files = sorted(folder.glob("*.safetensors"))
        if not files:
            raise ExportError(f"{folder} contains no *.safetensors file")
        for file in files:
            self._read(file)

    def _read(self, file: Path) -> None:
        if file.stat().st_size < 8:
            raise ExportError(f"{file} is too short for a safetensors file")
        data = np.memmap(file, np.uint8, "r")
        length = int.from_bytes(data[:8].tobytes(), "little")
        if length > min(HEADER_LIMIT, data.size - 8):
            raise ExportError(f"{file} is truncated: its header needs {length} bytes")
        try:
            header = json.loads(data[8 : 8 + length].tobytes())
        except ValueError as error:
            raise ExportError(f"{file}: its header is not valid JSON: {error}") from None
        body = data[8 + length :]
        for name, entry in header.items():
            if name != "__metadata__":
                self._entries[name] = (body, entry)

    def __getitem__(self, name: str) -> Tensor:
        body, entry = self._entries[name]
        dtype = _DTYPES.get(entry["dtype"])
        if dtype is None:
            raise ExportError(f"{name} is stored as {entry['dtype']}; supported are {', '.join(_DTYPES)}")
        low, high = entry["data_offsets"]
        size = math.prod(entry["shape"]) * np.dtype(dtype).itemsize
        if not 0 <= low <= high <= body.size or high - low != size:
            raise ExportError(f"{name}: bytes {low} to {high} are not {size} bytes inside the file")
        flat = body[low:high].view(dtype)
        if entry["dtype"] == "BF16":
            flat = (flat.astype(np.uint32) << 16).view(np.float32)
        found: Tensor = flat.reshape(entry["shape"])
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def weight_shapes(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    """The shapes of all tensors of a model, by name. A matrix is (out, in)."""
    found: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (spec.vocab, spec.hidden)}
    queries, keys = spec.heads * spec.head_dim, spec.kv_heads * spec.head_dim
    for layer in range(spec.layers):
        at = f"model.layers.{layer}."
        for name, rows in (("q_proj", queries), ("k_proj", keys), ("v_proj", keys)):
            found[f"{at}self_attn.{name}.weight"] = (rows, spec.hidden)
            if spec.attention_bias:
                found[f"{at}self_attn.{name}.bias"] = (rows,)
        found[f"{at}self_attn.o_proj.weight"] = (spec.hidden, queries)
        if spec.output_bias:
            found[f"{at}self_attn.o_proj.bias"] = (spec.hidden,)
        if spec.qk_norm:
            found[f"{at}self_attn.q_norm.weight"] = found[f"{at}self_attn.k_norm.weight"] = (spec.head_dim,)
        for name, rows, columns in _feed_forward_shapes(spec):
            found[f"{at}mlp.{name}.weight"] = (rows, columns)
            if spec.mlp_bias:
                found[f"{at}mlp.{name}.bias"] = (rows,)
        found[f"{at}input_layernorm.weight"] = found[f"{at}post_attention_layernorm.weight"] = (spec.hidden,)
    found["model.norm.weight"] = (spec.hidden,)
    if not spec.tied:
        found["lm_head.weight"] = (spec.vocab, spec.hidden)
    return found


def _feed_forward_shapes(spec: ModelSpec) -> tuple[tuple[str, int, int], ...]:
    wide, narrow = spec.intermediate, spec.hidden
    return (("gate_proj", wide, narrow), ("up_proj", wide, narrow), ("down_proj", narrow, wide))


class RandomWeights(Mapping[str, Tensor]):
    """float32 weights from a seed, the same on every machine. A tensor is drawn again at each access."""

    def __init__(self, spec: ModelSpec, seed: int = 0) -> None:
        self._shapes = weight_shapes(spec)
        self._seeds = {name: (seed * 100_003 + index) % 2**32 for index, name in enumerate(self._shapes)}

    def __getitem__(self, name: str) -> Tensor:
        shape = self._shapes[name]
        source = np.random.RandomState(self._seeds[name])  # the only generator whose stream numpy keeps stable
        drawn: Tensor = source.standard_normal(shape).astype(np.float32)
        if name.endswith("norm.weight"):
            return 1 + drawn * np.float32(0.1)
        if len(shape) == 1:
            return drawn * np.float32(0.2)
        if name == "model.embed_tokens.weight":
            return drawn
        return drawn * np.float32(2 / math.sqrt(shape[1]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)


def write_safetensors(weights: Mapping[str, Tensor], file: Path) -> None:
    """Write float32 weights as a safetensors file: 8 bytes with the header length, a JSON header, the tensors."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, tensor in weights.items():
        size = tensor.size * 4
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with file.open("wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for tensor in weights.values():
            out.write(np.ascontiguousarray(tensor, "<f4").tobytes())
