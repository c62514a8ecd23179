"""The KV cache in slots: one buffer per cache tensor, bound by address as both past and present of the graph.

A buffer is (slots, heads, length, width). A sequence owns a slot, which is one row of every buffer. Prefill binds one
row, so the graph writes directly into it. A decode step binds all rows from the lowest to the highest requested one.
The other rows in this range are dummies: they write one position after their last one, which is overwritten before it
is read. So no data moves when a sequence starts or ends.

The result of a row is bitwise independent of the other rows, and of how its prompt was split, as long as no prefill
chunk is a single token: GroupQueryAttention computes single tokens differently. `next_prefill_size` guarantees that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman.local_engine.model_folder.signature import FLOAT16, INT32, DecoderSignature
from dragoman.local_engine.runtime.memory import Buffer, allocate
from dragoman.local_engine.runtime.providers import ExecutionProvider, cpu_provider
from dragoman.local_engine.runtime.session import FATAL_ONLY
from dragoman.local_engine.sampling.device_logits import DeviceLogits, DeviceSampler
from dragoman.local_engine.sampling.logits import HostLogits, Logits

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, IOBinding, RunOptions

__all__ = ["KVCache", "RunInterrupt", "SlotCache", "cache_provider", "numpy_float_type", "numpy_int_type"]

MAX_BINDINGS = 64


class RunInterrupt:
    """Ends one run of a session, from any thread. It belongs to a single run, so a late call has no effect."""

    def __init__(self) -> None:
        from onnxruntime import RunOptions

        self.options: RunOptions = RunOptions()
        self.options.log_severity_level = FATAL_ONLY

    def set(self) -> None:
        self.options.terminate = True

    @property
    def is_set(self) -> bool:
        return bool(self.options.terminate)


class KVCache(Protocol):
    """A model with its keys and values, for `slots` sequences of up to `length` tokens."""

    slots: int
    length: int
    reusable: bool
    """Whether rows can be copied, and prefill can continue a row from any position."""

    def prefill(self, row: int, start: int, ids: Sequence[int], interrupt: RunInterrupt | None = None) -> Logits:
        """Append `ids` after the first `start` positions of a row; return the logits of the last one, as one row.

        If `interrupt` is set during the run, the run raises an exception. The first `start` positions stay valid.
        """
        ...

    def decode(self, rows: Sequence[int], tokens: Sequence[int]) -> Logits:
        """Append one token to each of `rows`, which are in ascending order; return their logits."""
        ...

    def copy_row(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` positions of one row to another."""
        ...

    def clear_row(self, row: int) -> None:
        """Mark a row as empty."""
        ...


def numpy_float_type(onnx_type: int) -> type[np.floating[Any]]:
    return np.float16 if onnx_type == FLOAT16 else np.float32


def numpy_int_type(onnx_type: int) -> type[np.signedinteger[Any]]:
    return np.int32 if onnx_type == INT32 else np.int64


def cache_provider(signature: DecoderSignature, provider: ExecutionProvider) -> ExecutionProvider:
    """The provider that stores keys and values: the one of GroupQueryAttention, which CUDA supports in float16 only.

    https://github.com/microsoft/onnxruntime/blob/main/onnxruntime/contrib_ops/cuda/bert/group_query_attention.cc
    """
    return provider if signature.cache_type == FLOAT16 else cpu_provider()


