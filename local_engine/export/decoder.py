"""The decoder as an ONNX graph, in two layouts.

`gqa`: one GroupQueryAttention per layer, rotary positions inside it, past and present of the same length so that both
can be bound to one buffer. Inputs `input_ids`, `attention_mask` (padded on the right), `past_key_values.N.key|value`
(batch, kv heads, length, head size); outputs `logits`, `present.N.key|value`. Row lengths come from the mask.

`concat`: standard operators, `position_ids` as a further input, present = past with the new keys and values behind it.

`logits` is float32, (batch, 1, vocab): the last position alone, or with `all_logits` every position.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import onnx
from onnx import TensorProto, helper

from .attention import Concatenated, GroupQuery
from .builder import GraphBuilder
from .linear import Linear, Precision
from .spec import ModelSpec
from .weights import Tensor

__all__ = ["Layout", "Options", "build"]

Layout: TypeAlias = Literal["gqa", "concat"]


@dataclass(frozen=True, slots=True)
class Options:
    """How to export. `length` is the longest context that the rotary tables cover."""

    precision: Precision
    layout: Layout
    length: int
    all_logits: bool = False
    producer: str = "dragoman"


def build(
    spec: ModelSpec,
    weights: Mapping[str, Tensor],
    options: Options,
    graph: GraphBuilder,
    advance: Callable[[str], None],
) -> tuple[list[onnx.ValueInfoProto], list[onnx.ValueInfoProto]]:
    """Add the whole decoder to the graph; returns its inputs and outputs. `advance` hears of each part."""
    linear = Linear(graph, weights, options.precision)
    kind = GroupQuery if options.layout == "gqa" else Concatenated
    attention = kind(spec, graph, linear, options.length)
    attention.prepare()
    stream = linear.embed("model.embed_tokens.weight", "input_ids", "embedded")
    stream = linear.scaled(stream, spec.embedding_scale)
    advance("embedding")
    added = ""
    for layer in range(spec.layers):
        at = f"model.layers.{layer}"
        normed, stream = _norm(graph, spec, linear, stream, added, f"{at}.input_layernorm")
        attended = linear.scaled(attention.layer(layer, normed), spec.residual_scale)
        normed, stream = _norm(graph, spec, linear, stream, attended, f"{at}.post_attention_layernorm")
        added = linear.scaled(_feed_forward(graph, spec, linear, normed, f"{at}.mlp"), spec.residual_scale)
        advance(f"layer {layer}")
    normed, _ = _norm(graph, spec, linear, stream, added, "model.norm")
    if not options.all_logits:
        indices = graph.ints("last", -1)
        normed = graph.node("Gather", [normed, indices], "last_hidden", axis=1)
    head = "model.embed_tokens.weight" if spec.tied else "lm_head.weight"
    linear.head(head, linear.scaled(normed, 1 / spec.logit_divisor), "logits")
    advance("head")
    return _interface(spec, options, linear, attention.extra_inputs)


def _norm(graph: GraphBuilder, spec: ModelSpec, linear: Linear, stream: str, added: str, name: str) -> tuple[str, str]:
    """RMS norm of stream + added; returns the normed values and the sum, which is the stream from here on."""
    weight = linear.vector(f"{name}.weight")
    out = f"{name}.out"
    if not added:
        graph.node("SimplifiedLayerNormalization", [stream, weight], out, axis=-1, epsilon=spec.epsilon, stash_type=1)
        return out, stream
    total = f"{name}.sum"
    inputs = [stream, added, weight]
    graph.contrib("SkipSimplifiedLayerNormalization", inputs, out, "", "", total, epsilon=spec.epsilon)
    return out, total


def _feed_forward(graph: GraphBuilder, spec: ModelSpec, linear: Linear, x: str, at: str) -> str:
    gate = linear(f"{at}.gate", x, [f"{at}.gate_proj"], bias=spec.mlp_bias)
    up = linear(f"{at}.up", x, [f"{at}.up_proj"], bias=spec.mlp_bias)
    graph.node("Sigmoid", [gate], f"{at}.sigmoid")
    graph.node("Mul", [gate, f"{at}.sigmoid"], f"{at}.silu")
    graph.node("Mul", [f"{at}.silu", up], f"{at}.product")
    return linear(f"{at}.down", f"{at}.product", [f"{at}.down_proj"], bias=spec.mlp_bias)


def _interface(
    spec: ModelSpec, options: Options, linear: Linear, extra: tuple[str, ...]
) -> tuple[list[onnx.ValueInfoProto], list[onnx.ValueInfoProto]]:
    info = helper.make_tensor_value_info
    inputs = [
        info("input_ids", TensorProto.INT64, ["batch", "sequence"]),
        info("attention_mask", TensorProto.INT64, ["batch", "total"]),
        *(info(name, TensorProto.INT64, ["batch", "sequence"]) for name in extra),
    ]
    outputs = [info("logits", TensorProto.FLOAT, ["batch", "sequence" if options.all_logits else 1, spec.vocab])]
    kv = helper.np_dtype_to_tensor_dtype(np.dtype(linear.dtype))
    for layer in range(spec.layers):
        for part in ("key", "value"):
            past: list[int | str | None] = ["batch", spec.kv_heads, "past", spec.head_dim]
            present: list[int | str | None] = ["batch", spec.kv_heads, "total_kept", spec.head_dim]
            inputs.append(info(f"past_key_values.{layer}.{part}", kv, past))
            outputs.append(info(f"present.{layer}.{part}", kv, present))
    return inputs, outputs
