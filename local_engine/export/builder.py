"""A graph in the making: nodes, and initializers that go into the model file or, streamed, into a file beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from .weights import Tensor

__all__ = ["GraphBuilder"]

ALIGNMENT = 4096
MICROSOFT = "com.microsoft"


class GraphBuilder:
    """Collects a graph. With `data` given, tensors above 1 KiB are written to that file as they come."""

    def __init__(self, data: Path | None = None) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self._names: set[str] = set()
        self._data = data
        self._out: IO[bytes] | None = data.open("wb") if data else None

    def node(self, op: str, inputs: Sequence[str], *outputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node; returns its first output."""
        name = f"{outputs[0]}/{op}"
        self.nodes.append(helper.make_node(op, list(inputs), list(outputs), name, domain=domain, **attributes))
        return outputs[0]

    def contrib(self, op: str, inputs: Sequence[str], *outputs: str, **attributes: Any) -> str:
        return self.node(op, inputs, *outputs, domain=MICROSOFT, **attributes)

    def constant(self, name: str, value: Tensor) -> str:
        """Add an initializer; a name that is there already is taken as the same tensor."""
        if name in self._names:
            return name
        self._names.add(name)
        array = np.ascontiguousarray(value)
        if self._out is None or array.nbytes <= 1024:
            self.initializers.append(onnx.numpy_helper.from_array(array, name))
        else:
            self.initializers.append(self._external(name, array))
        return name

    def ints(self, name: str, *values: int) -> str:
        return self.constant(name, np.array(values, np.int64))

    def _external(self, name: str, array: Tensor) -> onnx.TensorProto:
        assert self._out is not None and self._data is not None
        self._out.write(b"\0" * (-self._out.tell() % ALIGNMENT))
        tensor = TensorProto(name=name, dims=array.shape, data_type=helper.np_dtype_to_tensor_dtype(array.dtype))
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", self._data.name), ("offset", self._out.tell()), ("length", array.nbytes)):
            tensor.external_data.add(key=key, value=str(value))
        array.tofile(self._out)
        return tensor

    def finish(
        self,
        file: Path,
        inputs: Sequence[onnx.ValueInfoProto],
        outputs: Sequence[onnx.ValueInfoProto],
        producer: str,
        name: str = "decoder",
    ) -> None:
        """Write the model file."""
        if self._out is not None:
            self._out.close()
        graph = helper.make_graph(self.nodes, name, list(inputs), list(outputs), self.initializers)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name=producer)
        file.write_bytes(model.SerializeToString())

    def close(self) -> None:
        if self._out is not None:
            self._out.close()
