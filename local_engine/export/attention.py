"""The two attention layouts. Each adds, per layer, the nodes from the norm to the output projection."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from .graph_builder import GraphBuilder
from .linear import LinearLayers
from .rope import rotary_tables
from .spec import ModelSpec

__all__ = ["ConcatAttention", "GroupQueryAttention"]


class Attention:
    """The common part of both layouts: projections, norms of queries and keys, and the output projection."""

    extra_inputs: tuple[str, ...] = ()

    def __init__(self, spec: ModelSpec, graph: GraphBuilder, linear: LinearLayers, length: int) -> None:
        self.spec = spec
        self.graph = graph
        self.linear = linear
        self.length = length

    def add_shared_nodes(self) -> None:
        """Add the nodes that all layers share."""
        raise NotImplementedError

    def add_layer(self, layer: int, x: str) -> str:
        """Add the attention of a layer; return its output."""
        raise NotImplementedError

    def add_rotary_tables(self) -> tuple[str, str]:
        """Add the tables of cosines and sines; return their names."""
        cos, sin = (table.astype(self.linear.dtype) for table in rotary_tables(self.spec, self.length))
        return self.graph.add_constant("cos_cache", cos), self.graph.add_constant("sin_cache", sin)

    def add_projection(self, at: str, name: str, x: str) -> str:
        """Add the projection q, k or v, and its norm per head if the model has one: (batch, sequence, heads * size)."""
        out = self.linear.add_product(f"{at}.{name}", x, [f"{at}.{name}_proj"], bias=self.spec.attention_bias)
        if not self.spec.qk_norm or name == "v":
            return out
        heads = self.graph.add_ints(f"heads_of_{name}", 0, 0, -1, self.spec.head_dim)
        flat = self.graph.add_ints(f"flat_{name}", 0, 0, -1)
        weight = self.linear.add_vector(f"{at}.{name}_norm.weight")
        split = self.graph.add_node("Reshape", [out, heads], f"{at}.{name}.heads")
        normed = self.graph.add_node(
            "SimplifiedLayerNormalization",
            [split, weight],
            f"{at}.{name}.normed",
            axis=-1,
            epsilon=self.spec.epsilon,
            stash_type=1,
        )
        return self.graph.add_node("Reshape", [normed, flat], f"{at}.{name}.flat")

    def add_output(self, at: str, attended: str) -> str:
        """Add the output projection."""
        return self.linear.add_product(f"{at}.o", attended, [f"{at}.o_proj"], bias=self.spec.output_bias)


class GroupQueryAttention(Attention):
    """com.microsoft GroupQueryAttention with rotary positions inside, in the layout of onnxruntime-genai's builder."""

    def add_shared_nodes(self) -> None:
        graph = self.graph
        graph.add_node("Cast", ["attention_mask"], "mask", to=TensorProto.FLOAT)  # CUDA sums integers with cuDNN only
        graph.add_node("ReduceSum", ["mask", graph.add_ints("one", 1)], "row_lengths", keepdims=0)
        graph.add_node("Sub", ["row_lengths", graph.add_constant("float_one", np.array(1, np.float32))], "row_ends")
        graph.add_node("Cast", ["row_ends"], "seqlens_k", to=TensorProto.INT32)
        graph.add_node("Shape", ["attention_mask"], "mask_shape")
        graph.add_node(
            "Gather", ["mask_shape", graph.add_constant("index_one", np.array(1, np.int64))], "mask_width", axis=0
        )
        graph.add_node("Cast", ["mask_width"], "total_sequence_length", to=TensorProto.INT32)
        self.rotary = self.add_rotary_tables()

    def add_layer(self, layer: int, x: str) -> str:
        at = f"model.layers.{layer}.self_attn"
        spec = self.spec
        if spec.qk_norm:
            query, key, value = (self.add_projection(at, name, x) for name in ("q", "k", "v"))
        else:
            modules = [f"{at}.{name}_proj" for name in ("q", "k", "v")]
            query, key, value = self.linear.add_product(f"{at}.qkv", x, modules, bias=spec.attention_bias), "", ""
        past = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
        present = [f"present.{layer}.{part}" for part in ("key", "value")]
        attended = self.graph.add_contrib_node(
            "GroupQueryAttention",
            [query, key, value, *past, "seqlens_k", "total_sequence_length", *self.rotary],
            f"{at}.attended",
            *present,
            num_heads=spec.heads,
            kv_num_heads=spec.kv_heads,
            scale=spec.query_scale,
            do_rotary=1,
            rotary_interleaved=0,
            local_window_size=-1,
        )
        return self.add_output(at, attended)


