"""Large bodies are worked on in a thread, so that other exchanges go on meanwhile."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
from collections.abc import AsyncIterator
from io import BytesIO
from types import SimpleNamespace

import orjson
import pytest

from dragoman.adapters import dialects, long_strings
from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import Attempt, Pipeline
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.proxy.exchange import large_bodies, short_way
from dragoman.proxy.exchange.large_bodies import BodyWorker, is_large
from dragoman.proxy.upstreams import http
from tests.proxy.running_proxy import StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Step, Wire

LONG = "x" * (5 * large_bodies.LARGE)
MODELS: JsonObject = {
    "models": {
        "m": {"targets": [{"provider": "p0", "model": "up"}]},
        "other": {"targets": [{"provider": "p1", "model": "up"}]},
    }
}


@pytest.fixture
async def worker() -> AsyncIterator[BodyWorker]:
    worker = BodyWorker(1, lambda event, **fields: None)
    yield worker
    worker.close()


class Gate:
    """Work that runs until it is let go."""

    def __init__(self) -> None:
        self.has_begun, self.may_end = threading.Event(), threading.Event()
        self.has_ended = False

    def work(self) -> int:
        self.has_begun.set()
        self.may_end.wait(10)
        self.has_ended = True
        return threading.get_ident()

    async def wait_until_begun(self) -> None:
        await asyncio.to_thread(self.has_begun.wait, 10)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"x" * (large_bodies.LARGE + 1), True),
        (b"x" * large_bodies.LARGE, False),
        (b"[" + b"[],{}," * 1_500 + b"0]", True),
        (b'["' + b"a" * 30_000 + b'"]', False),
        (b"[" + b"[]," * 1_500 + b"0]", False),
    ],
)
def test_what_is_large(body: bytes, expected: bool) -> None:
    assert is_large(body) is expected


async def test_the_event_loop_goes_on_meanwhile(worker: BodyWorker) -> None:
    gate = Gate()
    task = asyncio.create_task(worker.run(gate.work))
    await gate.wait_until_begun()
    assert not task.done()
    gate.may_end.set()
    assert await task != threading.get_ident()


async def test_threads_take_turns_quickly_only_as_long_as_there_is_work(worker: BodyWorker) -> None:
    usual = sys.getswitchinterval()
    assert await worker.run(sys.getswitchinterval) < usual
    with pytest.raises(ZeroDivisionError):
        await worker.run(lambda: 1 // 0)
    assert sys.getswitchinterval() == usual


async def test_no_garbage_is_collected_while_a_body_is_worked_on(worker: BodyWorker) -> None:
    assert await worker.run(gc.isenabled) is False
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError):
        await worker.run(lambda: 1 // 0)
    assert gc.isenabled()


async def test_requests_beyond_the_limit_are_refused_and_replies_are_not(worker: BodyWorker) -> None:
    gate = Gate()
    worker.admit()
    first = asyncio.create_task(worker.run(gate.work))
    await gate.wait_until_begun()
    with pytest.raises(Fault, match=r"server\.limits\.large_requests") as caught:
        worker.admit()
    assert (caught.value.status, caught.value.retry_after) == (503, 1.0)
    second = asyncio.create_task(worker.run(lambda: 2))
    gate.may_end.set()
    await first
    assert await second == 2
    worker.admit()


async def test_work_that_runs_ends_before_its_task_does(worker: BodyWorker) -> None:
    gate = Gate()
    task = asyncio.create_task(worker.run(gate.work))
    await gate.wait_until_begun()
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0.01)
        assert not task.done()
    gate.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gate.has_ended


async def test_work_that_waits_is_left_out_if_its_task_is_cancelled(worker: BodyWorker) -> None:
    gate, left_out = Gate(), Gate()
    first = asyncio.create_task(worker.run(gate.work))
    await gate.wait_until_begun()
    second = asyncio.create_task(worker.run(left_out.work))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    gate.may_end.set()
    await first
    await worker.run(lambda: None)
    assert not left_out.has_begun.is_set()


def write_reply(wire: Wire, text: str, index: int = 0) -> bytes:
    choice = {"index": index, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return wire.http(json.dumps({**wire.reply, "choices": [choice]}).encode())


def hold_thread(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> Gate:
    """Make a method wait if the thread for large bodies calls it."""
    gate, method = Gate(), getattr(owner, name)

    def wait(self: object, *args: object) -> object:
        if threading.current_thread() is not threading.main_thread():
            gate.work()
        return method(self, *args)

    monkeypatch.setattr(owner, name, wait)
    return gate


@pytest.mark.parametrize("large", ["request", "second request", "reply", "event"])
async def test_others_are_served_while_a_large_body_is_worked_on(
    large: str, proxy: StartProxy, upstream: StartUpstream, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {
        "request": (Pipeline, "receive"),
        "second request": (Pipeline, "prepare"),
        "reply": (Attempt, "close"),
        "event": (Attempt, "feed"),
    }
    gate = hold_thread(monkeypatch, *places[large])
    scripts: dict[str, list[Step]] = {
        "reply": [write_reply(wire, LONG)],
        "event": wire.chunked(wire.token(LONG), wire.token("", "stop"), b"data: [DONE]\n\n"),
    }
    p = await proxy(await upstream(*scripts.get(large, [wire.ok])), await upstream(wire.ok), speak=dialects, **MODELS)
    messages: JsonValue = [{"role": "user", "content": LONG if "request" in large else "hi"}]
    answer = asyncio.create_task(p.ask(messages=messages, stream=large == "event"))
    await gate.wait_until_begun()
    assert (await p.ask(model="other")).status == 200
    assert not answer.done()
    gate.may_end.set()
    assert (await answer).status == 200
    assert (LONG.encode() in (await answer).text) is ("request" not in large)


async def test_a_request_with_long_strings_is_written_in_slices(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths: list[int] = []

    def dumps(value: JsonValue) -> bytes:
        written = orjson.dumps(value)
        lengths.append(len(written))
        return written

    for module in (long_strings, http):
        monkeypatch.setattr(module, "orjson", SimpleNamespace(**{**vars(orjson), "dumps": dumps}))
    up = await upstream(wire.ok)
    messages = [{"role": "user", "content": "é" * 2_500_000}]
    body = BytesIO(orjson.dumps({"model": "m", "messages": messages}))
    p = await proxy(up, speak=dialects)
    async with p.session.post(p.url, data=body, headers={"Content-Type": "application/json"}) as response:
        assert response.status == 200
    assert up.bodies == [{"model": "up", "messages": messages}]
    assert max(lengths) < 600_000


async def test_large_replies_to_several_calls_are_joined(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    up = await upstream(write_reply(wire, LONG))
    p = await proxy(up, speak=dialects, models={"m": {"targets": [{"provider": "p0", "model": "up", "lacks": ["n"]}]}})
    answer = await p.ask(n=3)
    assert [choice["message"]["content"] for choice in json.loads(answer.text)["choices"]] == [LONG] * 3


async def test_what_is_wrong_in_a_large_body_is_answered_as_in_a_small_one(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    p = await proxy(await upstream(wire.http(b'{"choices": %s' % LONG.encode())), speak=dialects)
    wrong = await p.ask(user=LONG, temperature="hot")
    assert (wrong.status, wrong.error["param"]) == (400, "temperature")
    broken = await p.ask()
    assert (broken.status, broken.error["code"]) == (502, "upstream_invalid_json")


async def test_a_body_of_many_values_is_not_parsed_in_the_event_loop(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(short_way, "read_plain_object", lambda *args: pytest.fail("it was parsed"))
    p = await proxy(await upstream(wire.ok), speak=dialects)
    assert (await p.ask(stop=[""] * 30_000)).status == 400


async def test_a_client_that_leaves_ends_its_exchange_after_the_work(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    up = await upstream(wire.ok)
    p = await proxy(up, speak=dialects)
    gate = hold_thread(monkeypatch, Pipeline, "receive")
    answer = asyncio.create_task(p.ask(user=LONG))
    await gate.wait_until_begun()
    answer.cancel()
    await asyncio.sleep(0.05)
    assert p.running.request_count == 1
    gate.may_end.set()
    (line,) = await p.exchanges()
    assert (line["outcome"], up.requests) == ("client_left", [])


async def test_a_large_request_that_waits_too_long_is_refused(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    p = await proxy(await upstream(wire.ok), speak=dialects, server={"body_timeout": 0.2})
    gate = hold_thread(monkeypatch, Pipeline, "receive")
    first = asyncio.create_task(p.ask(user=LONG))
    await gate.wait_until_begun()
    second = await p.ask(user=LONG)
    assert (second.status, second.error["code"]) == (503, "overloaded")
    gate.may_end.set()
    assert (await first).status == 503
