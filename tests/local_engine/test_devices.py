"""The same tokens on every device that is there, and nearly the same in half precision."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_models import NEW_TOKENS, PROMPTS
from engine_rig import GREEDY, Folders

from dragoman.local_engine.engine import Engine, Options
from dragoman.local_engine.runtime.providers import Device, ProviderError, choose
from dragoman.local_engine.generation import Delta, GenerationRequest, SamplingParams
from dragoman.local_engine.event_streams import EventStreams


@pytest.fixture(params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> Device:
    """Each device that this machine has."""
    found: Device = request.param
    try:
        choose(found)
    except ProviderError as error:
        pytest.skip(str(error))
    return found


def golden(name: str) -> list[list[int]]:
    tokens: list[list[int]] = json.loads((Path(__file__).parent / "golden" / f"{name}.json").read_text("utf-8"))[
        "tokens"
    ]
    return tokens


def opened(folder: Path, device: Device, **more: Any) -> Iterator[Engine]:
    engine = Engine.load(folder, Options(device=device, threads=1, queue=1000, **more))
    assert engine.limits.provider.device == device
    yield engine
    engine.close()


async def greedy(streams: EventStreams, prompt: list[int], count: int) -> list[int]:
    return await said(streams, GenerationRequest(tuple(prompt), GREEDY, count, ignore_eos=True))


async def said(streams: EventStreams, request: GenerationRequest) -> list[int]:
    return [token async for event in streams.run(request) if isinstance(event, Delta) for token in event.tokens]


@pytest.mark.parametrize("layout", ["gqa", "concat"])
@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3"])
async def test_float32_is_exact(folders: Folders, name: str, layout: str, device: Device) -> None:
    for engine in opened(folders(name, layout=layout), device):
        streams = EventStreams(engine, asyncio.get_running_loop())
        found = await asyncio.gather(*(greedy(streams, prompt, NEW_TOKENS) for prompt in PROMPTS))
        assert found == golden(name)


@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3"])
async def test_float16_agrees_on_the_next_token(folders: Folders, name: str, device: Device) -> None:
    """Each golden token is asked for behind the golden ones before it, so that one difference does not breed others."""
    places = [
        (prompt + made[:count], made[count])
        for prompt, made in zip(PROMPTS, golden(name), strict=True)
        for count in range(NEW_TOKENS)
    ]
    for engine in opened(folders(name, "fp16"), device):
        streams = EventStreams(engine, asyncio.get_running_loop())
        found = await asyncio.gather(*(greedy(streams, text, 1) for text, _ in places))
        agreed = sum(tokens == [token] for tokens, (_, token) in zip(found, places, strict=True))
        assert agreed >= 0.99 * len(places)


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
async def test_tokens_are_the_same_wherever_they_are_chosen(folders: Folders, precision: str, device: Device) -> None:
    samplings = [GREEDY, SamplingParams(seed=1), SamplingParams(0.7, top_p=0.9, seed=2), SamplingParams(top_k=9, min_p=0.1, seed=3)]
    found = []
    for there in (True, False):
        for engine in opened(folders("qwen3", precision), device, sample_on_device=there):
            streams = EventStreams(engine, asyncio.get_running_loop())
            asked = [GenerationRequest(tuple(PROMPTS[-1]), one, NEW_TOKENS, ignore_eos=True) for one in samplings]
            found.append([await said(streams, one) for one in asked])
    assert found[0] == found[1]


async def test_a_slot_is_copied_where_it_lies(folders: Folders, device: Device) -> None:
    """The second of two requests with the same beginning starts from the first one's keys and values."""
    for engine in opened(folders("llama", "fp16"), device):
        streams = EventStreams(engine, asyncio.get_running_loop())
        text = PROMPTS[-1]
        alone = await greedy(streams, text, NEW_TOKENS)
        both = await asyncio.gather(greedy(streams, text, NEW_TOKENS), greedy(streams, [*text, 7], NEW_TOKENS))
        same = NEW_TOKENS if device == "cpu" else 1  # CUDA adds up in another order beside others
        assert both[0][:same] == alone[:same] and engine.statistics()["cached_tokens"] >= len(text) - 2
