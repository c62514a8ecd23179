"""Which target is tried after which, and when there is no further attempt."""

from __future__ import annotations

import asyncio

import pytest

from tests.proxy.first_target import FirstTarget
from tests.proxy.running_proxy import StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Upstream, Wire

DOWN = {"base_url": "http://127.0.0.1:1/v1"}


async def _failing(upstream: StartUpstream, wire: Wire, status: str) -> Upstream:
    return await upstream(wire.http(b"{}", status=status), "keep")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", ["408 X", "429 X", "500 X", "502 X", "503 X", "529 X", "401 X"])
async def test_another_target_is_asked(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, status: str, stream: bool
) -> None:
    first = await _failing(upstream, wire, status)
    second = await upstream(wire.stream if stream else wire.ok)
    p = await proxy(first, second, random=FirstTarget())
    assert (await p.ask(stream=stream)).status == 200
    (line,) = await p.exchanges()
    assert (line["attempts"], line["target"], line["outcome"]) == (2, "p1/up", "ok")


@pytest.mark.parametrize("status", ["400 X", "404 X", "409 X", "413 X", "422 X"])
async def test_a_request_at_fault_is_not_passed_around(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, status: str
) -> None:
    first, second = await _failing(upstream, wire, status), await upstream(wire.ok)
    p = await proxy(first, second, random=FirstTarget())
    assert (await p.ask()).status == int(status[:3])
    assert second.connections == 0


async def test_a_silent_target_is_left(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    for stream in (False, True):
        first, second = await upstream("hang"), await upstream(wire.stream if stream else wire.ok)
        hasty = {"base_url": f"http://127.0.0.1:{first.port}/v1", "timeouts": {"first_token": 0.1, "total": 0.2}}
        p = await proxy(hasty, second, random=FirstTarget())
        assert (await p.ask(stream=stream)).status == 200
        await asyncio.wait_for(first.closed.wait(), 1)


async def test_all_tries_together_have_one_deadline(proxy: StartProxy, upstream: StartUpstream) -> None:
    ups = [await upstream("hang") for _ in range(3)]
    p = await proxy(*ups, random=FirstTarget(), timeouts={"first_token": 0.2, "total": 0.3})
    for count, (stream, asked) in enumerate([(False, 1), (True, 2)], 1):
        answer = await p.ask(stream=stream)
        assert (answer.status, answer.error["code"]) == (504, "upstream_timeout")
        assert (await p.exchanges(count))[-1]["attempts"] <= asked
    assert ups[2].connections == 0


async def test_a_broken_connection_gets_a_second_try(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    up = await upstream(wire.ok)  # it closes the connection after each reply, without saying so
    p = await proxy(up)
    up.script = ["reset"]
    task = asyncio.create_task(p.ask())
    await up.asked.wait()
    up.script = [wire.ok]
    assert (await task).status == 200
    assert (await p.exchanges())[0]["attempts"] == 2


async def test_there_are_three_attempts_at_most(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    ups = [await _failing(upstream, wire, "503 X") for _ in range(5)]
    p = await proxy(*ups, random=FirstTarget())
    assert (await p.ask()).status == 503
    assert [len(up.requests) for up in ups] == [1, 1, 1, 0, 0]


async def test_nothing_is_asked_after_the_first_byte(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    first, second = await upstream(*wire.chunked(wire.token("a"))), await upstream(wire.stream)
    p = await proxy(first, second, random=FirstTarget())
    assert (await p.ask(stream=True)).events[-1]["error"]["code"] == "upstream_truncated"
    assert second.connections == 0


async def test_targets_that_lack_something_are_skipped(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    able = await upstream(wire.ok, "keep")
    targets = [
        {"provider": "p0", "model": "up", "lacks": ["tools", "seed"]},
        {"provider": "p1", "model": "up", "weight": 0},
    ]
    p = await proxy(DOWN, able, models={"m": {"targets": targets}})
    assert (await p.ask(tools=[])).status == 200
    assert (await p.exchanges())[0]["attempts"] == 1


async def test_the_first_reason_is_told_where_no_target_is_able(proxy: StartProxy) -> None:
    targets = [
        {"provider": "p0", "model": "up", "lacks": ["seed"]},
        {"provider": "p0", "model": "up", "lacks": ["seed"]},
    ]
    answer = await (await proxy(DOWN, models={"m": {"targets": targets}})).ask(seed=1)
    assert (answer.status, answer.error["param"], answer.error["code"]) == (400, "seed", "unsupported_parameter")


async def test_fallback_models_come_last(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    up = await upstream(wire.ok, "keep")
    models = {
        "m": {"targets": [{"provider": "p0"}], "fallbacks": ["n", "m"]},
        "n": {"targets": [{"provider": "p1"}], "fallbacks": ["m"]},
    }
    p = await proxy(DOWN, up, models=models)
    assert (await p.ask()).status == 200
    assert up.bodies[0]["model"] == "n"
