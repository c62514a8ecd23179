"""The spec of a model: its sizes and switches, read from `config.json` or set for a model with random weights."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

__all__ = ["ARCHITECTURES", "Architecture", "ExportError", "ModelSpec", "RopeScaling", "read_spec"]

Architecture: TypeAlias = Literal["llama", "mistral", "qwen2", "qwen3", "granite"]
ARCHITECTURES: tuple[Architecture, ...] = ("llama", "mistral", "qwen2", "qwen3", "granite")


class ExportError(Exception):
    """A model cannot be exported. The message says why, and what helps."""


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """How rotary frequencies are scaled. `linear` uses `factor` only; `llama3` uses all fields."""

    kind: Literal["linear", "llama3"]
    factor: float
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_max_positions: int = 8192


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """The sizes and switches of a decoder.

    `attention_bias` applies to q, k and v, `output_bias` to the output projection.
    `embedding_scale` multiplies the embedding, `residual_scale` the outputs of attention and feed-forward, and
    `attention_scale` the products of queries and keys (None: 1 / sqrt(head_dim)). `logit_divisor` divides the logits.
    """

    architecture: Architecture
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    max_positions: int
    epsilon: float = 1e-6
    rope_theta: float = 10000.0
    rope_scaling: RopeScaling | None = None
    tied: bool = False
    attention_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    attention_scale: float | None = None
    logit_divisor: float = 1.0
    bos: int | None = None
    eos: tuple[int, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if self.heads % self.kv_heads:
            raise ExportError(
                f"num_attention_heads {self.heads} is not a multiple of num_key_value_heads {self.kv_heads}"
            )
        if self.head_dim % 2:
            raise ExportError(f"head_dim {self.head_dim} is odd; rotary positions need an even number")

    @property
    def query_scale(self) -> float:
        """The factor of the products of queries and keys."""
        return 1.0 / math.sqrt(self.head_dim) if self.attention_scale is None else self.attention_scale


def read_spec(folder: Path) -> ModelSpec:
    """Read the spec from a folder's `config.json`, as written by transformers 4 or 5. Raises ExportError."""
    file = folder / "config.json"
    if not file.is_file():
        problem = "contains no config.json" if folder.is_dir() else "is not a folder"
        raise ExportError(f"{folder} {problem}; name a model folder as written by transformers' save_pretrained")
    try:
        config = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ExportError(f"cannot read {file}: {error}") from None
    kind = config.get("model_type")
    if kind not in ARCHITECTURES:
        raise ExportError(f'{file}: model_type "{kind}" is not one of {", ".join(ARCHITECTURES)}')
    try:
        return _build_spec(kind, config)
    except KeyError as error:
        raise ExportError(f"{file}: {error} is missing") from None


def _build_spec(kind: Architecture, config: dict[str, Any]) -> ModelSpec:
    if config.get("use_sliding_window"):
        raise ExportError("use_sliding_window is on; sliding-window attention is not supported")
    if config.get("hidden_act", "silu") != "silu":
        raise ExportError(f'hidden_act "{config["hidden_act"]}" is not supported, only silu')
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    heads = int(config["num_attention_heads"])
    bias = bool(config.get("attention_bias", False))
    longest = int(config["max_position_embeddings"])
    if kind == "mistral":  # inside the window, attention is full attention
        longest = min(longest, int(config.get("sliding_window") or longest))
    return ModelSpec(
        architecture=kind,
        hidden=int(config["hidden_size"]),
        layers=int(config["num_hidden_layers"]),
        heads=heads,
        kv_heads=int(config.get("num_key_value_heads") or heads),
        head_dim=int(config.get("head_dim") or (128 if kind == "qwen3" else config["hidden_size"] // heads)),
        intermediate=int(config["intermediate_size"]),
        vocab=int(config["vocab_size"]),
        max_positions=longest,
        epsilon=float(config.get("rms_norm_eps", 1e-6)),
        rope_theta=float(rope.get("rope_theta") or config.get("rope_theta") or 10000.0),
        rope_scaling=_read_rope_scaling(rope),
        tied=bool(config.get("tie_word_embeddings", False)),
        attention_bias=kind == "qwen2" or bias,
        output_bias=kind != "qwen2" and bias,
        mlp_bias=bool(config.get("mlp_bias", False)),
        qk_norm=kind == "qwen3",
        embedding_scale=float(config.get("embedding_multiplier", 1)),
        residual_scale=float(config.get("residual_multiplier", 1)),
        attention_scale=float(config["attention_multiplier"]) if kind == "granite" else None,
        logit_divisor=float(config.get("logits_scaling", 1)),
        bos=config.get("bos_token_id"),
        eos=_read_token_ids(config.get("eos_token_id")),
        config=config,
    )


def _read_token_ids(value: int | list[int] | None) -> tuple[int, ...]:
    if value is None:
        return ()
    return tuple(value) if isinstance(value, list) else (value,)


def _read_rope_scaling(rope: Mapping[str, Any]) -> RopeScaling | None:
    kind = rope.get("rope_type") or rope.get("type") or "default"
    if kind == "default":
        return None
    if kind == "linear":
        return RopeScaling("linear", float(rope["factor"]))
    if kind == "llama3":
        return RopeScaling(
            "llama3",
            float(rope["factor"]),
            float(rope["low_freq_factor"]),
            float(rope["high_freq_factor"]),
            int(rope["original_max_position_embeddings"]),
        )
    raise ExportError(f'rope_type "{kind}" is not supported, only default, linear and llama3')
