"""Sampling on a device gives the tokens of the host. Here the graph runs on the CPU; CUDA uses the same graph."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheduler_rig import GREEDY, SchedulerRigs

import dragoman.local_engine.sampling
from dragoman.local_engine.generation import SamplingParams
from dragoman.local_engine.runtime.memory import HostBuffer
from dragoman.local_engine.runtime.providers import cpu_provider
from dragoman.local_engine.sampling.device_graph import TYPES, write_graph
from dragoman.local_engine.sampling.device_logits import DeviceLogits, DeviceSampler
from dragoman.local_engine.sampling.sampler import SampledToken, Sampler, sample_tokens

Floats = np.ndarray[Any, np.dtype[Any]]
ROWS = 6
SAMPLERS: dict[tuple[str, int], DeviceSampler] = {}

SAMPLINGS = st.builds(
    SamplingParams,
    temperature=st.one_of(st.just(0.0), st.floats(0.05, 3)),
    top_p=st.one_of(st.just(1.0), st.floats(0.01, 0.999)),
    top_k=st.one_of(st.just(0), st.integers(1, 400)),
    min_p=st.one_of(st.just(0.0), st.floats(0, 0.9)),
    presence_penalty=st.sampled_from([0.0, 0.0, 0.7]),
    logit_bias=st.sampled_from([{}, {}, {2: 5.0}]),
    logprobs=st.sampled_from([None, 0, 5, 300]),
    seed=st.integers(0, 2**31),
)


def get_sampler(element: str, vocab: int) -> DeviceSampler:
    if (element, vocab) not in SAMPLERS:
        SAMPLERS[element, vocab] = DeviceSampler(cpu_provider(), np.dtype(element).type, ROWS, vocab)
    return SAMPLERS[element, vocab]


def sample_on_device(logits: Floats, samplings: list[SamplingParams], offsets: list[int]) -> list[SampledToken | None]:
    """Sample from a buffer whose first row is not part of the step."""
    buffer = HostBuffer((len(logits) + 1, logits.shape[1]), logits.dtype.type)
    buffer.read_rows(1, len(logits) + 1)[:] = logits
    device_logits = DeviceLogits(get_sampler(logits.dtype.name, logits.shape[1]), buffer, 1, len(logits), offsets)
    return device_logits.sample([Sampler(one, (1, 2)) for one in samplings], [None] * len(samplings))


def sample_on_host(logits: Floats, samplings: list[SamplingParams], offsets: list[int]) -> list[SampledToken | None]:
    rows = logits[offsets].astype(np.float32)
    return sample_tokens(rows, [Sampler(one, (1, 2)) for one in samplings], [None] * len(samplings))


@pytest.mark.parametrize("element", TYPES)
def test_the_packaged_graphs_are_those_that_the_script_writes(element: str, tmp_path: Path) -> None:
    write_graph(tmp_path / "graph.onnx", element)
    kept = Path(dragoman.local_engine.sampling.__path__[0]) / f"{element}.onnx"
    assert kept.read_bytes() == (tmp_path / "graph.onnx").read_bytes(), "run device_graph again"


@given(
    st.sampled_from(sorted(TYPES)),
    st.sampled_from([3, 256, 272, 512, 5000]),
    st.floats(0.1, 8),
    st.lists(SAMPLINGS, min_size=1, max_size=ROWS),
    st.integers(0, 2**31),
)
def test_device_and_host_sample_the_same_tokens(
    element: str, vocab: int, spread: float, samplings: list[SamplingParams], seed: int
) -> None:
    source = np.random.default_rng(seed)
    logits = (source.standard_normal((ROWS, vocab)) * spread).astype(element)
    offsets = sorted(source.choice(ROWS, len(samplings), replace=False).tolist())
    device, host = (sample(logits, samplings, offsets) for sample in (sample_on_device, sample_on_host))
    for one, other in zip(device, host, strict=True):
        assert one is not None and other is not None and one.token == other.token
        if one.logprob is None or other.logprob is None:
            assert one.logprob is other.logprob
            continue
        assert one.logprob.logprob == pytest.approx(other.logprob.logprob, abs=1e-5)
        assert [token for token, _ in one.logprob.top] == [token for token, _ in other.logprob.top]
        assert [value for _, value in one.logprob.top] == pytest.approx(
            [value for _, value in other.logprob.top], abs=1e-5
        )


@pytest.mark.parametrize("invalid", [np.nan, np.inf])
@pytest.mark.parametrize("sampling", [GREEDY, SamplingParams(seed=1), SamplingParams(seed=1, top_k=3)])
def test_logits_that_are_not_finite_give_no_token(invalid: float, sampling: SamplingParams) -> None:
    logits = np.zeros((2, 272), np.float32)
    logits[0, 100] = invalid
    device, host = (sample(logits, [sampling] * 2, [0, 1]) for sample in (sample_on_device, sample_on_host))
    assert device == host and device[0] is None and device[1] is not None
    assert sample_on_device(np.full((1, 272), -np.inf, np.float32), [sampling], [0]) == [None]


def test_a_masked_row_is_sampled_on_the_host() -> None:
    buffer = HostBuffer((2, 272), np.float32)
    buffer.read_rows(0, 2)[:, 9] = 5
    mask = np.zeros(272, np.bool_)
    mask[17] = True
    device_logits = DeviceLogits(get_sampler("float32", 272), buffer, 0, 2, [0, 1])
    found = device_logits.sample([Sampler(GREEDY, ()), Sampler(GREEDY, ())], [mask, None])
    assert [chosen.token for chosen in found if chosen] == [17, 9]


@pytest.mark.parametrize("name", ["llama", "qwen3"])
def test_requests_at_random_times_get_the_same_tokens_on_device_and_host(rigs: SchedulerRigs, name: str) -> None:
    source = random.Random(5)
    samplings = [
        GREEDY,
        SamplingParams(),
        SamplingParams(0.7, top_p=0.9),
        SamplingParams(1.5, top_k=20),
        SamplingParams(frequency_penalty=1),
    ]
    cases = [
        ([source.randrange(256) for _ in range(source.randint(1, 60))], source.randint(1, 30), source.choice(samplings))
        for _ in range(40)
    ]
    both = [rigs(name, slots=5, sample_on_device=on_device) for on_device in (True, False)]
    for rig in both:
        for ticket, (prompt, count, sampling) in enumerate(cases):
            seeded = dataclasses.replace(sampling, seed=ticket)
            rig.add(ticket, rig.request(prompt, count, sampling=seeded))
            rig.step()
        rig.drain()
    device, host = both
    assert [device.tokens(ticket) for ticket in range(40)] == [host.tokens(ticket) for ticket in range(40)]
