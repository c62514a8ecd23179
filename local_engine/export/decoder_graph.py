"""The ONNX graph of a decoder, in two layouts.

`gqa`: one GroupQueryAttention per layer, with rotary positions inside it. Past and present have the same length, so
they can share a buffer. Inputs `input_ids`, `attention_mask` (padded on the right), `past_key_values.N.key|value`
(batch, kv heads, length, head size); outputs `logits`, `present.N.key|value`. The mask gives the row lengths.

`concat`: standard operators and the additional input `position_ids`. Present is past with the new entries appended.

`logits` is float32, (batch, 1, vocab) for the last position only; with `all_logits` it contains every position.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import onnx
from onnx import TensorProto, helper

from .attention import ConcatAttention, GroupQueryAttention
from .graph_builder import GraphBuilder
from .linear import LinearLayers, Precision
from .spec import ModelSpec
from .weights import Tensor

__all__ = ["ExportOptions", "Layout", "add_decoder"]

Layout: TypeAlias = Literal["gqa", "concat"]


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How to export a model. `length` is the context length that the rotary tables cover."""

    precision: Precision
    layout: Layout
    length: int
    all_logits: bool = False
    producer: str = "dragoman"


def add_decoder(
    spec: ModelSpec,
    weights: Mapping[str, Tensor],
    options: ExportOptions,
    graph: GraphBuilder,
    report: Callable[[str], None],
) -> tuple[list[onnx.ValueInfoProto], list[onnx.ValueInfoProto]]:
    """Add the decoder to the graph; return its inputs and outputs. `report` is called with the name of each part."""
    linear = LinearLayers(graph, weights, options.precision)
    kind = GroupQueryAttention if options.layout == "gqa" else ConcatAttention
    attention = kind(spec, graph, linear, options.length)
    attention.add_shared_nodes()
    stream = linear.add_embedding("model.embed_tokens.weight", "input_ids", "embedded")
    stream = linear.add_scale(stream, spec.embedding_scale)
    report("embedding")
    added = ""
    for layer in range(spec.layers):
        at = f"model.layers.{layer}"
        normed, stream = _add_norm(graph, spec, linear, stream, added, f"{at}.input_layernorm")
        attended = linear.add_scale(attention.add_layer(layer, normed), spec.residual_scale)
        normed, stream = _add_norm(graph, spec, linear, stream, attended, f"{at}.post_attention_layernorm")
        added = linear.add_scale(_add_feed_forward(graph, spec, linear, normed, f"{at}.mlp"), spec.residual_scale)
        report(f"layer {layer}")
    normed, _ = _add_norm(graph, spec, linear, stream, added, "model.norm")
    if not options.all_logits:
        indices = graph.add_ints("last", -1)
        normed = graph.add_node("Gather", [normed, indices], "last_hidden", axis=1)
    head = "model.embed_tokens.weight" if spec.tied else "lm_head.weight"
    linear.add_head(head, linear.add_scale(normed, 1 / spec.logit_divisor), "logits")
    report("head")
    return _describe_interface(spec, options, linear, attention.extra_inputs)


def _add_norm(
    graph: GraphBuilder, spec: ModelSpec, linear: LinearLayers, stream: str, added: str, name: str
) -> tuple[str, str]:
    """Add the RMS norm of stream + added; return the normed values and the sum, which is the new residual stream."""
    weight = linear.add_vector(f"{name}.weight")
    out = f"{name}.out"
    if not added:
        graph.add_node(
            "SimplifiedLayerNormalization", [stream, weight], out, axis=-1, epsilon=spec.epsilon, stash_type=1
        )
        return out, stream
    total = f"{name}.sum"
    inputs = [stream, added, weight]
    graph.add_contrib_node("SkipSimplifiedLayerNormalization", inputs, out, "", "", total, epsilon=spec.epsilon)
    return out, total


def _add_feed_forward(graph: GraphBuilder, spec: ModelSpec, linear: LinearLayers, x: str, at: str) -> str:
    gate = linear.add_product(f"{at}.gate", x, [f"{at}.gate_proj"], bias=spec.mlp_bias)
    up = linear.add_product(f"{at}.up", x, [f"{at}.up_proj"], bias=spec.mlp_bias)
    graph.add_node("Sigmoid", [gate], f"{at}.sigmoid")
    graph.add_node("Mul", [gate, f"{at}.sigmoid"], f"{at}.silu")
    graph.add_node("Mul", [f"{at}.silu", up], f"{at}.product")
    return linear.add_product(f"{at}.down", f"{at}.product", [f"{at}.down_proj"], bias=spec.mlp_bias)


def _describe_interface(
    spec: ModelSpec, options: ExportOptions, linear: LinearLayers, extra: tuple[str, ...]
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
