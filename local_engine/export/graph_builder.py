"""The builder of ONNX graphs. Initializers go into the model file, or are streamed to an external data file."""

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
    """Collects nodes and initializers. With `data`, tensors above 1 KiB are written to that file when added."""

    def __init__(self, data: Path | None = None) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self._names: set[str] = set()
        self._data = data
        self._data_stream: IO[bytes] | None = data.open("wb") if data else None

    def add_node(self, op: str, inputs: Sequence[str], *outputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node; return its first output."""
        name = f"{outputs[0]}/{op}"
        self.nodes.append(helper.make_node(op, list(inputs), list(outputs), name, domain=domain, **attributes))
        return outputs[0]

    def add_contrib_node(self, op: str, inputs: Sequence[str], *outputs: str, **attributes: Any) -> str:
        """Add a node of the domain com.microsoft; return its first output."""
        return self.add_node(op, inputs, *outputs, domain=MICROSOFT, **attributes)

    def add_constant(self, name: str, value: Tensor) -> str:
        """Add an initializer, unless the name exists; return the name."""
        if name in self._names:
            return name
        self._names.add(name)
        array = np.ascontiguousarray(value)
        if self._data_stream is None or array.nbytes <= 1024:
            self.initializers.append(onnx.numpy_helper.from_array(array, name))
        else:
            self.initializers.append(self._write_external(name, array))
        return name

    def add_ints(self, name: str, *values: int) -> str:
        """Add an int64 initializer; return its name."""
        return self.add_constant(name, np.array(values, np.int64))

    def _write_external(self, name: str, array: Tensor) -> onnx.TensorProto:
        assert self._data_stream is not None and self._data is not None
        self._data_stream.write(b"\0" * (-self._data_stream.tell() % ALIGNMENT))
        tensor = TensorProto(name=name, dims=array.shape, data_type=helper.np_dtype_to_tensor_dtype(array.dtype))
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (
            ("location", self._data.name),
            ("offset", self._data_stream.tell()),
            ("length", array.nbytes),
        ):
            tensor.external_data.add(key=key, value=str(value))
        array.tofile(self._data_stream)
        return tensor

    def write(
        self,
        file: Path,
        inputs: Sequence[onnx.ValueInfoProto],
        outputs: Sequence[onnx.ValueInfoProto],
        producer: str,
        name: str = "decoder",
    ) -> None:
        """Write the model file."""
        if self._data_stream is not None:
            self._data_stream.close()
        graph = helper.make_graph(self.nodes, name, list(inputs), list(outputs), self.initializers)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name=producer)
        file.write_bytes(model.SerializeToString())

    def close(self) -> None:
        """Close the external data file."""
        if self._data_stream is not None:
            self._data_stream.close()
