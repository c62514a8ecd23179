"""The logits of a step on a device, and sampling there.

The graph (device_graph.py) returns the most likely tokens, the token that each row's random number selects, and sums.
These suffice for greedy sampling, plain draws, top_k and top_p among the returned tokens, and log probabilities. A row
with penalties, bias or a mask, or whose top_p needs more tokens, is copied to the host and sampled there, with the same
random number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dragoman.local_engine.generation import SamplingParams, TokenLogprob
from dragoman.local_engine.runtime.memory import Buffer
from dragoman.local_engine.runtime.providers import ExecutionProvider
from dragoman.local_engine.runtime.session import open_session

from .logits import Mask
from .sampler import CANDIDATES, SampledToken, Sampler, pick_in_top_p, sample_tokens

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

__all__ = ["DeviceLogits", "DeviceSampler"]


@dataclass(frozen=True, slots=True)
class RowResult:
    """The graph's result for one row: the most likely tokens with their logits, and four numbers (device_graph.py)."""

    values: NDArray[np.float32]
    ids: NDArray[np.int64]
    numbers: NDArray[np.float64]


class DeviceSampler:
    """Runs the graph on logits (rows, vocab) in the memory of the provider's device."""

    def __init__(self, provider: ExecutionProvider, logits: type[np.floating[Any]], rows: int, vocab: int) -> None:
        file = Path(__file__).parent / f"{np.dtype(logits).name}.onnx"
        self._session: InferenceSession = open_session(file, provider, threads=1)[0]
        self._device = (provider.device, provider.index)
        self._type = logits
        self.vocab = vocab
        candidates = min(CANDIDATES, vocab)
        self._outputs: dict[str, NDArray[Any]] = {
            "values": np.zeros((rows, candidates), np.float32),
            "ids": np.zeros((rows, candidates), np.int64),
            "found": np.zeros((rows, 4), np.float64),
        }

    def run(self, address: int, rows: NDArray[np.float64]) -> list[RowResult]:
        """Run the graph on the rows of logits at `address`. `rows` (count, 3) are their parameters.

        The results are valid until the next call.
        """
        count = len(rows)
        binding = self._session.io_binding()
        binding.bind_input("logits", *self._device, self._type, (count, self.vocab), address)
        binding.bind_input("rows", "cpu", 0, np.float64, rows.shape, rows.ctypes.data)
        for name, array in self._outputs.items():
            binding.bind_output(name, "cpu", 0, array.dtype.type, array[:count].shape, array.ctypes.data)
        self._session.run_with_iobinding(binding)
        values, ids, numbers = (array[:count] for array in self._outputs.values())
        return [RowResult(values[row], ids[row], numbers[row]) for row in range(count)]


@dataclass(frozen=True, slots=True)
class DeviceLogits:
    """Logits on a device: the rows `offsets` of the `count` rows of the buffer that start at row `first`."""

    sampler: DeviceSampler
    buffer: Buffer
    first: int
    count: int
    offsets: Sequence[int]

    def sample(self, samplers: Sequence[Sampler], masks: Sequence[Mask | None]) -> list[SampledToken | None]:
        numbers = [0.0 if sampler.greedy else sampler.draw_number() for sampler in samplers]
        on_device = [
            mask is None and not sampler.adjusts_logits and (sampler.sampling.logprobs or 0) <= CANDIDATES
            for sampler, mask in zip(samplers, masks, strict=True)
        ]
        rows = self._run_graph(samplers, numbers) if any(on_device) else []
        sampled: list[SampledToken | None] = []
        for at, (sampler, offset) in enumerate(zip(samplers, self.offsets, strict=True)):
            token = (
                _read_token(sampler.sampling, rows[offset], numbers[at], self.sampler.vocab) if on_device[at] else None
            )
            if token is None:
                row = self.first + offset
                logits = self.buffer.read_rows(row, row + 1).astype(np.float32, copy=False)
                sampled += sample_tokens(logits, [sampler], [masks[at]], [numbers[at]])
            else:
                sampler.record(token.token)
                sampled.append(token)
        return sampled

    def _run_graph(self, samplers: Sequence[Sampler], numbers: Sequence[float]) -> list[RowResult]:
        rows = np.tile(np.array([1.0, 0.0, 0.0]), (self.count, 1))
        for sampler, offset, number in zip(samplers, self.offsets, numbers, strict=True):
            rows[offset] = (sampler.sampling.temperature or 1.0, sampler.sampling.min_p, number)
        return self.sampler.run(self.buffer.address(self.first), rows)


def _read_token(sampling: SamplingParams, row: RowResult, number: float, vocab: int) -> SampledToken | None:
    """Read the token of a row from the graph's result; None if the result does not determine it."""
    log_sum, total, token, logit = (float(value) for value in row.numbers)
    if not (math.isfinite(log_sum) and math.isfinite(float(row.values[0]))):
        return None
    order = np.lexsort((row.ids, -row.values))
    if sampling.temperature == 0:
        token, logit = int(row.ids[order[0]]), float(row.values[order[0]])
    elif sampling.top_p < 1 or 0 < sampling.top_k < vocab:
        position = _pick_candidate(sampling, row.values[order], number, total, vocab)
        if position is None:
            return None
        token, logit = int(row.ids[order[position]]), float(row.values[order[position]])
    if sampling.logprobs is None:
        return SampledToken(int(token))
    top = tuple((int(row.ids[at]), float(row.values[at]) - log_sum) for at in order[: sampling.logprobs])
    return SampledToken(int(token), TokenLogprob(int(token), logit - log_sum, top))


def _pick_candidate(
    sampling: SamplingParams, values: NDArray[np.float32], number: float, total: float, vocab: int
) -> int | None:
    """Pick the position that top_k and top_p select among the candidates; None if it may be beyond them."""
    limit = min(sampling.top_k or vocab, vocab)
    if limit > len(values):
        candidates, weight_total = values, total
        if limit < vocab:
            return None
    else:
        candidates, weight_total = values[:limit], None
    weights = np.exp((candidates - values[0]) / np.float32(sampling.temperature))
    weights[weights < np.float32(sampling.min_p)] = 0
    return pick_in_top_p(weights, weight_total, sampling.top_p, number)
