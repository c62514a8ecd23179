"""The sampler: one token per row of logits, for many rows at once.

All operations work along a row, so the token of a row depends only on its own logits, parameters and random number. One
number is drawn per sampled token, from a generator that belongs to the choice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.local_engine.generation import SamplingParams, TokenLogprob

__all__ = ["CANDIDATES", "SampledToken", "Sampler", "draw_tokens", "pick_in_top_p", "sample_tokens"]

Floats = NDArray[np.float32]
CANDIDATES, GROWTH = 256, 16
"""How many of the most likely tokens top_p sorts first, and the factor by which this grows if they do not suffice."""


@dataclass(frozen=True, slots=True)
class SampledToken:
    """The token of a row, with its log probability if requested."""

    token: int
    logprob: TokenLogprob | None = None


class Sampler:
    """The sampling state of one choice: its parameters, random numbers, and token counts."""

    def __init__(self, sampling: SamplingParams, prompt: Sequence[int], index: int = 0) -> None:
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
    def adjusts_logits(self) -> bool:
        """Whether bias or penalties change the logits."""
        given = self.sampling
        return bool(
            given.logit_bias or given.presence_penalty or given.frequency_penalty or given.repetition_penalty != 1
        )

    def adjust_logits(self, row: Floats) -> None:
        """Apply penalties and bias to a row of logits, in place."""
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

    def draw_number(self) -> float:
        """Draw the next random number, at least 0 and below 1."""
        return float(self._random.random())

    def record(self, token: int) -> None:
        """Record the sampled token, for penalties."""
        given = self.sampling
        if given.presence_penalty or given.frequency_penalty:
            self._counts[token] = self._counts.get(token, 0) + 1
        if given.repetition_penalty != 1:
            self._repeated.add(token)


def sample_tokens(
    logits: Floats,
    samplers: Sequence[Sampler],
    masks: Sequence[NDArray[np.bool_] | None],
    numbers: Sequence[float] | None = None,
) -> list[SampledToken | None]:
    """Sample one token per row of logits (rows, vocab). A row gives None if all its logits are masked or not finite.

    `numbers` are the random numbers of the rows, if they are already drawn.
    """
    work = logits
    changed = [row for row, mask in enumerate(masks) if mask is not None or samplers[row].adjusts_logits]
    if changed:
        work = logits.copy()
        for row in changed:
            samplers[row].adjust_logits(work[row])
            mask = masks[row]
            if mask is not None:
                work[row, ~mask[: work.shape[1]]] = -np.inf
    best = work.argmax(-1)
    peaks = work[np.arange(len(work)), best]
    tokens = best.tolist()
    sampled = [row for row, sampler in enumerate(samplers) if not sampler.greedy and math.isfinite(peaks[row])]
    if sampled:
        drawn = draw_tokens(
            work[sampled],
            [samplers[row].sampling for row in sampled],
            [samplers[row].draw_number() if numbers is None else numbers[row] for row in sampled],
        )
        for row, token in zip(sampled, drawn, strict=True):
            tokens[row] = token
    found: list[SampledToken | None] = []
    for row, sampler in enumerate(samplers):
        if not math.isfinite(peaks[row]):
            found.append(None)
            continue
        sampler.record(tokens[row])
        count = sampler.sampling.logprobs
        found.append(
            SampledToken(tokens[row], None if count is None else _compute_logprob(logits[row], tokens[row], count))
        )
    return found


def _compute_logprob(row: Floats, token: int, count: int) -> TokenLogprob:
    wide = row.astype(np.float64)
    peak = wide.max()
    total = peak + math.log(np.exp(wide - peak).sum())
    count = min(count, len(row))
    if not count:
        return TokenLogprob(token, float(wide[token] - total))
    likeliest = _find_largest(row, count)
    return TokenLogprob(
        token, float(wide[token] - total), tuple((int(other), float(wide[other] - total)) for other in likeliest)
    )


def draw_tokens(logits: Floats, samplings: Sequence[SamplingParams], numbers: Sequence[float]) -> list[int]:
    """Draw one token per row: apply temperature, min_p, top_k and top_p, then select by the row's number (0 to 1)."""
    temperatures = np.array([sampling.temperature for sampling in samplings], np.float32)[:, None]
    weights = np.exp((logits - logits.max(-1, keepdims=True)) / temperatures)  # the most likely token has 1
    least = np.array([sampling.min_p for sampling in samplings], np.float32)[:, None]
    if least.any():
        weights[weights < least] = 0
    vocab = logits.shape[1]
    tokens = [0] * len(samplings)
    unlimited = [row for row, s in enumerate(samplings) if s.top_p >= 1 and not 0 < s.top_k < vocab]
    if unlimited:
        sums = np.cumsum(weights[unlimited], axis=-1, dtype=np.float64)
        for at, row in enumerate(unlimited):
            tokens[row] = _find_index(sums[at], numbers[row])
    for row in set(range(len(samplings))) - set(unlimited):
        tokens[row] = _draw_limited(weights[row], samplings[row], numbers[row])
    return tokens


def _find_index(sums: NDArray[np.float64], number: float) -> int:
    """Find the first index whose cumulative sum exceeds `number` times the total."""
    return min(int(np.searchsorted(sums, number * sums[-1], "right")), int(np.searchsorted(sums, sums[-1], "left")))


def _draw_limited(weights: Floats, sampling: SamplingParams, number: float) -> int:
    """Draw a token with top_k or top_p. Only as many weights as necessary are sorted."""
    vocab = len(weights)
    limit = min(sampling.top_k or vocab, vocab)
    total = float(weights.sum(dtype=np.float64)) if limit == vocab else None
    count = min(limit, CANDIDATES) if limit == vocab else limit
    while True:
        order = _find_largest(weights, count)
        position = pick_in_top_p(weights[order], None if count == vocab else total, sampling.top_p, number)
        if position is not None:
            return int(order[position])
        count = min(vocab, GROWTH * count)


def pick_in_top_p(weights: Floats, total: float | None, top_p: float, number: float) -> int | None:
    """Pick a position among weights, largest first, by a number (0 to 1), within top_p of the total weight.

    `total` None means the sum of these weights. The result is None if the weights sum to less than top_p of the total.
    """
    sums = np.cumsum(weights, dtype=np.float64)
    total = float(sums[-1]) if total is None else total
    if sums[-1] < top_p * total:
        return None
    count = int(np.searchsorted(sums, top_p * total, "left")) + 1
    return _find_index(sums[:count], number)


def _find_largest(weights: Floats, count: int) -> NDArray[np.int64]:
    """Return the indices of the `count` largest values, largest first; of equal values, the lower index first."""
    some = np.arange(len(weights))
    if count < len(weights):
        least = np.partition(weights, len(weights) - count)[len(weights) - count]
        above = np.flatnonzero(weights > least)
        some = np.concatenate([above, np.flatnonzero(weights == least)[: count - len(above)]])
    return some[np.lexsort((some, -weights[some]))]
