"""While large requests are refused, a process judges them first; what it says is what the proxy itself would say."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, TypeAlias, cast

import orjson
import pytest

from dragoman.adapters import dialects, jsontext
from dragoman.adapters.call import Call
from dragoman.adapters.faults import Fault
from dragoman.adapters.long_values import LongValue
from dragoman.adapters.pipeline import Pipeline, pipeline
from dragoman.adapters.routes import Route, RouteTable
from dragoman.contract.json_types import JsonObject
from dragoman.proxy.exchange import body_judge, short_way
from dragoman.proxy.exchange.body_judge import BodyJudge
from dragoman.proxy.exchange.judge_process import judge, read_fault
from dragoman.proxy.http.large_body import LargeBody
from tests.proxy.running_proxy import Answer, Proxy, StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Wire
from tools.hostile_bodies import Hostile, draw_bodies

LONG = "x" * 300_000
QUESTION: JsonObject = {
    "dialect": "openai",
    "profile": dialects["openai"].served_profile,
    "path": "/v1/chat/completions",
}
QUESTION |= {"method": "POST", "query": {}, "headers": [], "value_limit": 60_000}
Connection: TypeAlias = tuple[socket.socket, subprocess.Popen[bytes]]
PROCESS = "dragoman.proxy.exchange.judge_process"


def judge_of(proxy: Proxy) -> BodyJudge:
    return proxy.running._gateway.worker._judge


async def wait_until(is_so: Callable[[], bool]) -> None:
    for _ in range(2_000):
        if is_so():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never became so")


async def ask_wrong(proxy: Proxy) -> Answer:
    return await proxy.ask(user=LONG, temperature="hot")


@pytest.fixture
async def judging(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> Proxy:
    """A proxy to which a large request has come that it refused."""
    p = await proxy(await upstream(wire.ok), speak=dialects)
    assert (await ask_wrong(p)).status == 400
    await wait_until(lambda: judge_of(p).is_ready)
    return p


def forbid_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make it a defect if the thread for large bodies reads a request."""
    receive = Pipeline.receive

    def check(self: Pipeline, *args: Any) -> object:
        assert threading.current_thread() is threading.main_thread()
        return receive(self, *args)

    monkeypatch.setattr(Pipeline, "receive", check)


# What it says


def bodies() -> Iterator[Hostile]:
    return islice(draw_bodies(Random(7), 3_000, 100_000, ("m",)), 300)


def render(route: Route, call: Call, fault: Fault) -> JsonObject:
    reply = Pipeline(route, call).render_fault(fault)
    return {"status": reply.status, "headers": dict(reply.headers), "body": reply.body}


def test_the_process_answers_hostile_bodies_as_the_proxy_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsontext, "PART", 50)
    routes, refused, cut = RouteTable(dialects, {}), 0, 0
    for body in bodies():
        question = {**QUESTION, "dialect": body.dialect, "profile": dialects[body.dialect].served_profile}
        text = judge({**question, "path": body.path, "value_limit": 3_000}, body.data)
        assert len(text) < 100_000, body.name
        answer = orjson.loads(text)
        said = read_fault(answer) if isinstance(answer, dict) else None
        route = routes.match(body.path)
        assert route is not None
        call = Call("POST", route.strip_prefix(body.path), {})
        try:
            request = Pipeline(route, call).receive(body.data, value_limit=3_000)
            assert said is None, body.name
            found = [LongValue(*one) for one in answer]
            assert Pipeline(route, call).receive_right(body.data, lambda model: None, found) == request, body.name
            cut += bool(found)
        except Fault as fault:
            assert said is not None, body.name
            assert render(route, call, said) == render(route, call, fault), body.name
            assert (said.code, said.kind, said.message) == (fault.code, fault.kind, fault.message)
            refused += 1
    assert refused > 200
    assert cut


def test_what_the_configuration_decides_is_not_judged() -> None:
    path = "/serving-endpoints/m/invocations"
    question = {**QUESTION, "dialect": "databricks", "profile": dialects["databricks"].served_profile, "path": path}
    assert judge(question, b'{"input": "hi"}') == b"[]"
    assert judge({**question, "path": "/nowhere"}, b"[") == b"null"
    assert json.loads(judge(question, b'{"input": '))["code"] == "invalid_json"


