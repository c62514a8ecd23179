"""Choose tokens: many rows at once, each row as if it were alone.

Everything is computed along a row, so that a row's choice depends on its own logits, parameters and draws only. One
number is drawn per sampled token, from a generator of the choice's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .requests import Sampling, TokenLogprob

__all__ = ["CANDIDATES", "Chosen", "Sampler", "choose", "draw", "pick"]

Floats = NDArray[np.float32]
CANDIDATES, WIDER = 256, 16
"""How many of the likeliest tokens top_p looks at first, and how many times as many then, and again."""


@dataclass(frozen=True, slots=True)
class Chosen:
    token: int
    logprob: TokenLogprob | None = None


class Sampler:
    """The state of one choice: its parameters, its random numbers, and which tokens it has seen."""

    def __init__(self, sampling: Sampling, prompt: Sequence[int], index: int = 0) -> None:
        self.sampling = sampling
        self.greedy = sampling.temperature == 0
        seed = None if sampling.seed is None else (sampling.seed % 2**64, index)
        self._random = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed)))
        self._counts: dict[int, int] = {}
        self._repeated = set(prompt) if sampling.repetition_penalty != 1 else set()
        self._bias = (
            np.array(list(sampling.logit_bias), np.int64),
            np.array(list(sampling.logit_bias.values()), np.float32),
        )

    @property
    def adjusts(self) -> bool:
        given = self.sampling
        return bool(
            given.logit_bias or given.presence_penalty or given.frequency_penalty or given.repetition_penalty != 1
        )

    def adjust(self, row: Floats) -> None:
        """Add bias and penalties to a row of logits, in place."""
        given = self.sampling
        if self._repeated:
            seen = np.fromiter(self._repeated, np.int64, len(self._repeated))
            values, penalty = row[seen], np.float32(given.repetition_penalty)
            row[seen] = np.where(values > 0, values / penalty, values * penalty)
        if self._counts:
            tokens = np.fromiter(self._counts, np.int64, len(self._counts))
            counts = np.fromiter(self._counts.values(), np.float32, len(self._counts))
            row[tokens] -= counts * np.float32(given.frequency_penalty) + np.float32(given.presence_penalty)
        tokens, biases = self._bias
        row[tokens] += biases

    def number(self) -> float:
        """The next random number, from 0 to below 1."""
        return float(self._random.random())

    def take(self, token: int) -> None:
        """Take note of the token that was chosen."""
        given = self.sampling
        if given.presence_penalty or given.frequency_penalty:
            self._counts[token] = self._counts.get(token, 0) + 1
        if given.repetition_penalty != 1:
            self._repeated.add(token)


def choose(
    logits: Floats,
    samplers: Sequence[Sampler],
    masks: Sequence[NDArray[np.bool_] | None],
    numbers: Sequence[float] | None = None,
) -> list[Chosen | None]:
    """One token per row of logits (rows, vocab); None where nothing may be chosen: all is masked, or not a number.

    `numbers` are the rows' random numbers where they were drawn before.
    """
    work = logits
    changed = [row for row, mask in enumerate(masks) if mask is not None or samplers[row].adjusts]
    if changed:
        work = logits.copy()
        for row in changed:
            samplers[row].adjust(work[row])
            mask = masks[row]
            if mask is not None:
                work[row, ~mask[: work.shape[1]]] = -np.inf
    best = work.argmax(-1)
    peaks = work[np.arange(len(work)), best]
    tokens = best.tolist()
    sampled = [row for row, sampler in enumerate(samplers) if not sampler.greedy and math.isfinite(peaks[row])]
    if sampled:
        drawn = draw(
            work[sampled],
            [samplers[row].sampling for row in sampled],
            [samplers[row].number() if numbers is None else numbers[row] for row in sampled],
        )
        for row, token in zip(sampled, drawn, strict=True):
            tokens[row] = token
    found: list[Chosen | None] = []
    for row, sampler in enumerate(samplers):
        if not math.isfinite(peaks[row]):
            found.append(None)
            continue
        sampler.take(tokens[row])
        count = sampler.sampling.logprobs
        found.append(Chosen(tokens[row], None if count is None else _logprob(logits[row], tokens[row], count)))
    return found


def _logprob(row: Floats, token: int, count: int) -> TokenLogprob:
    wide = row.astype(np.float64)
    peak = wide.max()
    total = peak + math.log(np.exp(wide - peak).sum())
    count = min(count, len(row))
    if not count:
        return TokenLogprob(token, float(wide[token] - total))
    likeliest = _top(row, count)
    return TokenLogprob(
        token, float(wide[token] - total), tuple((int(other), float(wide[other] - total)) for other in likeliest)
    )


def draw(logits: Floats, samplings: Sequence[Sampling], numbers: Sequence[float]) -> list[int]:
    """One token per row: temperature, min_p, top_k, top_p, then the place that the row's number (0 to 1) falls on."""
    heat = np.array([sampling.temperature for sampling in samplings], np.float32)[:, None]
    shares = np.exp((logits - logits.max(-1, keepdims=True)) / heat)  # the likeliest has 1
    least = np.array([sampling.min_p for sampling in samplings], np.float32)[:, None]
    if least.any():
        shares[shares < least] = 0
    vocab = logits.shape[1]
    tokens = [0] * len(samplings)
    whole = [row for row, s in enumerate(samplings) if s.top_p >= 1 and not 0 < s.top_k < vocab]
    if whole:
        sums = np.cumsum(shares[whole], axis=-1, dtype=np.float64)
        for at, row in enumerate(whole):
            tokens[row] = _fall(sums[at], numbers[row])
    for row in set(range(len(samplings))) - set(whole):
        tokens[row] = _among_the_top(shares[row], samplings[row], numbers[row])
    return tokens


def _fall(sums: NDArray[np.float64], number: float) -> int:
    """The first index whose running sum exceeds the number's part of the last sum."""
    return min(int(np.searchsorted(sums, number * sums[-1], "right")), int(np.searchsorted(sums, sums[-1], "left")))


def _among_the_top(shares: Floats, sampling: Sampling, number: float) -> int:
    vocab = len(shares)
    limit = min(sampling.top_k or vocab, vocab)
    total = float(shares.sum(dtype=np.float64)) if limit == vocab else None
    count = min(limit, CANDIDATES) if limit == vocab else limit
    while True:
        order = _top(shares, count)
        place = pick(shares[order], None if count == vocab else total, sampling.top_p, number)
        if place is not None:
            return int(order[place])
        count = min(vocab, WIDER * count)


def pick(shares: Floats, total: float | None, top_p: float, number: float) -> int | None:
    """The place among shares, largest first, that a number falls on; None where they do not make up top_p of the total.

    `total` None is the sum of these shares.
    """
    sums = np.cumsum(shares, dtype=np.float64)
    total = float(sums[-1]) if total is None else total
    if sums[-1] < top_p * total:
        return None
    count = int(np.searchsorted(sums, top_p * total, "left")) + 1
    return _fall(sums[:count], number)


def _top(shares: Floats, count: int) -> NDArray[np.int64]:
    """The `count` largest, largest first, the lower index first among equals."""
    some = np.arange(len(shares))
    if count < len(shares):
        least = np.partition(shares, len(shares) - count)[len(shares) - count]
        above = np.flatnonzero(shares > least)
        some = np.concatenate([above, np.flatnonzero(shares == least)[: count - len(above)]])
    return some[np.lexsort((some, -shares[some]))]
