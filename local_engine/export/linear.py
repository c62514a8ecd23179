"""Matrices of a decoder at one precision: plain MatMul, or MatMulNBits over weight-only blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from onnx import TensorProto

from .builder import GraphBuilder
from .quantize import BLOCK, Bits, quantize
from .spec import ExportError
from .weights import Tensor

__all__ = ["PRECISIONS", "Linear", "Precision"]

Precision: TypeAlias = Literal["fp32", "fp16", "int8", "int4", "int8-fp16", "int4-fp16"]
PRECISIONS: tuple[Precision, ...] = ("fp32", "fp16", "int8", "int4", "int8-fp16", "int4-fp16")
BITS: dict[Precision, Bits] = {"int8": 8, "int4": 4, "int8-fp16": 8, "int4-fp16": 4}


class Linear:
    """Adds matrix products to a graph. Activations are float16 where the precision ends in fp16, else float32."""

    def __init__(self, graph: GraphBuilder, weights: Mapping[str, Tensor], precision: Precision) -> None:
        self._graph = graph
        self._weights = weights
        self._bits = BITS.get(precision)
        self.dtype: type[np.floating[Any]] = np.float16 if precision.endswith("fp16") else np.float32

    def weight(self, name: str) -> Tensor:
        try:
            return self._weights[name]
        except KeyError:
            raise ExportError(f"the weights hold no {name}") from None

    def vector(self, name: str) -> str:
        """A weight as it is: of a norm, or a bias."""
        return self._graph.constant(name, self.weight(name).astype(self.dtype))

    def __call__(self, name: str, x: str, modules: Sequence[str], *, bias: bool) -> str:
        """x times the modules' weights, side by side, plus their biases if they have some; returns the output."""
        matrix = np.concatenate([self.weight(f"{module}.weight") for module in modules])
        out = f"{name}.product_only" if bias else f"{name}.out"
        if self._bits:
            self._blocks(name, x, matrix, out)
        else:
            self._graph.node("MatMul", [x, self._graph.constant(f"{name}.weight", self._plain(matrix.T))], out)
        if not bias:
            return out
        values = np.concatenate([self.weight(f"{module}.bias") for module in modules])
        return self._graph.node("Add", [out, self._graph.constant(f"{name}.bias", self._plain(values))], f"{name}.out")

    def scaled(self, x: str, factor: float) -> str:
        if factor == 1:
            return x
        scale = self._graph.constant(f"scale_{factor}", np.array(factor, self.dtype))
        return self._graph.node("Mul", [x, scale], f"{x}.scaled_by")

    def embed(self, weight: str, ids: str, out: str) -> str:
        if self._bits:
            rows = self.weight(weight).shape[1]
            if rows % BLOCK == 0:
                codes, scales = self._stored(weight, self.weight(weight))
                attributes = {"bits": self._bits, "block_size": BLOCK, "quantize_axis": 1, "gather_axis": 0}
                flat = self._graph.node("Reshape", [codes, self._graph.ints(f"{weight}.flat", 0, -1)], f"{weight}.rows")
                return self._graph.contrib("GatherBlockQuantized", [flat, ids, scales], out, **attributes)
        table = self._graph.constant(weight, self._plain(self.weight(weight)))
        return self._graph.node("Gather", [table, ids], out)

    def head(self, weight: str, x: str, out: str) -> str:
        """x (batch, positions, hidden) to float32 logits."""
        raw = out if self.dtype is np.float32 else f"{out}.raw"
        if self._bits:
            self._blocks("head", x, self.weight(weight), raw, stored_as=weight)
        else:  # Transpose of a constant: folded at load, so that a tied embedding is stored once
            table = self._graph.constant(weight, self._plain(self.weight(weight)))
            turned = self._graph.node("Transpose", [table], f"{weight}.turned", perm=[1, 0])
            self._graph.node("MatMul", [x, turned], raw)
        return raw if raw == out else self._graph.node("Cast", [raw], out, to=TensorProto.FLOAT)

    def _plain(self, tensor: Tensor) -> Tensor:
        narrow = tensor.astype(self.dtype)
        if self.dtype is np.float16 and not np.isfinite(narrow).all():
            raise ExportError("a weight is too large for float16; use fp32, int8 or int4")
        return narrow

    def _blocks(self, name: str, x: str, matrix: Tensor, out: str, stored_as: str | None = None) -> None:
        codes, scales = self._stored(stored_as or f"{name}.weight", matrix)
        rows, columns = matrix.shape
        sizes = {"K": columns, "N": rows, "bits": self._bits, "block_size": BLOCK, "accuracy_level": 4}
        self._graph.contrib("MatMulNBits", [x, codes, scales], out, **sizes)

    def _stored(self, name: str, matrix: Tensor) -> tuple[str, str]:
        assert self._bits is not None
        codes, scales = quantize(np.asarray(matrix), self._bits)
        return self._graph.constant(f"{name}.codes", codes), self._graph.constant(f"{name}.scales", self._plain(scales))