def test_headers_count_that_are_not_unicode() -> None:
    headers = [("X-Api-Key", "\udcff"), ("extra-parameters", "drop")]
    question = json.loads(json.dumps({**QUESTION, "headers": headers}))
    assert json.loads(judge(question, b"[]"))["code"] == "invalid_type"


# When it runs


async def test_only_a_refused_large_request_starts_the_process(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    p = await proxy(await upstream(wire.ok), speak=dialects)
    assert (await p.ask(user=LONG)).status == 200
    assert (await p.ask(temperature="hot")).status == 400
    assert not judge_of(p)._is_wanted
    assert (await ask_wrong(p)).status == 400
    await wait_until(lambda: judge_of(p).is_ready)


async def test_the_process_refuses_what_the_thread_would(judging: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    before = await judging.exchanges(1)
    forbid_thread(monkeypatch)
    answer = await ask_wrong(judging)
    assert (answer.status, answer.error["param"], answer.error["code"]) == (400, "temperature", "invalid_type")
    after = await judging.exchanges(2)
    for name in ("status", "outcome", "fault", "fault_kind", "message", "request_bytes"):
        assert before[0].get(name) == after[1].get(name), name


async def test_what_the_process_refuses_is_never_joined(judging: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[LargeBody] = []
    monkeypatch.setattr(LargeBody, "take", lambda self: pytest.fail("it was joined"))
    monkeypatch.setattr(LargeBody, "drop", lambda self: dropped.append(self))
    answer = await judging.ask(user="x" * 900_000, temperature="hot")
    assert (answer.status, answer.error["code"]) == (400, "invalid_type")
    assert len(dropped) == 1


async def test_a_large_body_that_the_process_admits_is_served(judging: Proxy) -> None:
    assert (await judging.ask(user="x" * 900_000)).status == 200


async def test_what_the_process_admits_is_served(judging: Proxy) -> None:
    assert (await judging.ask(user=LONG)).status == 200


async def test_the_process_judges_smaller_requests_of_many_values(
    judging: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((short_way, "read_plain_object"), (Pipeline, "receive"), (Pipeline, "receive_object")):
        monkeypatch.setattr(module, name, lambda *_: pytest.fail("the proxy read it"))
    answer = await judging.ask(stop={f"unknown key {number:20}": number for number in range(400)})
    assert (answer.status, answer.error["param"]) == (400, "stop")


async def test_without_the_process_the_event_loop_does_not_say_what_is_wrong_with_them(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    explain, threads = jsontext._explain, []

    def watch(*arguments: Any) -> Fault:
        threads.append(threading.current_thread())
        return explain(*arguments)

    monkeypatch.setattr(jsontext, "_explain", watch)
    p = await proxy(await upstream(wire.ok), speak=dialects)
    body = b'{"model": "m", "stop": [%b1]}' % (b"1e400," * 2_000)
    async with p.session.post(p.url, data=body, headers={"content-type": "application/json"}) as response:
        assert (response.status, (await response.json())["error"]["code"]) == (400, "number_out_of_range")
    assert [one.name.startswith("large-bodies") for one in threads] == [True]


async def test_what_the_process_has_checked_is_not_checked_again(
    judging: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "read_object", lambda *_: pytest.fail("it is checked"))
    assert (await judging.ask(user="x" * 900_000)).status == 200


async def test_what_the_process_does_not_know_is_checked(judging: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_judge._Process, "ask", lambda *_: None)
    body = b'{"model": "m", "model": "m"}' + b" " * 300_000
    async with judging.session.post(judging.url, data=body, headers={"content-type": "application/json"}) as response:
        assert (response.status, (await response.json())["error"]["code"]) == (400, "duplicate_key")


async def test_the_process_ends_once_nothing_is_refused(judging: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_judge, "CALM", 0.05)
    process = judge_of(judging)._process
    assert process is not None
    assert (await ask_wrong(judging)).status == 400
    await wait_until(lambda: not judge_of(judging).is_ready)
    await wait_until(lambda: process._popen.poll() is not None)
    monkeypatch.undo()
    assert (await judging.ask(user=LONG)).status == 200
    assert (await ask_wrong(judging)).status == 400
    await wait_until(lambda: judge_of(judging).is_ready)


async def test_the_request_that_ends_the_process_is_refused_and_no_other(judging: Proxy) -> None:
    process = judge_of(judging)._process
    assert process is not None
    process._popen.kill()
    process._popen.wait()
    answer = await judging.ask(user=LONG)
    assert (answer.status, answer.error["code"]) == (503, "overloaded")
    assert int(answer.headers["retry-after"]) == 1
    assert [line["reason"] for line in judging.lines if line["event"] == "body_judge"] == ["it has ended"]
    assert (await judging.ask(user=LONG)).status == 200
    assert (await ask_wrong(judging)).status == 400
    await wait_until(lambda: judge_of(judging).is_ready)


def read_environment(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="SCHED_BATCH and large pages on request are of Linux")
async def test_the_process_never_interrupts_others_and_asks_for_large_pages(judging: Proxy) -> None:
    process = judge_of(judging)._process
    assert process is not None
    pid = process._popen.pid
    assert os.sched_getscheduler(pid) == os.SCHED_BATCH
    assert os.getpriority(os.PRIO_PROCESS, pid) > os.getpriority(os.PRIO_PROCESS, 0)
    assert b"glibc.malloc.hugetlb=" in read_environment(pid)


async def test_a_process_that_does_not_answer_is_ended(judging: Proxy) -> None:
    process = judge_of(judging)._process
    assert process is not None
    process.limit_waiting(0.05)
    os.kill(process._popen.pid, signal.SIGSTOP)
    assert (await judging.ask(user=LONG)).status == 503
    assert process._popen.poll() == -signal.SIGKILL
    assert (await judging.ask(user=LONG)).status == 200


@pytest.mark.parametrize("command", [("/nowhere",), (sys.executable, "-c", "")])
async def test_without_the_process_the_thread_does_all(
    command: tuple[str, ...], proxy: StartProxy, upstream: StartUpstream, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_judge, "_COMMAND", command)
    p = await proxy(await upstream(wire.ok), speak=dialects)
    for _ in range(3):
        assert (await ask_wrong(p)).status == 400
        await wait_until(lambda: any(line["event"] == "body_judge" for line in p.lines))
    assert (await p.ask(user=LONG)).status == 200
    assert [line["reason"] for line in p.lines if line["event"] == "body_judge"] == ["it does not start"]


# Its life


@pytest.fixture
def connection() -> Iterator[Connection]:
    own, other = socket.socketpair()
    with own, other, subprocess.Popen([sys.executable, "-P", "-m", PROCESS], stdin=other.fileno()) as process:
        other.close()
        own.settimeout(20)
        assert own.recv(64)  # it has begun
        yield own, process
        process.kill()


@pytest.mark.parametrize("sent", [b"", b"\0\0\0", b"\0\0\0\2\0\0\0\2{}"])
def test_the_process_ends_with_the_proxy(
    sent: bytes, connection: tuple[socket.socket, subprocess.Popen[bytes]]
) -> None:
    own, process = connection
    own.sendall(sent)
    own.close()
    assert process.wait(20) == 0


def test_signals_for_the_proxy_do_not_end_the_process(connection: Connection) -> None:
    own, process = connection
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    head = json.dumps(QUESTION).encode()
    own.sendall(len(head).to_bytes(4, sys.byteorder) + (2).to_bytes(4, sys.byteorder) + head + b"[]")
    assert b"invalid_type" in own.recv(4096)


def test_all_pieces_are_sent_in_order_however_few_bytes_the_system_takes() -> None:
    taken = bytearray()

    def take(pieces: Iterable[bytes | memoryview]) -> int:
        data = b"".join(pieces)[: len(taken) % 7 + 1]
        taken.extend(data)
        return len(data)

    process = body_judge._Process.__new__(body_judge._Process)
    process._socket = cast(socket.socket, SimpleNamespace(sendmsg=take))
    pieces = [b"%d" % number * (number % 5) for number in range(3_000)]
    process._send(deque(pieces))
    assert bytes(taken) == b"".join(pieces)