class SlotCache:
    """A KVCache for graphs whose past and present share a buffer.

    onnxruntime copies a host input to the device when it is bound, not when it is used. So ids, positions and mask are
    bound anew for each step; the buffers stay bound.
    """

    reusable = True

    def __init__(
        self,
        session: InferenceSession,
        signature: DecoderSignature,
        provider: ExecutionProvider,
        slots: int,
        length: int,
        *,
        sample_on_device: bool = False,
    ) -> None:
        """With `sample_on_device`, logits stay on the model's device, and tokens are sampled there."""
        self.slots = slots
        self.length = length
        self._session = session
        self._signature = signature
        self._provider = provider
        self._filled = np.zeros(slots, np.int64)
        self._cache_provider = cache_provider(signature, provider)
        self._cache_type = numpy_float_type(signature.cache_type)
        self._buffers = [
            (tensor, allocate((slots, tensor.heads, length, tensor.width), self._cache_type, self._cache_provider))
            for tensor in signature.cache
        ]
        self._logits_type = numpy_float_type(signature.logits_type)
        self._device_sampler = (
            DeviceSampler(provider, self._logits_type, slots, signature.vocab) if sample_on_device else None
        )
        self._logits = self._allocate_logits(slots)
        self._prompt_logits = (1, self._allocate_logits(1))
        self._bindings: dict[tuple[int, int], IOBinding] = {}

    def prefill(self, row: int, start: int, ids: Sequence[int], interrupt: RunInterrupt | None = None) -> Logits:
        count = len(ids)
        inputs = self._build_inputs(np.array([ids]), np.array([start]), np.array([start + count]))
        positions = 1 if self._signature.last_logits_only else count
        if positions > self._prompt_logits[0]:
            self._prompt_logits = (positions, self._allocate_logits(positions))
        logits = self._prompt_logits[1]
        self._run(row, row + 1, inputs, logits, (1, positions, self._signature.vocab), interrupt)
        self._filled[row] = start + count
        return self._read_logits(logits, positions - 1, 1, [0])

    def decode(self, rows: Sequence[int], tokens: Sequence[int]) -> Logits:
        low, high = rows[0], rows[-1] + 1
        count = high - low
        offsets = [row - low for row in rows]
        selected = slice(None) if len(offsets) == count else offsets  # a slice is much faster than a list of all rows
        filled = self._filled[low:high]
        starts = np.minimum(filled, self.length - 1)
        ids = np.zeros((count, 1), np.int64)
        ids[selected, 0] = tokens
        self._run(
            low, high, self._build_inputs(ids, starts, starts + 1), self._logits, (count, 1, self._signature.vocab)
        )
        filled[selected] += 1
        return self._read_logits(self._logits, 0, count, offsets)

    def copy_row(self, source: int, target: int, length: int) -> None:
        for _, buffer in self._buffers:
            buffer.copy_row(source, target, length)
        self._filled[target] = length

    def clear_row(self, row: int) -> None:
        self._filled[row] = 0

    def _build_inputs(
        self, ids: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> dict[str, NDArray[Any]]:
        """Build the inputs other than the cache. `starts` and `ends` are the positions of each row before and after."""
        extra = self._signature.extra_inputs
        found: dict[str, NDArray[Any]] = {
            "input_ids": ids.astype(numpy_int_type(self._signature.ids_type), copy=False),
            "attention_mask": (np.arange(ends.max()) < ends[:, None]).astype(numpy_int_type(extra["attention_mask"])),
        }
        if "position_ids" in extra:
            positions = starts[:, None] + np.arange(ids.shape[1])
            found["position_ids"] = positions.astype(numpy_int_type(extra["position_ids"]))
        return found

    def _run(
        self,
        low: int,
        high: int,
        inputs: dict[str, NDArray[Any]],
        logits: Buffer,
        shape: tuple[int, int, int],
        interrupt: RunInterrupt | None = None,
    ) -> None:
        binding = self._bindings.get((low, high)) or self._create_binding(low, high)
        for name, array in inputs.items():
            binding.bind_input(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
        device = ("cpu", 0) if self._device_sampler is None else (self._provider.device, self._provider.index)
        binding.bind_output("logits", *device, self._logits_type, shape, logits.address(0))
        self._session.run_with_iobinding(binding, None if interrupt is None else interrupt.options)

    def _create_binding(self, low: int, high: int) -> IOBinding:
        """Create the binding of rows low to high. It contains the buffers; the rest is bound at each step."""
        if len(self._bindings) >= MAX_BINDINGS:
            self._bindings.clear()
        binding = self._bindings[low, high] = self._session.io_binding()
        for tensor, buffer in self._buffers:
            shape = (high - low, tensor.heads, self.length, tensor.width)
            provider = self._cache_provider
            location = (provider.device, provider.index, self._cache_type, shape, buffer.address(low))
            binding.bind_input(tensor.past, *location)
            binding.bind_output(tensor.present, *location)
        return binding

    def _allocate_logits(self, rows: int) -> Buffer:
        return allocate(
            (rows, self._signature.vocab),
            self._logits_type,
            cpu_provider() if self._device_sampler is None else self._provider,
        )

    def _read_logits(self, logits: Buffer, first: int, count: int, offsets: Sequence[int]) -> Logits:
        if self._device_sampler is not None:
            return DeviceLogits(self._device_sampler, logits, first, count, offsets)
        rows = logits.read_rows(first, first + count)
        return HostLogits((rows if len(offsets) == count else rows[offsets]).astype(np.float32, copy=False))
