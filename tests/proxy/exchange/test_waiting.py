"""What an exchange waits for besides its provider's answer: a free connection, the first byte, the client."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.proxy.first_target import FirstTarget
from tests.proxy.running_proxy import StartProxy
from tests.proxy.scripted_upstream import REPLY, StartUpstream, Wire, http


def limited(port: int, **pool: object) -> dict[str, object]:
    return {"base_url": f"http://127.0.0.1:{port}/v1", "pool": {"connections": 1, **pool}}


@pytest.mark.parametrize("stream", [False, True])
async def test_calls_beyond_the_pool_wait_for_their_turn(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, stream: bool
) -> None:
    up = await upstream(0.05, wire.stream if stream else wire.ok, "keep")
    p = await proxy(limited(up.port))
    answers = await asyncio.gather(*(p.ask(stream=stream) for _ in range(4)))
    assert [answer.status for answer in answers] == [200] * 4
    assert up.connections == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_that_finds_no_free_connection_says_so(
    proxy: StartProxy, upstream: StartUpstream, stream: bool
) -> None:
    up = await upstream("hang")
    p = await proxy(limited(up.port, queue_timeout=0.1))
    first = asyncio.create_task(p.ask())
    await up.asked.wait()
    answer = await p.ask(stream=stream)
    assert (answer.status, answer.error["code"]) == (503, "upstream_busy")
    assert "no connection to the upstream was free for 0.1 s" in answer.error["message"]
    assert len(up.requests) == 1
    first.cancel()


async def test_a_full_queue_is_refused_at_once(proxy: StartProxy, upstream: StartUpstream) -> None:
    up = await upstream("hang")
    p = await proxy(limited(up.port, queue=0))
    first = asyncio.create_task(p.ask())
    await up.asked.wait()
    answer = await p.ask()
    assert (answer.status, answer.error["code"], answer.headers["retry-after"]) == (503, "upstream_busy", "1")
    first.cancel()


async def test_a_busy_provider_is_passed_by(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    up, other = await upstream("hang"), await upstream(wire.ok)
    p = await proxy(limited(up.port, queue=0), other, random=FirstTarget())
    first = asyncio.create_task(p.ask())
    await up.asked.wait()
    assert (await p.ask()).status == 200
    assert len(other.requests) == 1
    first.cancel()


async def test_a_place_is_free_again_after_a_client_has_left(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    up = await upstream("hang")
    p = await proxy(limited(up.port))
    first = asyncio.create_task(p.ask())
    await up.asked.wait()
    first.cancel()
    await up.closed.wait()
    up.script = [wire.ok]
    assert (await p.ask()).status == 200


async def test_a_target_that_sends_no_byte_in_time_is_left(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    first, second = await upstream("hang"), await upstream(wire.ok)
    hasty = {"base_url": f"http://127.0.0.1:{first.port}/v1", "timeouts": {"first_byte": 0.1}}
    p = await proxy(hasty, second, random=FirstTarget())
    assert (await p.ask()).status == 200
    await asyncio.wait_for(first.closed.wait(), 1)


async def test_the_first_byte_is_not_the_whole_reply(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    up = await upstream(wire.ok[:60], 0.4, wire.ok[60:])
    p = await proxy({"base_url": f"http://127.0.0.1:{up.port}/v1", "timeouts": {"first_byte": 0.2}})
    assert wire.ok[:60].count(b"\r\n\r\n") == 0  # it is a part of the head
    answer = await p.ask()
    assert (answer.status, answer.error["code"]) == (504, "upstream_timeout")
    up.script = [wire.ok[:-10], 0.4, wire.ok[-10:]]
    assert (await p.ask()).status == 200


async def test_a_client_that_reads_slowly_gets_everything(proxy: StartProxy, upstream: StartUpstream) -> None:
    reply = json.loads(json.dumps(REPLY))
    reply["choices"][0]["message"]["content"] = "x" * 20_000_000
    p = await proxy(await upstream(http(json.dumps(reply).encode()), "keep"), server={"write_stall": 1.0})
    reader, writer = await asyncio.open_connection("127.0.0.1", p.port, limit=1)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    writer.write(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    received = 0
    while received < 20_000_000:  # the pauses add up to twice the limit
        data = await reader.read(1_000_000)
        assert data
        if received // 2_000_000 != (received + len(data)) // 2_000_000:
            await asyncio.sleep(0.2)
        received += len(data)
    writer.close()
    assert (await p.exchanges())[0]["outcome"] == "ok"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_flood_of_interim_responses_is_given_up(
    proxy: StartProxy, upstream: StartUpstream, stream: bool
) -> None:
    up = await upstream(b"HTTP/1.1 100 Continue\r\n\r\n" * 40_000, "hang")
    answer = await (await proxy(up)).ask(stream=stream)
    assert (answer.status, answer.error["code"]) == (502, "upstream_protocol_error")
    await asyncio.wait_for(up.closed.wait(), 2)


async def test_interim_responses_one_by_one_are_given_up_too(proxy: StartProxy, upstream: StartUpstream) -> None:
    script: list[bytes | float | str] = []
    for _ in range(30):
        script += [b"HTTP/1.1 100 Continue\r\n\r\n", 0.002]
    answer = await (await proxy(await upstream(*script, "hang"))).ask()
    assert (answer.status, answer.error["code"]) == (502, "upstream_protocol_error")


@pytest.mark.parametrize("header", [{"x-request-timeout": "0.2"}, {"x-envoy-expected-rq-timeout-ms": "200"}])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_says_how_long_it_waits_is_answered_by_then(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, header: dict[str, str], stream: bool
) -> None:
    silent, other = await upstream("hang"), await upstream(wire.ok)
    p = await proxy(silent, other, random=FirstTarget())
    answer = await p.ask(stream=stream, headers=header)
    assert (answer.status, answer.error["code"]) == (504, "upstream_timeout")
    assert "did not end within 0.2" in answer.error["message"]
    assert other.connections == 0  # no time is left for it
    await asyncio.wait_for(silent.closed.wait(), 1)


@pytest.mark.parametrize("value", ["soon", "-1", "0", "nan", "1e5", ""])
async def test_a_deadline_that_is_no_time_is_refused(proxy: StartProxy, upstream: StartUpstream, value: str) -> None:
    answer = await (await proxy(await upstream("hang"))).ask(headers={"x-request-timeout": value})
    assert (answer.status, answer.error["code"]) == (400, "invalid_header")
