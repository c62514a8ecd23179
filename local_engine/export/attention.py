"""The two attention layouts. Each adds, per layer, everything between the norm and the output projection."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from .builder import GraphBuilder
from .linear import Linear
from .rope import rotary_tables
from .spec import ModelSpec

__all__ = ["Concatenated", "GroupQuery"]


class Attention:
    """What both layouts share: the projections, norms of queries and keys, and the output projection."""

    extra_inputs: tuple[str, ...] = ()

    def __init__(self, spec: ModelSpec, graph: GraphBuilder, linear: Linear, length: int) -> None:
        self.spec = spec
        self.graph = graph
        self.linear = linear
        self.length = length

    def prepare(self) -> None:
        raise NotImplementedError

    def layer(self, layer: int, x: str) -> str:
        raise NotImplementedError

    def tables(self) -> tuple[str, str]:
        cos, sin = (table.astype(self.linear.dtype) for table in rotary_tables(self.spec, self.length))
        return self.graph.constant("cos_cache", cos), self.graph.constant("sin_cache", sin)

    def project(self, at: str, name: str, x: str) -> str:
        """One of q, k, v, normed per head where the model does so: (batch, sequence, heads * head_dim)."""
        out = self.linear(f"{at}.{name}", x, [f"{at}.{name}_proj"], bias=self.spec.attention_bias)
        if not self.spec.qk_norm or name == "v":
            return out
        heads = self.graph.ints(f"heads_of_{name}", 0, 0, -1, self.spec.head_dim)
        flat = self.graph.ints(f"flat_{name}", 0, 0, -1)
        weight = self.linear.vector(f"{at}.{name}_norm.weight")
        split = self.graph.node("Reshape", [out, heads], f"{at}.{name}.heads")
        normed = self.graph.node(
            "SimplifiedLayerNormalization",
            [split, weight],
            f"{at}.{name}.normed",
            axis=-1,
            epsilon=self.spec.epsilon,
            stash_type=1,
        )
        return self.graph.node("Reshape", [normed, flat], f"{at}.{name}.flat")

    def output(self, at: str, attended: str) -> str:
        return self.linear(f"{at}.o", attended, [f"{at}.o_proj"], bias=self.spec.output_bias)


class GroupQuery(Attention):
    """com.microsoft GroupQueryAttention with rotary positions inside, as onnxruntime-genai's builder lays it out."""

    def prepare(self) -> None:
        graph = self.graph
        graph.node("Cast", ["attention_mask"], "mask", to=TensorProto.FLOAT)  # CUDA sums integers with cuDNN only
        graph.node("ReduceSum", ["mask", graph.ints("one", 1)], "row_lengths", keepdims=0)
        graph.node("Sub", ["row_lengths", graph.constant("float_one", np.array(1, np.float32))], "row_ends")
        graph.node("Cast", ["row_ends"], "seqlens_k", to=TensorProto.INT32)
        graph.node("Shape", ["attention_mask"], "mask_shape")
        graph.node("Gather", ["mask_shape", graph.constant("index_one", np.array(1, np.int64))], "mask_width", axis=0)
        graph.node("Cast", ["mask_width"], "total_sequence_length", to=TensorProto.INT32)
        self.rotary = self.tables()

    def layer(self, layer: int, x: str) -> str:
        at = f"model.layers.{layer}.self_attn"
        spec = self.spec
        if spec.qk_norm:
            query, key, value = (self.project(at, name, x) for name in ("q", "k", "v"))
        else:
            modules = [f"{at}.{name}_proj" for name in ("q", "k", "v")]
            query, key, value = self.linear(f"{at}.qkv", x, modules, bias=spec.attention_bias), "", ""
        past = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
        present = [f"present.{layer}.{part}" for part in ("key", "value")]
        attended = self.graph.contrib(
            "GroupQueryAttention",
            [query, key, value, *past, "seqlens_k", "total_sequence_length", *self.rotary],
            f"{at}.attended",
            *present,
            num_heads=spec.heads,
            kv_num_heads=spec.kv_heads,
            scale=spec.scale,
            do_rotary=1,
            rotary_interleaved=0,
            local_window_size=-1,
        )
        return self.output(at, attended)


