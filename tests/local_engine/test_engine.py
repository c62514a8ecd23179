"""The engine as its users meet it: threads, asyncio, limits, and endings."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engine_rig import GREEDY, Folders, plain

from dragoman.adapters.faults import Fault
from dragoman.local_engine.engine import Engine, Options
from dragoman.local_engine.model_folder.files import FolderError
from dragoman.local_engine.runtime.providers import ExecutionProvider
from dragoman.local_engine.generation import Delta, Finished, GenerationRequest, SamplingParams
from dragoman.local_engine.event_streams import EventStreams

PROMPT = tuple(b"What does a dragoman do?")
CPU = Options(device="cpu", threads=1, slots=4, queue=3)


@pytest.fixture
def engine(folders: Folders) -> Iterator[Engine]:
    engine = Engine.load(folders(), CPU)
    yield engine
    engine.close()


def asked(count: int = 8, prompt: tuple[int, ...] = PROMPT, **more: Any) -> GenerationRequest:
    return GenerationRequest(prompt, more.pop("sampling", GREEDY), count, ignore_eos=True, **more)


async def tokens(streams: EventStreams, request: GenerationRequest) -> list[int]:
    return [token async for event in streams.run(request) if isinstance(event, Delta) for token in event.tokens]


async def until(there: Any) -> None:
    for _ in range(2000):
        if there():
            return
        await asyncio.sleep(0.005)
    raise TimeoutError


async def test_streams_of_many_at_once(engine: Engine, folders: Folders) -> None:
    streams = EventStreams(engine, asyncio.get_running_loop())
    prompts = [tuple(range(start, start + 20)) for start in range(7)]
    found = await asyncio.gather(*(tokens(streams, asked(16, prompt)) for prompt in prompts))
    assert found == [plain(folders(), list(prompt), 16) for prompt in prompts]
    assert engine.statistics()["waiting"] == engine.statistics()["running"] == 0
    assert engine.statistics()["generated_tokens"] == 7 * 16


async def test_a_full_queue_is_refused_with_a_time_to_come_back(engine: Engine) -> None:
    streams = EventStreams(engine, asyncio.get_running_loop())
    running = [asyncio.create_task(tokens(streams, asked(150))) for _ in range(4 + 3)]
    await asyncio.sleep(0)
    with pytest.raises(Fault) as refused:
        await tokens(streams, asked())
    fault = refused.value
    assert (fault.kind, fault.status, fault.code) == ("rate_limit", 429, "queue_full")
    assert fault.retry_after is not None and 1 <= fault.retry_after <= 60
    for n in (0, 8):
        with pytest.raises(Fault, match=f"n is {n}; 1 to 7 are served"):
            engine.submit(asked(n=n))
    assert len({tuple(made) for made in await asyncio.gather(*running)}) == 1
    assert len(await tokens(streams, asked())) == 8


@pytest.mark.parametrize(
    ("request_", "words", "code"),
    [
        (GenerationRequest(()), "no tokens", None),
        (GenerationRequest(tuple(range(192))), "192 tokens; the context of 192", "context_length_exceeded"),
        (GenerationRequest((1, 272)), "token 272 is not in the vocabulary of 272", None),
        (GenerationRequest((1,), max_tokens=0), "max_tokens is 0", None),
        (GenerationRequest((1,), SamplingParams(logit_bias={-1: 1.0})), "token -1", None),
    ],
)
def test_what_cannot_be_served_is_said_at_once(
    engine: Engine, request_: GenerationRequest, words: str, code: str | None
) -> None:
    with pytest.raises(Fault, match=words) as refused:
        engine.submit(request_)
    assert (refused.value.kind, refused.value.code) == ("invalid_request", code)


async def test_who_stops_listening_frees_the_slot(engine: Engine) -> None:
    streams = EventStreams(engine, asyncio.get_running_loop())
    stream = streams.run(asked(160))
    await anext(stream)
    assert engine.statistics()["running"] == 1
    await stream.aclose()
    await until(lambda: engine.statistics()["running"] == 0)
    assert engine.statistics()["generated_tokens"] < 160


async def test_choices_finish_each_for_itself(engine: Engine) -> None:
    streams = EventStreams(engine, asyncio.get_running_loop())
    request = asked(6, n=3, sampling=SamplingParams(seed=3))
    ends = [event async for event in streams.run(request) if isinstance(event, Finished)]
    assert sorted(end.index for end in ends) == [0, 1, 2]
    assert {(end.usage.prompt, end.usage.completion) for end in ends} == {(len(PROMPT), 6)}


async def test_closing_fails_what_runs_and_refuses_what_comes(folders: Folders) -> None:
    engine = Engine.load(folders(), CPU)
    streams = EventStreams(engine, asyncio.get_running_loop())
    running = asyncio.create_task(tokens(streams, asked(160)))
    await until(lambda: engine.statistics()["running"])
    await asyncio.to_thread(engine.close)
    with pytest.raises(Fault, match="was closed"):
        await running
    with pytest.raises(Fault, match="is closed"):
        engine.submit(asked())


@pytest.mark.parametrize("method", ["prefill", "decode", "copy"])
async def test_a_run_that_fails_ends_its_requests_and_no_others(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    streams = EventStreams(engine, asyncio.get_running_loop())
    cache: Any = engine._scheduler._cache
    right, calls = getattr(cache, method), itertools.count()
    expected = await tokens(streams, asked(20))

    def failing(*args: Any) -> Any:
        if next(calls) == 0:
            raise RuntimeError("device is gone")
        return right(*args)

    monkeypatch.setattr(cache, method, failing)
    with pytest.raises(Fault, match="device is gone") as failed:
        await tokens(streams, asked(20, n=2))
    assert failed.value.kind == "internal"
    assert await asyncio.gather(*(tokens(streams, asked(20)) for _ in range(4))) == [expected] * 4
    assert engine.statistics()["running"] == 0


async def test_an_engine_that_will_not_answer_again_says_so(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of CUDA stays with the process; the thread's end leaves nobody to take a step."""
    streams = EventStreams(engine, asyncio.get_running_loop())
    assert await tokens(streams, asked(4))
    found = engine.statistics()
    assert (found["failed"], found["step_seconds"]) == (None, 0.0)

    def broken(*args: Any) -> Any:
        raise RuntimeError("an illegal memory access")

    monkeypatch.setattr(engine._scheduler, "step", broken)
    monkeypatch.setattr(engine, "limits", replace(engine.limits, provider=ExecutionProvider("cuda", "CUDAExecutionProvider")))
    with pytest.raises(Fault, match="illegal memory access"):
        await tokens(streams, asked(4))
    assert engine.statistics()["failed"] == "CUDA failed: an illegal memory access"
    monkeypatch.undo()
    monkeypatch.setattr(engine._scheduler, "add", broken)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    engine.submit(asked(4))
    await until(lambda: engine.statistics()["failed"].startswith("its thread ended: RuntimeError"))


def test_memory_decides_how_many_run(folders: Folders) -> None:
    row = 192 * 2 * 2 * 2 * 16 * 4
    engine = Engine.load(folders(), Options(device="cpu", memory=3 * row + 5))
    assert (engine.limits.slots, engine.limits.context) == (3, 192)
    engine.close()
    with pytest.raises(FolderError, match="192 tokens takes 0 MiB"):
        Engine.load(folders(), Options(device="cpu", memory=row - 1))


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="never downloaded"):
        Engine.load(tmp_path / "missing", CPU)
