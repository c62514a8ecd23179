"""The sampler: compared with a slow, literal implementation of the rules, and properties for all logits."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.local_engine.generation import SamplingParams
from dragoman.local_engine.sampling.sampler import Sampler, draw_tokens, sample_tokens

Floats = np.ndarray[Any, np.dtype[np.float32]]

ROWS = st.lists(st.integers(-160, 160).map(lambda eighths: eighths / 8), min_size=1, max_size=40)
SAMPLINGS = st.builds(
    SamplingParams,
    temperature=st.floats(0.05, 3),
    top_p=st.one_of(st.just(1.0), st.floats(0.01, 1)),
    top_k=st.integers(0, 12),
    min_p=st.one_of(st.just(0.0), st.floats(0, 0.9)),
)


def one_row(values: list[float]) -> Floats:
    return np.array([values], np.float32)


def allowed(row: list[float], sampling: SamplingParams) -> dict[int, float]:
    """Map the tokens that may be drawn to their weights: sort, cut, sum."""
    peak = max(row)
    weights = {token: math.exp((value - peak) / sampling.temperature) for token, value in enumerate(row)}
    weights = {token: weight for token, weight in weights.items() if weight >= sampling.min_p}
    order = sorted(weights, key=lambda token: (-weights[token], token))
    order = order[: sampling.top_k or len(order)]
    total, kept, mass = sum(weights[token] for token in order), [], 0.0
    for token in order:
        kept.append(token)
        mass += weights[token]
        if sampling.top_p < 1 and mass >= sampling.top_p * total:
            break
    return {token: weights[token] for token in kept}


@given(ROWS, SAMPLINGS, st.floats(0, 1, exclude_max=True))
def test_only_allowed_tokens_are_drawn(row: list[float], sampling: SamplingParams, number: float) -> None:
    token = draw_tokens(one_row(row), [sampling], [number])[0]
    near = SamplingParams(
        sampling.temperature, min(1.0, sampling.top_p + 1e-5), sampling.top_k, max(0.0, sampling.min_p - 1e-5)
    )
    assert token in allowed(row, near)


@given(ROWS, SAMPLINGS)
def test_tokens_are_drawn_in_proportion_to_their_weights(row: list[float], sampling: SamplingParams) -> None:
    """Evenly spaced numbers select each token as often as its weight says."""
    count = 400
    drawn = Counter(
        draw_tokens(np.repeat(one_row(row), count, 0), [sampling] * count, [(i + 0.5) / count for i in range(count)])
    )
    weights = allowed(row, sampling)
    total = sum(weights.values())
    edge = min(abs(weight - sampling.min_p) for weight in weights.values()) < 1e-4
    for token, weight in weights.items():
        assert abs(drawn[token] / count - weight / total) < 0.02 or edge or _is_near_a_limit(row, sampling), (
            token,
            drawn,
        )


def _is_near_a_limit(row: list[float], sampling: SamplingParams) -> bool:
    """Whether a weight is so close to a limit that float32 may decide otherwise."""
    a = SamplingParams(sampling.temperature, sampling.top_p * (1 - 1e-4), sampling.top_k, sampling.min_p + 1e-4)
    b = SamplingParams(
        sampling.temperature, min(1, sampling.top_p * (1 + 1e-4)), sampling.top_k, max(0, sampling.min_p - 1e-4)
    )
    return allowed(row, a) != allowed(row, b)


@given(
    st.lists(ROWS.filter(lambda row: len(row) >= 5), min_size=2, max_size=5),
    st.lists(SAMPLINGS, min_size=5, max_size=5),
)
def test_the_token_of_a_row_does_not_depend_on_other_rows(
    rows: list[list[float]], samplings: list[SamplingParams]
) -> None:
    width = min(len(row) for row in rows)
    table = np.array([row[:width] for row in rows], np.float32)
    seeded = [
        SamplingParams(s.temperature, s.top_p, s.top_k, s.min_p, seed=i, logprobs=2, logit_bias={0: 1.0})
        for i, s in enumerate(samplings[: len(rows)])
    ]
    together = sample_tokens(table, [Sampler(s, ()) for s in seeded], [None] * len(rows))
    alone = [sample_tokens(table[i : i + 1], [Sampler(s, ())], [None])[0] for i, s in enumerate(seeded)]
    assert together == alone


def test_top_p_and_top_k_are_exact_for_a_large_vocabulary() -> None:
    source = np.random.RandomState(1)
    row = source.standard_normal((1, 5000)).astype(np.float32)
    for sampling in (
        SamplingParams(1.0, 0.5),
        SamplingParams(1.0, 0.999),
        SamplingParams(1.0, 0.9, 700),
        SamplingParams(3.0, 1.0, 300),
    ):
        numbers = [0.0, 0.3, 0.7, 0.999999]
        wanted = allowed(row[0].tolist(), sampling)
        for number in numbers:
            assert draw_tokens(row, [sampling], [number])[0] in wanted
        last = draw_tokens(row, [sampling], [1 - 1e-9])[0]
        assert abs(list(wanted).index(last) - len(wanted)) < 3 or sampling.top_p == 1


@pytest.mark.parametrize("penalized", [True, False])
def test_greedy_selects_the_lowest_id_of_equal_logits(penalized: bool) -> None:
    sampler = Sampler(SamplingParams(temperature=0, presence_penalty=1.0 if penalized else 0.0), ())
    row = one_row([1.0, 3.0, 3.0, 2.5])
    first = sample_tokens(row, [sampler], [None])[0]
    second = sample_tokens(row, [sampler], [None])[0]
    assert first is not None and second is not None
    assert (first.token, second.token) == (1, 2 if penalized else 1)
    assert row.tolist() == [[1.0, 3.0, 3.0, 2.5]], "the model's logits are not changed"


def test_penalties_and_bias_follow_their_formulas() -> None:
    sampler = Sampler(
        SamplingParams(0, presence_penalty=0.5, frequency_penalty=0.25, repetition_penalty=2.0, logit_bias={3: 7}), [2]
    )
    for token in (0, 0, 1):
        sampler.record(token)
    row = np.array([4.0, -4.0, 6.0, 0.0], np.float32)
    sampler.adjust_logits(row)
    assert row.tolist() == [4 / 2 - 0.5 - 0.5, -8 - 0.25 - 0.5, 3.0, 7.0]


def test_masked_tokens_are_never_sampled() -> None:
    row = one_row([5.0, 4.0, 3.0])
    mask = np.array([False, True, True])
    for temperature in (0.0, 1.0):
        sampler = Sampler(SamplingParams(temperature, seed=1, logit_bias={0: 100}), ())
        tokens = {chosen.token for _ in range(20) if (chosen := sample_tokens(row, [sampler], [mask])[0])}
        assert tokens and 0 not in tokens
        assert sample_tokens(row, [sampler], [np.zeros(3, np.bool_)]) == [None]
    assert sample_tokens(one_row([math.nan, 1.0]), [Sampler(SamplingParams(0), ())], [None]) == [None]


def test_log_probabilities_ignore_bias() -> None:
    row = one_row([2.0, 1.0, 0.0])
    sampler = Sampler(SamplingParams(0, logprobs=2, logit_bias={2: 50}), ())
    chosen = sample_tokens(row, [sampler], [None])[0]
    assert chosen is not None and chosen.logprob is not None
    total = math.log(sum(math.exp(value) for value in (2, 1, 0)))
    assert chosen.token == 2 and chosen.logprob.logprob == pytest.approx(-total)
    assert [token for token, _ in chosen.logprob.top] == [0, 1]
    assert [value for _, value in chosen.logprob.top] == pytest.approx([2 - total, 1 - total])


def test_random_numbers_depend_on_seed_and_index() -> None:
    def numbers(seed: int | None, index: int = 0) -> list[float]:
        sampler = Sampler(SamplingParams(seed=seed), (), index)
        return [sampler.draw_number() for _ in range(3)]

    assert numbers(1) == numbers(1) and numbers(-1) == numbers(2**64 - 1)
    assert len({tuple(numbers(*of)) for of in ((1, 0), (2, 0), (1, 1), (None, 0), (None, 0))}) == 5
