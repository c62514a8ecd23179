"""The same tokens on every device that is there, and nearly the same in half precision."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_models import NEW_TOKENS, PROMPTS
from engine_rig import GREEDY, Folders

from dragoman.local_engine.engine import Engine, Options
from dragoman.local_engine.providers import Device, ProviderError, choose
from dragoman.local_engine.requests import Delta, Generation
from dragoman.local_engine.stream import Streams


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


def opened(folder: Path, device: Device) -> Iterator[Engine]:
    engine = Engine.load(folder, Options(device=device, threads=1, queue=1000))
    assert engine.limits.provider.device == device
    yield engine
    engine.close()


async def greedy(streams: Streams, prompt: list[int], count: int) -> list[int]:
    request = Generation(tuple(prompt), GREEDY, count, ignore_eos=True)
    return [token async for event in streams.run(request) if isinstance(event, Delta) for token in event.tokens]


@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3"])
async def test_float32_is_exact(folders: Folders, name: str, device: Device) -> None:
    for engine in opened(folders(name), device):
        streams = Streams(engine, asyncio.get_running_loop())
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
        streams = Streams(engine, asyncio.get_running_loop())
        found = await asyncio.gather(*(greedy(streams, text, 1) for text, _ in places))
        agreed = sum(tokens == [token] for tokens, (_, token) in zip(found, places, strict=True))
        assert agreed >= 0.99 * len(places)