class Concatenated(Attention):
    """Standard operators only: past and present are concatenated, positions are an input."""

    extra_inputs = ("position_ids",)

    def prepare(self) -> None:
        graph = self.graph
        for table in self.tables():
            name = table.removesuffix("_cache")
            half = graph.node("Gather", [table, "position_ids"], f"{name}_half")
            whole = graph.node("Concat", [half, half], f"{name}_whole", axis=-1)
            graph.node("Unsqueeze", [whole, graph.ints("one", 1)], name)
        self._mask()
        for name, heads in (("q", self.spec.heads), ("kv", self.spec.kv_heads)):
            graph.ints(f"split_{name}", 0, 0, heads, self.spec.head_dim)
        graph.ints("flat_heads", 0, 0, -1)

    def _mask(self) -> None:
        """0 where a position may be seen, the lowest number elsewhere: (batch, 1, sequence, total)."""
        graph = self.graph
        zero, one = (graph.constant(f"index_{name}", np.array(i, np.int64)) for i, name in enumerate(("zero", "one")))
        for source, name in (("input_ids", "sequence"), ("attention_mask", "total")):
            graph.node("Gather", [graph.node("Shape", [source], f"{name}_shape"), one], f"{name}_length", axis=0)
        graph.node("Sub", ["total_length", "sequence_length"], "past_length")
        graph.node("Range", ["past_length", "total_length", one], "query_places")
        graph.node("Range", [zero, "total_length", one], "key_places")
        graph.node("Unsqueeze", ["query_places", graph.ints("one", 1)], "query_column")
        graph.node("LessOrEqual", ["key_places", "query_column"], "causal")
        graph.node("Cast", ["attention_mask"], "kept", to=TensorProto.BOOL)
        graph.node("Unsqueeze", ["kept", graph.ints("one_two", 1, 2)], "kept_everywhere")
        graph.node("And", ["causal", "kept_everywhere"], "seen")
        lowest = graph.constant("lowest", np.array(np.finfo(self.linear.dtype).min, self.linear.dtype))
        nought = graph.constant("nought", np.array(0, self.linear.dtype))
        graph.node("Where", ["seen", nought, lowest], "additive_mask")

    def _rotated(self, x: str) -> str:
        graph = self.graph
        half = self.spec.head_dim // 2
        first, second = f"{x}.first", f"{x}.second"
        graph.node("Split", [x, graph.ints("halves", half, half)], first, second, axis=-1)
        graph.node("Neg", [second], f"{second}.negated")
        graph.node("Concat", [f"{second}.negated", first], f"{x}.turned", axis=-1)
        graph.node("Mul", [x, "cos"], f"{x}.by_cos")
        graph.node("Mul", [f"{x}.turned", "sin"], f"{x}.by_sin")
        return graph.node("Add", [f"{x}.by_cos", f"{x}.by_sin"], f"{x}.rotated")

    def _heads(self, x: str, split: str) -> str:
        """(batch, sequence, heads * size) to (batch, heads, sequence, size)."""
        self.graph.node("Reshape", [x, split], f"{x}.split")
        return self.graph.node("Transpose", [f"{x}.split"], f"{x}.by_head", perm=[0, 2, 1, 3])

    def _grown(self, layer: int, part: str, new: str) -> str:
        """Past and new, concatenated as `present`, and repeated for each query head."""
        graph, spec = self.graph, self.spec
        present = graph.node("Concat", [f"past_key_values.{layer}.{part}", new], f"present.{layer}.{part}", axis=2)
        if spec.heads == spec.kv_heads:
            return present
        repeats = spec.heads // spec.kv_heads
        graph.node("Unsqueeze", [present, graph.ints("two", 2)], f"{present}.grouped")
        target = graph.ints("repeat", 1, 1, repeats, 1, 1)
        graph.node("Expand", [f"{present}.grouped", target], f"{present}.repeated")
        merged = graph.ints("merge", 0, spec.heads, -1, spec.head_dim)
        return graph.node("Reshape", [f"{present}.repeated", merged], f"{present}.all_heads")

    def layer(self, layer: int, x: str) -> str:
        graph = self.graph
        at = f"model.layers.{layer}.self_attn"
        query = self._rotated(self._heads(self.project(at, "q", x), "split_q"))
        key = self._grown(layer, "key", self._rotated(self._heads(self.project(at, "k", x), "split_kv")))
        value = self._grown(layer, "value", self._heads(self.project(at, "v", x), "split_kv"))
        graph.node("Transpose", [key], f"{at}.keys", perm=[0, 1, 3, 2])
        scale = graph.constant("scale", np.array(self.spec.scale, self.linear.dtype))
        graph.node("MatMul", [query, f"{at}.keys"], f"{at}.raw_scores")
        graph.node("Mul", [f"{at}.raw_scores", scale], f"{at}.scaled")
        graph.node("Add", [f"{at}.scaled", "additive_mask"], f"{at}.scores")
        graph.node("Softmax", [f"{at}.scores"], f"{at}.shares", axis=-1)
        graph.node("MatMul", [f"{at}.shares", value], f"{at}.by_head")
        graph.node("Transpose", [f"{at}.by_head"], f"{at}.by_place", perm=[0, 2, 1, 3])
        return self.output(at, graph.node("Reshape", [f"{at}.by_place", "flat_heads"], f"{at}.attended"))
