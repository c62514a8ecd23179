"""Keys and values of plain graphs, whose present is the past with something behind it: each sequence has its own.

One run per sequence and step, so nothing is gained by serving several at once; right results come first. Rows are not
reused for other prompts: standard attention may add up in another order when a prompt is cut elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .kv import Stop, float_type, int_type
from .ports import Decoder
from .providers import Provider
from .scores import HostScores

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, OrtValue

__all__ = ["ConcatCache"]


class ConcatCache:
    """A Cache for graphs that concatenate."""

    reusable = False

    def __init__(self, session: InferenceSession, ports: Decoder, provider: Provider, slots: int, length: int) -> None:
        self.slots = slots
        self.length = length
        self._session = session
        self._ports = ports
        self._device = (provider.device, provider.index)
        self._kept: list[list[OrtValue]] = [[] for _ in range(slots)]
        self._filled = [0] * slots

    def prefill(self, row: int, start: int, ids: Sequence[int], stop: Stop | None = None) -> HostScores:
        if start == 0:
            self.drop(row)
        if start != self._filled[row]:
            raise ValueError(f"row {row} holds {self._filled[row]} positions, not {start}")
        return HostScores(self._run(row, ids, stop)[None])

    def decode(self, rows: Sequence[int], tokens: Sequence[int]) -> HostScores:
        return HostScores(np.stack([self._run(row, [token]) for row, token in zip(rows, tokens, strict=True)]))

    def copy(self, source: int, target: int, length: int) -> None:
        raise NotImplementedError("rows of a concatenating graph are not copied")

    def drop(self, row: int) -> None:
        self._kept[row] = []
        self._filled[row] = 0

    def _run(self, row: int, ids: Sequence[int], stop: Stop | None = None) -> NDArray[np.float32]:
        start, end = self._filled[row], self._filled[row] + len(ids)
        binding = self._session.io_binding()
        for name, array in self._inputs(start, end, ids).items():
            binding.bind_cpu_input(name, array)
        for port, value in zip(self._ports.cache, self._kept[row] or self._empty(), strict=True):
            binding.bind_ortvalue_input(port.past, value)
        binding.bind_output("logits", "cpu")
        for port in self._ports.cache:
            binding.bind_output(port.present, *self._device)
        self._session.run_with_iobinding(binding, None if stop is None else stop.options)
        logits, *kept = binding.get_outputs()
        self._kept[row] = kept
        self._filled[row] = end
        found: NDArray[Any] = logits.numpy()
        last: NDArray[np.float32] = found[0, -1].astype(np.float32)
        return last

    def _inputs(self, start: int, end: int, ids: Sequence[int]) -> dict[str, NDArray[Any]]:
        extra = self._ports.extra
        found: dict[str, NDArray[Any]] = {"input_ids": np.array([ids], int_type(self._ports.ids))}
        if "attention_mask" in extra:
            found["attention_mask"] = np.ones((1, end), int_type(extra["attention_mask"]))
        if "position_ids" in extra:
            found["position_ids"] = np.arange(start, end, dtype=int_type(extra["position_ids"]))[None]
        if "use_cache_branch" in extra:
            found["use_cache_branch"] = np.array([start > 0])
        return found

    def _empty(self) -> list[OrtValue]:
        from onnxruntime import OrtValue

        dtype = float_type(self._ports.element)
        shapes = [(1, port.heads, 0, port.width) for port in self._ports.cache]
        return [OrtValue.ortvalue_from_numpy(np.zeros(shape, dtype), *self._device) for shape in shapes]
