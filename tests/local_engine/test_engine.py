"""The engine: concurrent streams, limits, cancellation, failures and closing."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from scheduler_rig import GREEDY, Folders, generate_alone

from dragoman.adapters.faults import Fault
from dragoman.local_engine.engine import Engine, EngineOptions, EventBatch
from dragoman.local_engine.event_streams import EventStreams
from dragoman.local_engine.generation import Delta, Finished, GenerationRequest, SamplingParams
from dragoman.local_engine.model_folder.files import FolderError
from dragoman.local_engine.runtime.providers import ExecutionProvider

PROMPT = tuple(b"What does a dragoman do?")
CPU = EngineOptions(device="cpu", threads=1, slots=4, queue=3)


@pytest.fixture
def engine(folders: Folders) -> Iterator[Engine]:
    engine = Engine.load(folders(), CPU)
    yield engine
    engine.close()


def request(
    max_tokens: int = 8, prompt: tuple[int, ...] = PROMPT, *, sampling: SamplingParams = GREEDY, n: int = 1
) -> GenerationRequest:
    return GenerationRequest(prompt, sampling, max_tokens, ignore_eos=True, n=n)


async def collect_tokens(streams: EventStreams, wanted: GenerationRequest) -> list[int]:
    return [token async for event in streams.run(wanted) if isinstance(event, Delta) for token in event.tokens]


async def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise TimeoutError


def hold_engine(engine: Engine, is_released: Callable[[], bool]) -> None:
    """Stop the engine's thread after each delivery until `is_released`."""
    deliver = engine.deliver

    def deliver_and_wait(batch: EventBatch) -> None:
        deliver(batch)
        while not is_released():
            time.sleep(0.001)

    engine.deliver = deliver_and_wait


async def test_concurrent_streams_give_the_tokens_of_each_prompt_alone(engine: Engine, folders: Folders) -> None:
    streams = EventStreams(engine, asyncio.get_running_loop())
    prompts = [tuple(range(start, start + 20)) for start in range(7)]
    found = await asyncio.gather(*(collect_tokens(streams, request(16, prompt)) for prompt in prompts))
    assert found == [generate_alone(folders(), list(prompt), 16) for prompt in prompts]
    assert engine.statistics()["waiting"] == engine.statistics()["running"] == 0
    assert engine.statistics()["generated_tokens"] == 7 * 16


async def test_a_full_queue_is_rejected_with_retry_after(engine: Engine) -> None:
    streams = EventStreams(engine, asyncio.get_running_loop())
    running = [asyncio.create_task(collect_tokens(streams, request(150))) for _ in range(4 + 3)]
    await asyncio.sleep(0)
    with pytest.raises(Fault) as refused:
        await collect_tokens(streams, request())
    fault = refused.value
    assert (fault.kind, fault.status, fault.code) == ("rate_limit", 429, "queue_full")
    assert fault.retry_after is not None and 1 <= fault.retry_after <= 60
    for n in (0, 8):
        with pytest.raises(Fault, match=f"n is {n}; supported are 1 to 7"):
            engine.submit(request(n=n))
    assert len({tuple(made) for made in await asyncio.gather(*running)}) == 1
    assert len(await collect_tokens(streams, request())) == 8


@pytest.mark.parametrize(
    ("invalid", "message", "code"),
    [
        (GenerationRequest(()), "no tokens", None),
        (GenerationRequest(tuple(range(192))), "192 tokens; .* the context of 192", "context_length_exceeded"),
        (GenerationRequest((1, 272)), "token 272 is not in the vocabulary of 272", None),
        (GenerationRequest((1,), max_tokens=0), "max_tokens is 0", None),
        (GenerationRequest((1,), SamplingParams(logit_bias={-1: 1.0})), "token -1", None),
    ],
)
def test_an_invalid_request_is_rejected_on_submission(
    engine: Engine, invalid: GenerationRequest, message: str, code: str | None
) -> None:
    with pytest.raises(Fault, match=message) as refused:
        engine.submit(invalid)
    assert (refused.value.kind, refused.value.code) == ("invalid_request", code)


