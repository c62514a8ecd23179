"""A second target that is asked because the first one is silent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from dragoman.adapters import dialects
from dragoman.contract.json_types import JsonObject
from tests.proxy.first_target import FirstTarget
from tests.proxy.running_proxy import Answer, Proxy, StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Step, Upstream, Wire

SOON, LATE = 0.05, 30.0
TWO: list[JsonObject] = [{"provider": "p0", "model": "up"}, {"provider": "p1", "model": "up"}]

StartHedged = Callable[..., Awaitable[tuple[Proxy, list[Upstream]]]]


def slow(*steps: Step) -> list[Step]:
    """Wait until the proxy closes the connection."""
    return [*steps, "hang"]


@pytest.fixture
def hedged(proxy: StartProxy, upstream: StartUpstream) -> StartHedged:
    """Start a proxy whose model has the upstreams with these scripts as its targets, in this order."""

    async def start(*scripts: list[Step], after: float = SOON, **config: object) -> tuple[Proxy, list[Upstream]]:
        ups = [await upstream(*script) for script in scripts]
        targets = [{"provider": f"p{number}", "model": "up"} for number, _ in enumerate(ups)]
        models = {"m": {"targets": targets, "hedge_after": after}}
        return await proxy(*ups, random=FirstTarget(), **{"models": models, **config}), ups

    return start


def describe(answer: Answer) -> tuple[int, str | None]:
    return answer.status, answer.headers.get("x-dragoman-hedge")


@pytest.mark.parametrize("stream", [False, True])
async def test_the_second_target_answers_and_the_call_to_the_first_is_cancelled(
    hedged: StartHedged, wire: Wire, stream: bool
) -> None:
    p, (first, second) = await hedged(slow(), [wire.stream if stream else wire.ok, "keep"])
    answer = await p.ask(stream=stream)
    assert describe(answer) == (200, "second")
    if stream:
        assert answer.events[-1] == "[DONE]"
    else:
        assert answer.json["choices"][0]["message"]["content"] == "hello"
    await asyncio.wait_for(first.closed.wait(), 5)
    (line,) = await p.exchanges()
    assert (line["target"], line["hedge"], line["attempts"], line["outcome"]) == ("p1/up", "second", 2, "ok")
    assert len(first.requests) == len(second.requests) == 1


async def test_the_first_target_answers_and_the_call_to_the_second_is_cancelled(
    hedged: StartHedged, wire: Wire
) -> None:
    asked = asyncio.Event()
    p, (_, second) = await hedged([asked, wire.ok, "keep"], slow())
    asking = asyncio.create_task(p.ask())
    await asyncio.wait_for(second.asked.wait(), 5)
    asked.set()
    assert describe(await asking) == (200, "first")
    await asyncio.wait_for(second.closed.wait(), 5)
    (line,) = await p.exchanges()
    assert (line["target"], line["hedge"], line["attempts"]) == ("p0/up", "first", 2)
    assert line["tokens_in"] + line["tokens_out"] == 3


async def test_a_stream_that_has_begun_is_not_hedged(hedged: StartHedged, wire: Wire) -> None:
    goes_on = asyncio.Event()
    head, first, *rest = wire.chunked(wire.token("he"), wire.token("llo", "stop"), b"data: [DONE]\n\n")
    p, (_, second) = await hedged([head, first, goes_on, *rest, "keep"], [wire.stream, "keep"])
    asking = asyncio.create_task(p.ask(stream=True))
    await asyncio.sleep(4 * SOON)
    goes_on.set()
    answer = await asking
    assert (describe(answer), answer.events[-1]) == ((200, None), "[DONE]")
    assert second.requests == []
    (line,) = await p.exchanges()
    assert "hedge" not in line


async def test_it_is_off_by_default(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    first, second = await upstream(4 * SOON, wire.ok, "keep"), await upstream(wire.ok, "keep")
    p = await proxy(first, second, random=FirstTarget())
    assert describe(await p.ask()) == (200, None)
    assert second.requests == []


async def test_a_first_target_that_fails_at_once_has_no_hedge(hedged: StartHedged, wire: Wire) -> None:
    failing = [wire.http(b"{}", status="503 X"), "keep"]
    p, _ = await hedged(failing, [wire.ok, "keep"], after=LATE)
    assert describe(await p.ask()) == (200, None)
    (line,) = await p.exchanges()
    assert (line["target"], line["attempts"]) == ("p1/up", 2)


async def test_if_the_first_target_fails_the_second_goes_on(hedged: StartHedged, wire: Wire) -> None:
    fails, answers = asyncio.Event(), asyncio.Event()
    p, (_, second) = await hedged([fails, wire.http(b"{}", status="503 X"), "keep"], [answers, wire.ok, "keep"])
    asking = asyncio.create_task(p.ask())
    await asyncio.wait_for(second.asked.wait(), 5)
    fails.set()
    await asyncio.sleep(SOON)
    answers.set()
    assert describe(await asking) == (200, "second")


async def test_if_the_second_target_fails_the_first_goes_on(hedged: StartHedged, wire: Wire) -> None:
    answers = asyncio.Event()
    p, (_, second) = await hedged([answers, wire.ok, "keep"], [wire.http(b"{}", status="503 X"), "keep"])
    asking = asyncio.create_task(p.ask())
    await asyncio.wait_for(second.asked.wait(), 5)
    await asyncio.sleep(SOON)
    answers.set()
    assert describe(await asking) == (200, "first")
    (line,) = await p.exchanges()
    assert line["upstream_status"] == 200


async def test_if_both_fail_the_others_are_tried(hedged: StartHedged, wire: Wire) -> None:
    fails = asyncio.Event()
    p, (_, second, _) = await hedged(
        [fails, wire.http(b"{}", status="503 X"), "keep"], [wire.http(b"{}", status="502 X"), "keep"], [wire.ok, "keep"]
    )
    asking = asyncio.create_task(p.ask())
    await asyncio.wait_for(second.asked.wait(), 5)
    fails.set()
    assert (await asking).status == 200
    (line,) = await p.exchanges()
    assert (line["target"], line["hedge"], line["attempts"]) == ("p2/up", "none", 3)


async def test_a_fault_of_the_client_ends_both(hedged: StartHedged, wire: Wire) -> None:
    refuses = asyncio.Event()
    p, (_, second) = await hedged([refuses, wire.http(b'{"error":"x"}', status="400 X"), "keep"], slow())
    asking = asyncio.create_task(p.ask())
    await asyncio.wait_for(second.asked.wait(), 5)
    refuses.set()
    assert (await asking).status == 400
    await asyncio.wait_for(second.closed.wait(), 5)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_ends_both(hedged: StartHedged, stream: bool) -> None:
    p, ups = await hedged(slow(), slow())
    asking = asyncio.create_task(p.ask(stream=stream))
    await asyncio.wait_for(ups[1].asked.wait(), 5)
    asking.cancel()
    for up in ups:
        await asyncio.wait_for(up.closed.wait(), 5)
    (line,) = await p.exchanges()
    assert line["outcome"] == "client_left"


async def test_a_client_that_leaves_the_stream_of_the_second_ends_it(hedged: StartHedged, wire: Wire) -> None:
    head, piece, *_ = wire.chunked(wire.token("he"))
    p, (first, second) = await hedged(slow(), slow(head, piece))
    request = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'
    reader, writer = await asyncio.open_connection("127.0.0.1", p.port)
    lines = "POST /v1/chat/completions HTTP/1.1", "Host: localhost", "Content-Type: application/json"
    writer.write("\r\n".join([*lines, f"Content-Length: {len(request)}", "", ""]).encode() + request)
    await asyncio.wait_for(reader.readuntil(b"he"), 5)
    writer.transport.abort()
    for up in (first, second):
        await asyncio.wait_for(up.closed.wait(), 5)
    (line,) = await p.exchanges()
    assert (line["outcome"], line["target"], line["hedge"]) == ("client_left", "p1/up", "second")


async def test_both_are_late(hedged: StartHedged) -> None:
    p, ups = await hedged(slow(), slow(), timeouts={"first_token": 0.2, "total": 0.3})
    answer = await p.ask()
    assert (answer.status, answer.error["code"]) == (504, "upstream_timeout")
    for up in ups:
        await asyncio.wait_for(up.closed.wait(), 5)


async def test_the_second_falls_silent_after_it_began(hedged: StartHedged, wire: Wire) -> None:
    head, piece, *_ = wire.chunked(wire.token("he"))
    p, _ = await hedged(slow(), slow(head, piece), timeouts={"inter_token": 0.2})
    answer = await p.ask(stream=True)
    assert describe(answer) == (200, "second")
    assert answer.events[-1]["error"]["code"] == "upstream_idle_timeout"


async def test_the_end_of_the_proxy_ends_both(hedged: StartHedged) -> None:
    p, ups = await hedged(slow(), slow(), server={"drain": {"delay": 0.001, "timeout": 0.1}})
    asking = asyncio.create_task(p.ask())
    await asyncio.wait_for(ups[1].asked.wait(), 5)
    stopping = asyncio.create_task(p.running.stop())
    assert (await asking).status == 503
    await stopping
    for up in ups:
        await asyncio.wait_for(up.closed.wait(), 5)


async def test_a_response_whose_headers_are_sent_is_not_hedged(hedged: StartHedged, wire: Wire) -> None:
    goes_on = asyncio.Event()
    p, (_, second) = await hedged([goes_on, wire.stream, "keep"], [wire.stream, "keep"], server={"hold_headers": 0.01})
    asking = asyncio.create_task(p.ask(stream=True))
    await asyncio.sleep(4 * SOON)
    goes_on.set()
    assert (await asking).events[-1] == "[DONE]"
    assert second.requests == []


async def test_the_second_answers_after_the_headers_were_sent(hedged: StartHedged, wire: Wire) -> None:
    goes_on = asyncio.Event()
    p, (first, second) = await hedged(slow(), [goes_on, wire.stream, "keep"], server={"hold_headers": 3 * SOON})
    asking = asyncio.create_task(p.ask(stream=True))
    await asyncio.wait_for(second.asked.wait(), 5)
    await asyncio.sleep(4 * SOON)
    goes_on.set()
    assert (await asking).events[-1] == "[DONE]"
    await asyncio.wait_for(first.closed.wait(), 5)
    (line,) = await p.exchanges()
    assert (line["target"], line["hedge"]) == ("p1/up", "second")


async def test_a_hedge_is_a_retry(hedged: StartHedged, wire: Wire) -> None:
    """The budget for retries admits no second call, nor does the number of attempts."""
    for retries in ({"ratio": 0, "per_second": 0}, {"attempts": 1}):
        p, (_, second) = await hedged([4 * SOON, wire.ok, "keep"], [wire.ok, "keep"], retries=retries)
        assert describe(await p.ask()) == (200, None)
        assert second.requests == []


async def test_a_hedge_is_limited_as_every_call(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    first, second = await upstream(4 * SOON, wire.ok, "keep"), await upstream(wire.ok, "keep")
    limited = {"base_url": f"http://127.0.0.1:{second.port}/v1", "rate": {"requests_per_minute": 1}}
    p = await proxy(first, limited, random=FirstTarget(), models={"m": {"targets": TWO, "hedge_after": SOON}})
    assert [describe(await p.ask()) for _ in range(2)] == [(200, "second"), (200, "first")]
    assert len(second.requests) == 1


async def test_a_busy_provider_and_one_that_pauses_get_no_hedge(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    first, second = await upstream(4 * SOON, wire.ok, "keep"), await upstream("hang")
    busy = {"base_url": f"http://127.0.0.1:{second.port}/v1", "pool": {"connections": 1}}
    models: JsonObject = {"m": {"targets": TWO, "hedge_after": SOON}, "other": {"targets": TWO[1:]}}
    p = await proxy(first, busy, random=FirstTarget(), models=models)
    waiting = asyncio.create_task(p.ask(model="other"))
    await asyncio.wait_for(second.asked.wait(), 5)
    assert describe(await p.ask()) == (200, None)
    assert len(second.requests) == 1
    waiting.cancel()


async def test_the_targets_of_fallbacks_get_no_hedge(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    first, second = await upstream(4 * SOON, wire.ok, "keep"), await upstream(wire.ok, "keep")
    models = {"m": {"targets": TWO[:1], "hedge_after": SOON, "fallbacks": ["other"]}, "other": {"targets": TWO[1:]}}
    p = await proxy(first, second, models=models)
    assert describe(await p.ask()) == (200, None)
    first.script = [wire.http(b"{}", status="503 X"), "keep"]
    assert (await p.ask()).status == 200  # as a fallback it is asked
    assert len(second.requests) == 1


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("path", "body", "end"),
    [
        ("/v1/messages", {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5}, b"message_stop"),
        ("/v1/responses", {"input": "hi", "store": False}, b"response.completed"),
        ("/serving-endpoints/m/invocations", {"messages": [{"role": "user", "content": "hi"}]}, b"[DONE]"),
    ],
)
async def test_every_protocol_is_hedged(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, path: str, body: JsonObject, end: bytes, stream: bool
) -> None:
    """Over a provider that only chats."""
    ups = [await upstream("hang"), await upstream(wire.stream if stream else wire.ok, "keep")]
    models = {"m": {"targets": TWO, "hedge_after": SOON}}
    p = await proxy(*ups, random=FirstTarget(), speak=dialects, models=models)
    given = {"anthropic-version": "2023-06-01"}
    body = {"model": "m", "stream": stream, **body}
    async with p.session.post(f"{p.running.url}{path}", json=body, headers=given) as response:
        answer = await response.read()
    assert (response.status, response.headers.get("x-dragoman-hedge")) == (200, "second")
    assert b"llo" in answer
    assert (end in answer) == stream
    await asyncio.wait_for(ups[0].closed.wait(), 5)


CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
MESSAGES: JsonObject = {"messages": [{"role": "user", "content": "hi"}]}
FUNCTION: JsonObject = {"type": "function", "name": "f", "parameters": {"type": "object"}}


@pytest.mark.parametrize(
    ("path", "body", "is_hedged"),
    [
        (CHAT, MESSAGES, True),
        (CHAT, {**MESSAGES, "store": False}, True),
        (CHAT, {**MESSAGES, "store": True}, False),
        (RESPONSES, {"input": "hi", "store": False}, True),
        (RESPONSES, {"input": "hi", "store": False, "tools": [FUNCTION]}, True),
        (RESPONSES, {"input": "hi", "store": False, "tools": [{"type": "web_search"}]}, False),
        (RESPONSES, {"input": "hi"}, False),
        (RESPONSES, {"input": "hi", "store": True}, False),
    ],
)
@pytest.mark.parametrize("kind", ["memory", "none"])
async def test_what_may_have_effects_twice_is_sent_once(
    proxy: StartProxy, upstream: StartUpstream, path: str, body: JsonObject, is_hedged: bool, kind: str
) -> None:
    """What the store keeps, what the provider keeps, and tools that run there."""
    ups = [await upstream("hang") for _ in TWO]
    both = {"protocols": ["chat", "responses"]}
    p = await proxy(
        *({"base_url": f"http://127.0.0.1:{up.port}/v1", **both} for up in ups),
        speak=dialects,
        models={"m": {"targets": TWO, "hedge_after": SOON}},
        timeouts={"total": 0.3},
        store={"kind": kind},
    )
    async with p.session.post(f"{p.running.url}{path}", json={"model": "m", **body}) as response:
        assert response.status == 504
    (line,) = await p.exchanges()
    assert line["attempts"] == 1 + is_hedged
    assert sum(len(up.requests) for up in ups) == 1 + is_hedged
