"""The graph that a device chooses tokens with: python -m dragoman.local_engine.on_device.graph, which needs onnx.

    logits (rows, vocab)     float32 or float16
    rows   (rows, 3)         float64: temperature, min_p, and a number from 0 to below 1

    values, ids (rows, K)    the K likeliest, likeliest first
    found  (rows, 4)         float64: log of the sum of exp(logits); sum of the shares exp((logit - peak) / temperature)
                             that min_p leaves; the token on which the number falls; that token's logit

The running sum over a vocabulary is taken in two levels, blocks and within a block, since onnxruntime's CUDA kernel
adds up anew for every place. Sums are float64, so that they meet those of the host. No operator here needs cuDNN.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from dragoman.local_engine.export.builder import GraphBuilder
from dragoman.local_engine.sampling import CANDIDATES

__all__ = ["TYPES", "write"]

BLOCK = 512
TYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16}


class _Graph(GraphBuilder):
    """Short words for the operators that occur often. A name is given to what others refer to."""

    def __init__(self) -> None:
        super().__init__()
        self._count = 0

    def __call__(self, op: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        self._count += 1
        return self.node(op, inputs, out or f"{op}_{self._count}", **attributes)

    def double(self, x: str) -> str:
        return self("Cast", x, to=TensorProto.DOUBLE)

    def total(self, x: str, axis: int = 1, out: str = "") -> str:
        return self("ReduceSum", x, self.ints(f"axis_{axis}", axis), out=out, keepdims=int(axis == 1))

    def columns(self, x: str, low: int, high: int) -> str:
        bounds = (self.ints(f"at_{bound}", bound) for bound in (low, high, 1))
        return self("Slice", x, *bounds)

    def reached(self, sums: str, target: str) -> str:
        """The first place whose running sum exceeds the target, and never one behind the last share."""
        whole = self("Gather", sums, self.ints("at_-1", -1), axis=1)
        beyond = self.total(self.double(self("LessOrEqual", sums, target)))
        last = self.total(self.double(self("Less", sums, whole)))
        return self("Cast", self("Min", beyond, last), to=TensorProto.INT64)


def write(file: Path, element: str) -> None:
    """Write the graph for logits of one of TYPES."""
    graph = _Graph()
    logits = graph("Cast", "logits", to=TensorProto.FLOAT)
    heat, least, number = (graph.columns("rows", at, at + 1) for at in range(3))
    values = _likeliest(graph, logits)
    centred = graph("Sub", logits, graph.columns(values, 0, 1))
    whole = graph("Log", graph.total(graph.double(graph("Exp", centred))))
    whole = graph("Add", whole, graph.double(graph.columns(values, 0, 1)))
    shares = graph("Exp", graph("Div", centred, graph("Cast", heat, to=TensorProto.FLOAT)))
    kept = graph("Less", shares, graph("Cast", least, to=TensorProto.FLOAT))
    nought = graph.constant("nought", np.zeros(1, np.float32))
    total, token = _fall(graph, graph("Where", kept, nought, shares), number)
    logit = graph.double(graph("GatherElements", logits, token, axis=1))
    graph("Concat", whole, total, graph.double(token), logit, out="found", axis=1)
    info = helper.make_tensor_value_info
    inputs = [info("logits", TYPES[element], ["rows", "vocab"]), info("rows", TensorProto.DOUBLE, ["rows", 3])]
    outputs = [
        info("values", TensorProto.FLOAT, ["rows", "kept"]),
        info("ids", TensorProto.INT64, ["rows", "kept"]),
        info("found", TensorProto.DOUBLE, ["rows", 4]),
    ]
    graph.finish(file, inputs, outputs, "dragoman", name="choice")


def _likeliest(graph: _Graph, logits: str) -> str:
    vocab = graph("Gather", graph("Shape", logits), graph.ints("at_1", 1), axis=0)
    count = graph("Min", vocab, graph.ints("candidates", CANDIDATES))
    return graph.node("TopK", [logits, count], "values", "ids", axis=1)


def _fall(graph: _Graph, shares: str, number: str) -> tuple[str, str]:
    """The sum of the shares, and the first token whose running sum exceeds the number's part of it: (rows, 1)."""
    vocab = graph("Gather", graph("Shape", shares), graph.ints("at_1", 1), axis=0)
    block = graph.ints("block", BLOCK)
    lack = graph("Mod", graph("Neg", vocab), block)
    pads = graph("Concat", graph.ints("no_pads", 0, 0, 0), lack, axis=0)
    padded = graph("Pad", graph.double(shares), pads)
    blocks = graph("Reshape", padded, graph.ints("by_block", 0, -1, BLOCK))
    sums = graph("CumSum", graph.total(blocks, 2), graph.constant("along", np.array(1, np.int64)))
    total = graph("Gather", sums, graph.ints("at_-1", -1), axis=1)
    target = graph("Mul", number, total)
    place = graph.reached(sums, target)
    nothing = graph("Sub", total, total)
    before = graph("GatherElements", graph("Concat", nothing, sums, axis=1), place, axis=1)
    inside = graph("GatherND", blocks, place, batch_dims=1)
    running = graph("Add", before, graph("CumSum", inside, "along"))
    token = graph("Add", graph("Mul", place, block), graph.reached(running, target))
    return total, token


def main() -> None:
    for element in TYPES:
        write(Path(__file__).parent / f"{element}.onnx", element)


if __name__ == "__main__":
    main()