async def test_closing_a_stream_frees_its_slot(engine: Engine) -> None:
    streams = EventStreams(engine, asyncio.get_running_loop())
    released = threading.Event()
    hold_engine(engine, released.is_set)
    stream = streams.run(request(160))
    await anext(stream)
    assert engine.statistics()["running"] == 1
    await stream.aclose()
    released.set()
    await wait_until(lambda: engine.statistics()["running"] == 0)
    assert engine.statistics()["generated_tokens"] < 160


async def test_each_choice_has_its_own_end(engine: Engine) -> None:
    streams = EventStreams(engine, asyncio.get_running_loop())
    wanted = request(6, n=3, sampling=SamplingParams(seed=3))
    ends = [event async for event in streams.run(wanted) if isinstance(event, Finished)]
    assert sorted(end.index for end in ends) == [0, 1, 2]
    assert {(end.usage.prompt, end.usage.completion) for end in ends} == {(len(PROMPT), 6)}


async def test_closing_fails_running_requests_and_rejects_new_ones(folders: Folders) -> None:
    engine = Engine.load(folders(), CPU)
    streams = EventStreams(engine, asyncio.get_running_loop())
    hold_engine(engine, lambda: engine._closing)
    running = asyncio.create_task(collect_tokens(streams, request(160)))
    await wait_until(lambda: bool(engine.statistics()["running"]))
    await asyncio.to_thread(engine.close)
    with pytest.raises(Fault, match="was closed"):
        await running
    with pytest.raises(Fault, match="is closed"):
        engine.submit(request())


@pytest.mark.parametrize("method", ["prefill", "decode", "copy_row"])
async def test_a_failing_run_ends_its_requests_and_no_others(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    streams = EventStreams(engine, asyncio.get_running_loop())
    cache = engine._scheduler._cache
    original, calls = getattr(cache, method), itertools.count()
    expected = await collect_tokens(streams, request(20))

    def fail_once(*args: object) -> object:
        if next(calls) == 0:
            raise RuntimeError("device is gone")
        return original(*args)

    monkeypatch.setattr(cache, method, fail_once)
    with pytest.raises(Fault, match="device is gone") as failed:
        await collect_tokens(streams, request(20, n=2))
    assert failed.value.kind == "internal"
    assert await asyncio.gather(*(collect_tokens(streams, request(20)) for _ in range(4))) == [expected] * 4
    assert engine.statistics()["running"] == 0


async def test_a_permanent_failure_is_in_the_statistics(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CUDA error is permanent for the process, and so is the end of the engine thread."""
    streams = EventStreams(engine, asyncio.get_running_loop())
    assert await collect_tokens(streams, request(4))
    await wait_until(lambda: engine.statistics()["step_seconds"] == 0.0)
    assert engine.statistics()["failed"] is None

    def broken(*args: object) -> None:
        raise RuntimeError("an illegal memory access")

    monkeypatch.setattr(engine._scheduler, "step", broken)
    monkeypatch.setattr(
        engine, "limits", replace(engine.limits, provider=ExecutionProvider("cuda", "CUDAExecutionProvider"))
    )
    with pytest.raises(Fault, match="illegal memory access"):
        await collect_tokens(streams, request(4))
    assert engine.statistics()["failed"] == "CUDA failed: an illegal memory access"
    monkeypatch.undo()
    monkeypatch.setattr(engine._scheduler, "add", broken)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    engine.submit(request(4))
    await wait_until(lambda: engine.statistics()["failed"].startswith("the engine thread ended: RuntimeError"))


def test_memory_limits_the_number_of_slots(folders: Folders) -> None:
    slot_bytes = 192 * 2 * 2 * 2 * 16 * 4
    engine = Engine.load(folders(), EngineOptions(device="cpu", memory=3 * slot_bytes + 5))
    assert (engine.limits.slots, engine.limits.context) == (3, 192)
    engine.close()
    with pytest.raises(FolderError, match="192 tokens needs 0 MiB"):
        Engine.load(folders(), EngineOptions(device="cpu", memory=slot_bytes - 1))


def test_a_missing_folder_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="never downloaded"):
        Engine.load(tmp_path / "missing", CPU)