class ConcatAttention(Attention):
    """Standard operators only: present is past with the new entries appended, and positions are an input."""

    extra_inputs = ("position_ids",)

    def add_shared_nodes(self) -> None:
        graph = self.graph
        for table in self.add_rotary_tables():
            name = table.removesuffix("_cache")
            half = graph.add_node("Gather", [table, "position_ids"], f"{name}_half")
            whole = graph.add_node("Concat", [half, half], f"{name}_whole", axis=-1)
            graph.add_node("Unsqueeze", [whole, graph.add_ints("one", 1)], name)
        self._add_mask()
        for name, heads in (("q", self.spec.heads), ("kv", self.spec.kv_heads)):
            graph.add_ints(f"split_{name}", 0, 0, heads, self.spec.head_dim)
        graph.add_ints("flat_heads", 0, 0, -1)

    def _add_mask(self) -> None:
        """Add the mask (batch, 1, sequence, total): 0 for visible positions, the lowest number for all others."""
        graph = self.graph
        zero, one = (
            graph.add_constant(f"index_{name}", np.array(i, np.int64)) for i, name in enumerate(("zero", "one"))
        )
        for source, name in (("input_ids", "sequence"), ("attention_mask", "total")):
            graph.add_node(
                "Gather", [graph.add_node("Shape", [source], f"{name}_shape"), one], f"{name}_length", axis=0
            )
        graph.add_node("Sub", ["total_length", "sequence_length"], "past_length")
        graph.add_node("Range", ["past_length", "total_length", one], "query_places")
        graph.add_node("Range", [zero, "total_length", one], "key_places")
        graph.add_node("Unsqueeze", ["query_places", graph.add_ints("one", 1)], "query_column")
        graph.add_node("LessOrEqual", ["key_places", "query_column"], "causal")
        graph.add_node("Cast", ["attention_mask"], "kept", to=TensorProto.BOOL)
        graph.add_node("Unsqueeze", ["kept", graph.add_ints("one_two", 1, 2)], "kept_everywhere")
        graph.add_node("And", ["causal", "kept_everywhere"], "seen")
        lowest = graph.add_constant("lowest", np.array(np.finfo(self.linear.dtype).min, self.linear.dtype))
        zero_value = graph.add_constant("nought", np.array(0, self.linear.dtype))
        graph.add_node("Where", ["seen", zero_value, lowest], "additive_mask")

    def _rotate(self, x: str) -> str:
        graph = self.graph
        half = self.spec.head_dim // 2
        first, second = f"{x}.first", f"{x}.second"
        graph.add_node("Split", [x, graph.add_ints("halves", half, half)], first, second, axis=-1)
        graph.add_node("Neg", [second], f"{second}.negated")
        graph.add_node("Concat", [f"{second}.negated", first], f"{x}.turned", axis=-1)
        graph.add_node("Mul", [x, "cos"], f"{x}.by_cos")
        graph.add_node("Mul", [f"{x}.turned", "sin"], f"{x}.by_sin")
        return graph.add_node("Add", [f"{x}.by_cos", f"{x}.by_sin"], f"{x}.rotated")

    def _split_heads(self, x: str, split: str) -> str:
        """Reshape (batch, sequence, heads * size) to (batch, heads, sequence, size)."""
        self.graph.add_node("Reshape", [x, split], f"{x}.split")
        return self.graph.add_node("Transpose", [f"{x}.split"], f"{x}.by_head", perm=[0, 2, 1, 3])

    def _append_to_past(self, layer: int, part: str, new: str) -> str:
        """Concatenate past and new entries as `present`; return them repeated for each query head."""
        graph, spec = self.graph, self.spec
        present = graph.add_node("Concat", [f"past_key_values.{layer}.{part}", new], f"present.{layer}.{part}", axis=2)
        if spec.heads == spec.kv_heads:
            return present
        repeats = spec.heads // spec.kv_heads
        graph.add_node("Unsqueeze", [present, graph.add_ints("two", 2)], f"{present}.grouped")
        target = graph.add_ints("repeat", 1, 1, repeats, 1, 1)
        graph.add_node("Expand", [f"{present}.grouped", target], f"{present}.repeated")
        merged = graph.add_ints("merge", 0, spec.heads, -1, spec.head_dim)
        return graph.add_node("Reshape", [f"{present}.repeated", merged], f"{present}.all_heads")

    def add_layer(self, layer: int, x: str) -> str:
        graph = self.graph
        at = f"model.layers.{layer}.self_attn"
        query = self._rotate(self._split_heads(self.add_projection(at, "q", x), "split_q"))
        key = self._append_to_past(
            layer, "key", self._rotate(self._split_heads(self.add_projection(at, "k", x), "split_kv"))
        )
        value = self._append_to_past(layer, "value", self._split_heads(self.add_projection(at, "v", x), "split_kv"))
        graph.add_node("Transpose", [key], f"{at}.keys", perm=[0, 1, 3, 2])
        scale = graph.add_constant("scale", np.array(self.spec.query_scale, self.linear.dtype))
        graph.add_node("MatMul", [query, f"{at}.keys"], f"{at}.raw_scores")
        graph.add_node("Mul", [f"{at}.raw_scores", scale], f"{at}.scaled")
        graph.add_node("Add", [f"{at}.scaled", "additive_mask"], f"{at}.scores")
        graph.add_node("Softmax", [f"{at}.scores"], f"{at}.shares", axis=-1)
        graph.add_node("MatMul", [f"{at}.shares", value], f"{at}.by_head")
        graph.add_node("Transpose", [f"{at}.by_head"], f"{at}.by_place", perm=[0, 2, 1, 3])
        return self.add_output(at, graph.add_node("Reshape", [f"{at}.by_place", "flat_heads"], f"{at}.attended"))
