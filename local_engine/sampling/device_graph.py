"""Writes the graphs that sample on a device: python -m dragoman.local_engine.sampling.device_graph (needs onnx).

    logits (rows, vocab)     float32 or float16
    rows   (rows, 3)         float64: temperature, min_p, and a random number from 0 to below 1

    values, ids (rows, K)    the K most likely tokens, most likely first
    found  (rows, 4)         float64: log of the sum of exp(logits); sum of the weights exp((logit - max) / temperature)
                             that min_p leaves; the token that the random number selects; that token's logit

The cumulative sum over a vocabulary has two levels, over blocks and within a block, because onnxruntime's CUDA kernel
computes the sum of each position separately. Sums are float64, to match the host. No operator here needs cuDNN.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from dragoman.local_engine.export.graph_builder import GraphBuilder

from .sampler import CANDIDATES

__all__ = ["TYPES", "write_graph"]

BLOCK = 512
TYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16}


class _Graph(GraphBuilder):
    """A graph builder with short methods for frequent operators. Outputs without `out` get a generated name."""

    def __init__(self) -> None:
        super().__init__()
        self._count = 0

    def __call__(self, op: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        self._count += 1
        return self.add_node(op, inputs, out or f"{op}_{self._count}", **attributes)

    def cast_to_double(self, x: str) -> str:
        return self("Cast", x, to=TensorProto.DOUBLE)

    def sum_axis(self, x: str, axis: int = 1, out: str = "") -> str:
        return self("ReduceSum", x, self.add_ints(f"axis_{axis}", axis), out=out, keepdims=int(axis == 1))

    def slice_columns(self, x: str, low: int, high: int) -> str:
        bounds = (self.add_ints(f"at_{bound}", bound) for bound in (low, high, 1))
        return self("Slice", x, *bounds)

    def find_exceeding(self, sums: str, target: str) -> str:
        """Find the first index whose cumulative sum exceeds the target, at most the index of the last weight."""
        total = self("Gather", sums, self.add_ints("at_-1", -1), axis=1)
        beyond = self.sum_axis(self.cast_to_double(self("LessOrEqual", sums, target)))
        last = self.sum_axis(self.cast_to_double(self("Less", sums, total)))
        return self("Cast", self("Min", beyond, last), to=TensorProto.INT64)


def write_graph(file: Path, element: str) -> None:
    """Write the graph for logits of one of TYPES."""
    graph = _Graph()
    logits = graph("Cast", "logits", to=TensorProto.FLOAT)
    temperature, min_p, number = (graph.slice_columns("rows", at, at + 1) for at in range(3))
    values = _add_top_candidates(graph, logits)
    centered = graph("Sub", logits, graph.slice_columns(values, 0, 1))
    log_sum = graph("Log", graph.sum_axis(graph.cast_to_double(graph("Exp", centered))))
    log_sum = graph("Add", log_sum, graph.cast_to_double(graph.slice_columns(values, 0, 1)))
    weights = graph("Exp", graph("Div", centered, graph("Cast", temperature, to=TensorProto.FLOAT)))
    too_small = graph("Less", weights, graph("Cast", min_p, to=TensorProto.FLOAT))
    zero = graph.add_constant("nought", np.zeros(1, np.float32))
    total, token = _add_draw(graph, graph("Where", too_small, zero, weights), number)
    logit = graph.cast_to_double(graph("GatherElements", logits, token, axis=1))
    graph("Concat", log_sum, total, graph.cast_to_double(token), logit, out="found", axis=1)
    info = helper.make_tensor_value_info
    inputs = [info("logits", TYPES[element], ["rows", "vocab"]), info("rows", TensorProto.DOUBLE, ["rows", 3])]
    outputs = [
        info("values", TensorProto.FLOAT, ["rows", "kept"]),
        info("ids", TensorProto.INT64, ["rows", "kept"]),
        info("found", TensorProto.DOUBLE, ["rows", 4]),
    ]
    graph.write(file, inputs, outputs, "dragoman", name="choice")


def _add_top_candidates(graph: _Graph, logits: str) -> str:
    vocab = graph("Gather", graph("Shape", logits), graph.add_ints("at_1", 1), axis=0)
    count = graph("Min", vocab, graph.add_ints("candidates", CANDIDATES))
    return graph.add_node("TopK", [logits, count], "values", "ids", axis=1)


def _add_draw(graph: _Graph, weights: str, number: str) -> tuple[str, str]:
    """Add the sum of the weights, and the first token whose cumulative sum exceeds `number` times it: (rows, 1)."""
    vocab = graph("Gather", graph("Shape", weights), graph.add_ints("at_1", 1), axis=0)
    block = graph.add_ints("block", BLOCK)
    padding = graph("Mod", graph("Neg", vocab), block)
    pads = graph("Concat", graph.add_ints("no_pads", 0, 0, 0), padding, axis=0)
    padded = graph("Pad", graph.cast_to_double(weights), pads)
    blocks = graph("Reshape", padded, graph.add_ints("by_block", 0, -1, BLOCK))
    sums = graph("CumSum", graph.sum_axis(blocks, 2), graph.add_constant("along", np.array(1, np.int64)))
    total = graph("Gather", sums, graph.add_ints("at_-1", -1), axis=1)
    target = graph("Mul", number, total)
    block_index = graph.find_exceeding(sums, target)
    zero = graph("Sub", total, total)
    before = graph("GatherElements", graph("Concat", zero, sums, axis=1), block_index, axis=1)
    inside = graph("GatherND", blocks, block_index, batch_dims=1)
    running = graph("Add", before, graph("CumSum", inside, "along"))
    token = graph("Add", graph("Mul", block_index, block), graph.find_exceeding(running, target))
    return total, token


def main() -> None:
    for element in TYPES:
        write_graph(Path(__file__).parent / f"{element}.onnx", element)


if __name__ == "__main__":
    main()
