"""The KV cache of plain graphs, whose present is the past with new entries appended. Each sequence has its own tensors.

Each step runs the graph once per sequence, so several sequences are no faster than one after another. Prefixes are not
reused: standard attention may sum in another order if a prompt is split elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dragoman.local_engine.model_folder.signature import DecoderSignature
from dragoman.local_engine.runtime.providers import ExecutionProvider
from dragoman.local_engine.sampling.logits import HostLogits

from .kv_cache import RunInterrupt, numpy_float_type, numpy_int_type

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, OrtValue

__all__ = ["ConcatCache"]


class ConcatCache:
    """A KVCache for graphs that concatenate."""

    reusable = False

    def __init__(
        self,
        session: InferenceSession,
        signature: DecoderSignature,
        provider: ExecutionProvider,
        slots: int,
        length: int,
    ) -> None:
        self.slots = slots
        self.length = length
        self._session = session
        self._signature = signature
        self._device = (provider.device, provider.index)
        self._present: list[list[OrtValue]] = [[] for _ in range(slots)]
        self._filled = [0] * slots

    def prefill(self, row: int, start: int, ids: Sequence[int], interrupt: RunInterrupt | None = None) -> HostLogits:
        if start == 0:
            self.clear_row(row)
        if start != self._filled[row]:
            raise ValueError(f"row {row} has {self._filled[row]} positions, not {start}")
        return HostLogits(self._run(row, ids, interrupt)[None])

    def decode(self, rows: Sequence[int], tokens: Sequence[int]) -> HostLogits:
        return HostLogits(np.stack([self._run(row, [token]) for row, token in zip(rows, tokens, strict=True)]))

    def copy_row(self, source: int, target: int, length: int) -> None:
        raise NotImplementedError("rows of a concatenating graph cannot be copied")

    def clear_row(self, row: int) -> None:
        self._present[row] = []
        self._filled[row] = 0

    def _run(self, row: int, ids: Sequence[int], interrupt: RunInterrupt | None = None) -> NDArray[np.float32]:
        start, end = self._filled[row], self._filled[row] + len(ids)
        binding = self._session.io_binding()
        for name, array in self._build_inputs(start, end, ids).items():
            binding.bind_cpu_input(name, array)
        for tensor, value in zip(self._signature.cache, self._present[row] or self._empty_cache(), strict=True):
            binding.bind_ortvalue_input(tensor.past, value)
        binding.bind_output("logits", "cpu")
        for tensor in self._signature.cache:
            binding.bind_output(tensor.present, *self._device)
        self._session.run_with_iobinding(binding, None if interrupt is None else interrupt.options)
        logits, *present = binding.get_outputs()
        self._present[row] = present
        self._filled[row] = end
        found: NDArray[Any] = logits.numpy()
        last: NDArray[np.float32] = found[0, -1].astype(np.float32)
        return last

    def _build_inputs(self, start: int, end: int, ids: Sequence[int]) -> dict[str, NDArray[Any]]:
        extra = self._signature.extra_inputs
        found: dict[str, NDArray[Any]] = {"input_ids": np.array([ids], numpy_int_type(self._signature.ids_type))}
        if "attention_mask" in extra:
            found["attention_mask"] = np.ones((1, end), numpy_int_type(extra["attention_mask"]))
        if "position_ids" in extra:
            found["position_ids"] = np.arange(start, end, dtype=numpy_int_type(extra["position_ids"]))[None]
        if "use_cache_branch" in extra:
            found["use_cache_branch"] = np.array([start > 0])
        return found

    def _empty_cache(self) -> list[OrtValue]:
        from onnxruntime import OrtValue

        dtype = numpy_float_type(self._signature.cache_type)
        shapes = [(1, tensor.heads, 0, tensor.width) for tensor in self._signature.cache]
        return [OrtValue.ortvalue_from_numpy(np.zeros(shape, dtype), *self._device) for shape in shapes]
