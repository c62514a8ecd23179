"""SamplingParams against a slow, literal reading of the rules, and laws that hold for any logits."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.local_engine.generation import SamplingParams
from dragoman.local_engine.sampling.sampler import Sampler, choose, draw

Floats = np.ndarray[Any, np.dtype[np.float32]]

ROWS = st.lists(st.integers(-160, 160).map(lambda eighths: eighths / 8), min_size=1, max_size=40)
SAMPLINGS = st.builds(
    SamplingParams,
    temperature=st.floats(0.05, 3),
    top_p=st.one_of(st.just(1.0), st.floats(0.01, 1)),
    top_k=st.integers(0, 12),
    min_p=st.one_of(st.just(0.0), st.floats(0, 0.9)),
)


def logits(values: list[float]) -> Floats:
    return np.array([values], np.float32)


def allowed(row: list[float], sampling: SamplingParams) -> dict[int, float]:
    """Token and share of all that may be drawn, by the letter: sort, cut, sum."""
    peak = max(row)
    shares = {token: math.exp((value - peak) / sampling.temperature) for token, value in enumerate(row)}
    shares = {token: share for token, share in shares.items() if share >= sampling.min_p}
    order = sorted(shares, key=lambda token: (-shares[token], token))
    order = order[: sampling.top_k or len(order)]
    total, kept, mass = sum(shares[token] for token in order), [], 0.0
    for token in order:
        kept.append(token)
        mass += shares[token]
        if sampling.top_p < 1 and mass >= sampling.top_p * total:
            break
    return {token: shares[token] for token in kept}


@given(ROWS, SAMPLINGS, st.floats(0, 1, exclude_max=True))
def test_only_allowed_tokens_are_drawn(row: list[float], sampling: SamplingParams, number: float) -> None:
    token = draw(logits(row), [sampling], [number])[0]
    near = SamplingParams(
        sampling.temperature, min(1.0, sampling.top_p + 1e-5), sampling.top_k, max(0.0, sampling.min_p - 1e-5)
    )
    assert token in allowed(row, near)


@given(ROWS, SAMPLINGS)
def test_shares_are_those_of_the_rules(row: list[float], sampling: SamplingParams) -> None:
    """Numbers spread evenly over 0 to 1 fall on each token as often as its share says."""
    count = 400
    drawn = Counter(
        draw(np.repeat(logits(row), count, 0), [sampling] * count, [(i + 0.5) / count for i in range(count)])
    )
    shares = allowed(row, sampling)
    total = sum(shares.values())
    edge = min(abs(share - sampling.min_p) for share in shares.values()) < 1e-4
    for token, share in shares.items():
        assert abs(drawn[token] / count - share / total) < 0.02 or edge or _near_the_edge(row, sampling), (token, drawn)


def _near_the_edge(row: list[float], sampling: SamplingParams) -> bool:
    """A share so close to a limit that float32 may decide otherwise."""
    a = SamplingParams(sampling.temperature, sampling.top_p * (1 - 1e-4), sampling.top_k, sampling.min_p + 1e-4)
    b = SamplingParams(
        sampling.temperature, min(1, sampling.top_p * (1 + 1e-4)), sampling.top_k, max(0, sampling.min_p - 1e-4)
    )
    return allowed(row, a) != allowed(row, b)


@given(
    st.lists(ROWS.filter(lambda row: len(row) >= 5), min_size=2, max_size=5),
    st.lists(SAMPLINGS, min_size=5, max_size=5),
)
def test_a_row_is_chosen_as_if_it_were_alone(rows: list[list[float]], samplings: list[SamplingParams]) -> None:
    width = min(len(row) for row in rows)
    table = np.array([row[:width] for row in rows], np.float32)
    seeded = [
        SamplingParams(s.temperature, s.top_p, s.top_k, s.min_p, seed=i, logprobs=2, logit_bias={0: 1.0})
        for i, s in enumerate(samplings[: len(rows)])
    ]
    together = choose(table, [Sampler(s, ()) for s in seeded], [None] * len(rows))
    alone = [choose(table[i : i + 1], [Sampler(s, ())], [None])[0] for i, s in enumerate(seeded)]
    assert together == alone


def test_large_vocabularies_are_cut_exactly() -> None:
    source = np.random.RandomState(1)
    row = source.standard_normal((1, 5000)).astype(np.float32)
    for sampling in (SamplingParams(1.0, 0.5), SamplingParams(1.0, 0.999), SamplingParams(1.0, 0.9, 700), SamplingParams(3.0, 1.0, 300)):
        numbers = [0.0, 0.3, 0.7, 0.999999]
        wanted = allowed(row[0].tolist(), sampling)
        for number in numbers:
            assert draw(row, [sampling], [number])[0] in wanted
        last = draw(row, [sampling], [1 - 1e-9])[0]
        assert abs(list(wanted).index(last) - len(wanted)) < 3 or sampling.top_p == 1


@pytest.mark.parametrize("penalised", [True, False])
def test_greedy_takes_the_lowest_of_equals(penalised: bool) -> None:
    sampler = Sampler(SamplingParams(temperature=0, presence_penalty=1.0 if penalised else 0.0), ())
    row = logits([1.0, 3.0, 3.0, 2.5])
    first = choose(row, [sampler], [None])[0]
    second = choose(row, [sampler], [None])[0]
    assert first is not None and second is not None
    assert (first.token, second.token) == (1, 2 if penalised else 1)
    assert row.tolist() == [[1.0, 3.0, 3.0, 2.5]], "the model's logits are left alone"


def test_penalties_by_the_letter() -> None:
    sampler = Sampler(
        SamplingParams(0, presence_penalty=0.5, frequency_penalty=0.25, repetition_penalty=2.0, logit_bias={3: 7}), [2]
    )
    for token in (0, 0, 1):
        sampler.take(token)
    row = np.array([4.0, -4.0, 6.0, 0.0], np.float32)
    sampler.adjust(row)
    assert row.tolist() == [4 / 2 - 0.5 - 0.5, -8 - 0.25 - 0.5, 3.0, 7.0]


def test_masks_rule_out_and_may_rule_out_everything() -> None:
    row = logits([5.0, 4.0, 3.0])
    mask = np.array([False, True, True])
    for temperature in (0.0, 1.0):
        sampler = Sampler(SamplingParams(temperature, seed=1, logit_bias={0: 100}), ())
        tokens = {chosen.token for _ in range(20) if (chosen := choose(row, [sampler], [mask])[0])}
        assert tokens and 0 not in tokens
        assert choose(row, [sampler], [np.zeros(3, np.bool_)]) == [None]
    assert choose(logits([math.nan, 1.0]), [Sampler(SamplingParams(0), ())], [None]) == [None]


def test_log_probabilities_are_the_models_own() -> None:
    row = logits([2.0, 1.0, 0.0])
    sampler = Sampler(SamplingParams(0, logprobs=2, logit_bias={2: 50}), ())
    chosen = choose(row, [sampler], [None])[0]
    assert chosen is not None and chosen.logprob is not None
    total = math.log(sum(math.exp(value) for value in (2, 1, 0)))
    assert chosen.token == 2 and chosen.logprob.logprob == pytest.approx(-total)
    assert chosen.logprob.top == ((0, pytest.approx(2 - total)), (1, pytest.approx(1 - total)))


def test_seeds() -> None:
    def numbers(seed: int | None, index: int = 0) -> list[float]:
        sampler = Sampler(SamplingParams(seed=seed), (), index)
        return [sampler.number() for _ in range(3)]

    assert numbers(1) == numbers(1) and numbers(-1) == numbers(2**64 - 1)
    assert len({tuple(numbers(*of)) for of in ((1, 0), (2, 0), (1, 1), (None, 0), (None, 0))}) == 5
