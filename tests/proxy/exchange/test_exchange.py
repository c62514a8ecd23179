from __future__ import annotations

from uuid import UUID

import pytest

from tests.proxy.running_proxy import StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Wire


async def test_a_request_goes_to_the_upstream_and_its_reply_comes_back(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    up = await upstream(wire.ok, "keep")
    answer = await (await proxy(up)).ask()
    assert (answer.status, answer.json) == (200, wire.reply)
    assert up.bodies == [{"model": "up", "messages": [{"role": "user", "content": "hi"}]}]
    assert up.requests[0].startswith(b"POST /v1/chat/completions HTTP/1.1\r\n")


async def test_a_stream_comes_back_as_a_stream(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    up = await upstream(wire.stream, "keep")
    answer = await (await proxy(up)).ask(stream=True)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/event-stream"
    assert "".join(event["choices"][0]["delta"]["content"] for event in answer.events[:-1]) == "hello"
    assert answer.events[-1] == "[DONE]"


async def test_connections_to_the_upstream_are_used_again(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    up = await upstream(wire.ok, "keep")
    p = await proxy(up)
    for _ in range(3):
        assert (await p.ask()).status == 200
    streams = await upstream(*wire.chunked(wire.token("x", "stop"), b"data: [DONE]\n\n"), "keep")
    p = await proxy(streams)
    for _ in range(3):
        assert (await p.ask(stream=True)).status == 200
    assert (up.connections, streams.connections) == (1, 1)


async def test_a_whole_reply_to_a_stream_request_is_streamed(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    up = await upstream(wire.ok, "keep")
    answer = await (await proxy(up)).ask(stream=True)
    assert answer.headers["Content-Type"] == "text/event-stream"
    assert answer.events[0]["choices"][0]["delta"]["content"] == "hello"
    assert answer.events[-1] == "[DONE]"


@pytest.mark.parametrize("stream", [False, True])
async def test_only_harmless_headers_reach_the_upstream(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, stream: bool
) -> None:
    up = await upstream(wire.stream if stream else wire.ok, "keep")
    settings = {"base_url": f"http://127.0.0.1:{up.port}/v1", "api_key": "sk-upstream", "headers": {"X-Team": "a"}}
    p = await proxy(settings, keys=[{"name": "me", "key": "sk-mine"}])
    sent = {
        "Authorization": "Bearer sk-mine",
        "Cookie": "a=b",
        "X-Forwarded-Host": "evil",
        "traceparent": "00-1",
        "x-request-id": "abc",
        "X-Other": "1",
    }
    assert (await p.ask(stream=stream, headers=sent)).status == 200
    head = up.requests[0].partition(b"\r\n\r\n")[0].decode().lower().split("\r\n")[1:]
    got = dict(line.split(": ", 1) for line in head)
    assert got["authorization"] == "bearer sk-upstream"
    assert got["accept-encoding"] == "identity"
    assert got["x-request-id"] == "abc"
    assert set(got) == {
        "host",
        "authorization",
        "content-type",
        "content-length",
        "accept",
        "accept-encoding",
        "user-agent",
        "traceparent",
        "x-request-id",
        "x-team",
    }


async def test_losses_show_in_a_header(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    up = await upstream(wire.ok, "keep")
    p = await proxy(up, policy={"extra_parameters": "drop"})
    answer = await p.ask(extra=1)
    assert answer.headers["x-dragoman-changes"].startswith('dropped;path="extra"')
    assert "x-dragoman-changes" not in (await p.ask()).headers
    assert (await p.exchanges(2))[0]["changes"][0]["action"] == "dropped"


async def test_headers_that_the_providers_clients_rely_on_come_back(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    up = await upstream(wire.http(b'{"choices":[]}', "X-RateLimit-Left: 7", "Set-Cookie: a=b", "X-Internal: 1"), "keep")
    answer = await (await proxy(up)).ask()
    assert answer.headers["x-ratelimit-left"] == "7"
    assert not {"Set-Cookie", "X-Internal"} & set(answer.headers)
    assert answer.headers["Server"] == "dragoman"


@pytest.mark.parametrize(("given", "kept"), [("abc.DEF-1:2_3", True), ("a b", False), ("x" * 129, False), ("é", False)])
async def test_request_ids(proxy: StartProxy, given: str, kept: bool) -> None:
    answer = await (await proxy()).ask(headers={"x-request-id": given})
    identity = answer.headers["x-request-id"]
    assert (identity == given) is kept
    assert kept or UUID(identity).version == 4


async def test_a_defect_is_told_to_the_log_only(proxy: StartProxy) -> None:
    p = await proxy()
    answer = await p.ask(broken=True)
    assert (answer.status, answer.error["code"]) == (500, "internal_error")
    assert b"canary" not in answer.text
    assert any(line["event"] == "defect" and "Traceback" in line["exception"] for line in p.lines)
    assert (await p.ask()).error["code"] == "model_not_found"


async def test_the_log_has_one_line_for_each_exchange(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    up = await upstream(wire.ok, "keep")
    p = await proxy(up, keys=[{"name": "ci", "key": "sk-canary-mine"}])
    await p.ask(headers={"api-key": "sk-canary-mine", "x-request-id": "r1"})
    (line,) = await p.exchanges()
    assert line.pop("duration_ms") > 0
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "exchange",
        "level": "info",
        "request_id": "r1",
        "path": "/v1/chat/completions",
        "client": "127.0.0.1",
        "key": "ci",
        "dialect": "openai",
        "protocol": "chat",
        "model": "m",
        "target": "p0/up",
        "attempts": 1,
        "status": 200,
        "outcome": "ok",
        "stream": False,
        "upstream_status": 200,
        "events": 0,
        "bytes": line["bytes"],
        "tokens_in": 1,
        "tokens_out": 2,
    }
