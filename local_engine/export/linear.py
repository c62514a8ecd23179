"""The matrix products of a decoder at one precision: MatMul, or MatMulNBits with quantized weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from onnx import TensorProto

from .graph_builder import GraphBuilder
from .quantization import BLOCK, Bits, quantize
from .spec import ExportError
from .weights import Tensor

__all__ = ["PRECISIONS", "LinearLayers", "Precision"]

Precision: TypeAlias = Literal["fp32", "fp16", "int8", "int4", "int8-fp16", "int4-fp16"]
PRECISIONS: tuple[Precision, ...] = ("fp32", "fp16", "int8", "int4", "int8-fp16", "int4-fp16")
BITS: dict[Precision, Bits] = {"int8": 8, "int4": 4, "int8-fp16": 8, "int4-fp16": 4}


class LinearLayers:
    """Adds matrix products to a graph. Activations are float16 if the precision ends in fp16, else float32."""

    def __init__(self, graph: GraphBuilder, weights: Mapping[str, Tensor], precision: Precision) -> None:
        self._graph = graph
        self._weights = weights
        self._bits = BITS.get(precision)
        self.dtype: type[np.floating[Any]] = np.float16 if precision.endswith("fp16") else np.float32

    def weight(self, name: str) -> Tensor:
        """A weight by name. Raises ExportError if it is missing."""
        try:
            return self._weights[name]
        except KeyError:
            raise ExportError(f"the weights have no {name}") from None

    def add_vector(self, name: str) -> str:
        """Add a weight that is not quantized, of a norm or a bias; return its name."""
        return self._graph.add_constant(name, self.weight(name).astype(self.dtype))

    def add_product(self, name: str, x: str, modules: Sequence[str], *, bias: bool) -> str:
        """Add x times the concatenated weights of the modules, plus their biases if `bias`; return the output."""
        matrix = np.concatenate([self.weight(f"{module}.weight") for module in modules])
        out = f"{name}.product_only" if bias else f"{name}.out"
        if self._bits:
            self._add_quantized_product(name, x, matrix, out)
        else:
            self._graph.add_node(
                "MatMul", [x, self._graph.add_constant(f"{name}.weight", self._convert(matrix.T))], out
            )
        if not bias:
            return out
        values = np.concatenate([self.weight(f"{module}.bias") for module in modules])
        return self._graph.add_node(
            "Add", [out, self._graph.add_constant(f"{name}.bias", self._convert(values))], f"{name}.out"
        )

    def add_scale(self, x: str, factor: float) -> str:
        """Add x times a factor; return the output."""
        if factor == 1:
            return x
        scale = self._graph.add_constant(f"scale_{factor}", np.array(factor, self.dtype))
        return self._graph.add_node("Mul", [x, scale], f"{x}.scaled_by")

    def add_embedding(self, weight: str, ids: str, out: str) -> str:
        """Add the lookup of token embeddings; return the output."""
        if self._bits:
            rows = self.weight(weight).shape[1]
            if rows % BLOCK == 0:
                codes, scales = self._add_quantized_weight(weight, self.weight(weight))
                attributes = {"bits": self._bits, "block_size": BLOCK, "quantize_axis": 1, "gather_axis": 0}
                flat = self._graph.add_node(
                    "Reshape", [codes, self._graph.add_ints(f"{weight}.flat", 0, -1)], f"{weight}.rows"
                )
                return self._graph.add_contrib_node("GatherBlockQuantized", [flat, ids, scales], out, **attributes)
        table = self._graph.add_constant(weight, self._convert(self.weight(weight)))
        return self._graph.add_node("Gather", [table, ids], out)

    def add_head(self, weight: str, x: str, out: str) -> str:
        """Add the projection of x (batch, positions, hidden) to float32 logits; return the output."""
        raw = out if self.dtype is np.float32 else f"{out}.raw"
        if self._bits:
            self._add_quantized_product("head", x, self.weight(weight), raw, stored_as=weight)
        else:  # Transpose of a constant: folded at load, so that a tied embedding is stored once
            table = self._graph.add_constant(weight, self._convert(self.weight(weight)))
            transposed = self._graph.add_node("Transpose", [table], f"{weight}.turned", perm=[1, 0])
            self._graph.add_node("MatMul", [x, transposed], raw)
        return raw if raw == out else self._graph.add_node("Cast", [raw], out, to=TensorProto.FLOAT)

    def _convert(self, tensor: Tensor) -> Tensor:
        narrow = tensor.astype(self.dtype)
        if self.dtype is np.float16 and not np.isfinite(narrow).all():
            raise ExportError("a weight is too large for float16; use fp32, int8 or int4")
        return narrow

    def _add_quantized_product(self, name: str, x: str, matrix: Tensor, out: str, stored_as: str | None = None) -> None:
        codes, scales = self._add_quantized_weight(stored_as or f"{name}.weight", matrix)
        rows, columns = matrix.shape
        sizes = {"K": columns, "N": rows, "bits": self._bits, "block_size": BLOCK, "accuracy_level": 4}
        self._graph.add_contrib_node("MatMulNBits", [x, codes, scales], out, **sizes)

    def _add_quantized_weight(self, name: str, matrix: Tensor) -> tuple[str, str]:
        assert self._bits is not None
        codes, scales = quantize(np.asarray(matrix), self._bits)
        return self._graph.add_constant(f"{name}.codes", codes), self._graph.add_constant(
            f"{name}.scales", self._convert(scales)
        )
