"""The logits of a step on a device, and the choice among them.

The graph (graph.py) hands back the likeliest tokens, the token on which each row's number falls, and sums. That answers
greedy rows, plain draws, top_k and top_p among the likeliest, and log probabilities. A row with penalties, a bias or a
mask, and one whose top_p reaches beyond the likeliest, is copied to the host and chosen there, with the same number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dragoman.local_engine.memory import Buffer
from dragoman.local_engine.providers import Provider
from dragoman.local_engine.requests import Sampling, TokenLogprob
from dragoman.local_engine.sampling import CANDIDATES, Chosen, Sampler, choose, pick
from dragoman.local_engine.scores import Mask
from dragoman.local_engine.session import open_session

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

__all__ = ["Chooser", "DeviceScores"]


@dataclass(frozen=True, slots=True)
class Found:
    """What the graph says of one row: the likeliest tokens with their logits, and `found`, four numbers."""

    values: NDArray[np.float32]
    ids: NDArray[np.int64]
    found: NDArray[np.float64]


class Chooser:
    """Runs the graph for logits of up to `rows` rows of `vocab`, which lie on the provider's device."""

    def __init__(self, provider: Provider, logits: type[np.floating[Any]], rows: int, vocab: int) -> None:
        file = Path(__file__).parent / f"{np.dtype(logits).name}.onnx"
        self._session: InferenceSession = open_session(file, provider, threads=1)[0]
        self._device = (provider.device, provider.index)
        self._type = logits
        self.vocab = vocab
        kept = min(CANDIDATES, vocab)
        self._outputs: dict[str, NDArray[Any]] = {
            "values": np.zeros((rows, kept), np.float32),
            "ids": np.zeros((rows, kept), np.int64),
            "found": np.zeros((rows, 4), np.float64),
        }

    def run(self, address: int, rows: NDArray[np.float64]) -> list[Found]:
        """`rows` (count, 3) go with as many rows of logits at an address. Valid until the next."""
        count = len(rows)
        binding = self._session.io_binding()
        binding.bind_input("logits", *self._device, self._type, (count, self.vocab), address)
        binding.bind_input("rows", "cpu", 0, np.float64, rows.shape, rows.ctypes.data)
        for name, array in self._outputs.items():
            binding.bind_output(name, "cpu", 0, array.dtype.type, array[:count].shape, array.ctypes.data)
        self._session.run_with_iobinding(binding)
        values, ids, found = (array[:count] for array in self._outputs.values())
        return [Found(values[row], ids[row], found[row]) for row in range(count)]


@dataclass(frozen=True, slots=True)
class DeviceScores:
    """The rows `places` of the buffer, counted from row `first`, of which `count` are there."""

    chooser: Chooser
    buffer: Buffer
    first: int
    count: int
    places: Sequence[int]

    def choose(self, samplers: Sequence[Sampler], masks: Sequence[Mask | None]) -> list[Chosen | None]:
        numbers = [0.0 if sampler.greedy else sampler.number() for sampler in samplers]
        simple = [
            mask is None and not sampler.adjusts and (sampler.sampling.logprobs or 0) <= CANDIDATES
            for sampler, mask in zip(samplers, masks, strict=True)
        ]
        rows = self._found(samplers, numbers) if any(simple) else []
        chosen: list[Chosen | None] = []
        for at, (sampler, place) in enumerate(zip(samplers, self.places, strict=True)):
            found = _choice(sampler.sampling, rows[place], numbers[at], self.chooser.vocab) if simple[at] else None
            if found is None:
                at_row = self.first + place
                logits = self.buffer.rows(at_row, at_row + 1).astype(np.float32, copy=False)
                chosen += choose(logits, [sampler], [masks[at]], [numbers[at]])
            else:
                sampler.take(found.token)
                chosen.append(found)
        return chosen

    def _found(self, samplers: Sequence[Sampler], numbers: Sequence[float]) -> list[Found]:
        rows = np.tile(np.array([1.0, 0.0, 0.0]), (self.count, 1))
        for sampler, place, number in zip(samplers, self.places, numbers, strict=True):
            rows[place] = (sampler.sampling.temperature or 1.0, sampler.sampling.min_p, number)
        return self.chooser.run(self.buffer.address(self.first), rows)


def _choice(sampling: Sampling, row: Found, number: float, vocab: int) -> Chosen | None:
    """The token of a row, None where the graph's answer does not tell it."""
    whole, total, token, logit = (float(value) for value in row.found)
    if not (math.isfinite(whole) and math.isfinite(float(row.values[0]))):
        return None
    order = np.lexsort((row.ids, -row.values))
    if sampling.temperature == 0:
        token, logit = int(row.ids[order[0]]), float(row.values[order[0]])
    elif sampling.top_p < 1 or 0 < sampling.top_k < vocab:
        place = _among(sampling, row.values[order], number, total, vocab)
        if place is None:
            return None
        token, logit = int(row.ids[order[place]]), float(row.values[order[place]])
    if sampling.logprobs is None:
        return Chosen(int(token))
    top = tuple((int(row.ids[at]), float(row.values[at]) - whole) for at in order[: sampling.logprobs])
    return Chosen(int(token), TokenLogprob(int(token), logit - whole, top))


def _among(sampling: Sampling, values: NDArray[np.float32], number: float, total: float, vocab: int) -> int | None:
    """The place among the likeliest that top_k and top_p choose, None where it may lie beyond them."""
    limit = min(sampling.top_k or vocab, vocab)
    if limit > len(values):
        kept, whole = values, total
        if limit < vocab:
            return None
    else:
        kept, whole = values[:limit], None
    shares = np.exp((kept - values[0]) / np.float32(sampling.temperature))
    shares[shares < np.float32(sampling.min_p)] = 0
    return pick(shares, whole, sampling.top_p, number)
