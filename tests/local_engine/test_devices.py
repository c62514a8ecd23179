"""Each available device gives the same tokens in float32, and nearly the same ones in float16."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from scheduler_rig import GREEDY, Folders
from tiny_models import NEW_TOKENS, PROMPTS

from dragoman.local_engine.engine import Engine, EngineOptions
from dragoman.local_engine.event_streams import EventStreams
from dragoman.local_engine.export.decoder_graph import Layout
from dragoman.local_engine.export.linear import Precision
from dragoman.local_engine.generation import Delta, GenerationRequest, SamplingParams
from dragoman.local_engine.runtime.providers import Device, ProviderError, select_provider

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> Device:
    """Each device of this machine."""
    found: Device = request.param
    try:
        select_provider(found)
    except ProviderError as error:
        pytest.skip(str(error))
    return found


def load_golden(name: str) -> list[list[int]]:
    tokens: list[list[int]] = json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))["tokens"]
    return tokens


@contextmanager
def open_engine(folder: Path, device: Device, *, sample_on_device: bool | None = None) -> Iterator[Engine]:
    options = EngineOptions(device=device, threads=1, queue=1000, sample_on_device=sample_on_device)
    engine = Engine.load(folder, options)
    assert engine.limits.provider.device == device
    yield engine
    engine.close()


async def generate_greedily(streams: EventStreams, prompt: list[int], count: int) -> list[int]:
    return await collect_tokens(streams, GenerationRequest(tuple(prompt), GREEDY, count, ignore_eos=True))


async def collect_tokens(streams: EventStreams, request: GenerationRequest) -> list[int]:
    return [token async for event in streams.run(request) if isinstance(event, Delta) for token in event.tokens]


@pytest.mark.parametrize("layout", ["gqa", "concat"])
@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3"])
async def test_float32_gives_the_golden_tokens(folders: Folders, name: str, layout: Layout, device: Device) -> None:
    with open_engine(folders(name, layout=layout), device) as engine:
        streams = EventStreams(engine, asyncio.get_running_loop())
        found = await asyncio.gather(*(generate_greedily(streams, prompt, NEW_TOKENS) for prompt in PROMPTS))
        assert found == load_golden(name)


@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3"])
async def test_float16_agrees_on_99_percent_of_the_next_tokens(folders: Folders, name: str, device: Device) -> None:
    """Each token is generated after the golden tokens before it, so one difference does not cause others."""
    cases = [
        (prompt + tokens[:count], tokens[count])
        for prompt, tokens in zip(PROMPTS, load_golden(name), strict=True)
        for count in range(NEW_TOKENS)
    ]
    with open_engine(folders(name, "fp16"), device) as engine:
        streams = EventStreams(engine, asyncio.get_running_loop())
        found = await asyncio.gather(*(generate_greedily(streams, text, 1) for text, _ in cases))
        agreed = sum(tokens == [token] for tokens, (_, token) in zip(found, cases, strict=True))
        assert agreed >= 0.99 * len(cases)


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
async def test_sampling_on_the_device_gives_the_tokens_of_the_host(
    folders: Folders, precision: Precision, device: Device
) -> None:
    samplings = [
        GREEDY,
        SamplingParams(seed=1),
        SamplingParams(0.7, top_p=0.9, seed=2),
        SamplingParams(top_k=9, min_p=0.1, seed=3),
    ]
    found = []
    for on_device in (True, False):
        with open_engine(folders("qwen3", precision), device, sample_on_device=on_device) as engine:
            streams = EventStreams(engine, asyncio.get_running_loop())
            requests = [GenerationRequest(tuple(PROMPTS[-1]), one, NEW_TOKENS, ignore_eos=True) for one in samplings]
            found.append([await collect_tokens(streams, one) for one in requests])
    assert found[0] == found[1]


async def test_a_shared_prompt_prefix_is_reused(folders: Folders, device: Device) -> None:
    """The second of two requests with a common prefix starts from the keys and values of the first."""
    with open_engine(folders("llama", "fp16"), device) as engine:
        streams = EventStreams(engine, asyncio.get_running_loop())
        text = PROMPTS[-1]
        alone = await generate_greedily(streams, text, NEW_TOKENS)
        both = await asyncio.gather(
            generate_greedily(streams, text, NEW_TOKENS), generate_greedily(streams, [*text, 7], NEW_TOKENS)
        )
        same = NEW_TOKENS if device == "cpu" else 1  # CUDA sums in another order in larger batches
        assert both[0][:same] == alone[:same] and engine.statistics()["cached_tokens"] >= len(text) - 2
