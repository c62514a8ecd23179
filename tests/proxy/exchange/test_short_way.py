"""Most exchanges take the short way, and where it ends the exchange goes on with what was done."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.pipeline import Pipeline
from dragoman.proxy.exchange import exchange, short_way
from dragoman.proxy.http.aiohttp_responses import ChunkedResponse
from tests.proxy.running_proxy import StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Step, Wire

SMALL_POOL = {"pool": {"connections": 1, "queue": 0}}


def forbid_the_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **options: Any) -> None:
        raise AssertionError("the long way")

    monkeypatch.setattr(exchange, "Pipeline", fail)


def provide(port: int, **settings: Any) -> dict[str, Any]:
    return {"base_url": f"http://127.0.0.1:{port}/v1", "api_key": "sk-upstream-0123456789abcdef", **settings}


@pytest.mark.parametrize("keys", [[], [{"name": "me", "key": "sk-mine"}]])
async def test_a_plain_exchange_needs_no_pipeline(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, monkeypatch: pytest.MonkeyPatch, keys: list[Any]
) -> None:
    up = await upstream(wire.ok, "keep")
    p = await proxy(provide(up.port), keys=keys)
    forbid_the_long_way(monkeypatch)
    for _ in range(3):
        answer = await p.ask(max_tokens=5, headers={"Authorization": "Bearer sk-mine"})
        assert (answer.status, answer.json) == (200, wire.reply)
    for line in await p.exchanges(3):
        assert (line["outcome"], line["attempts"], line["target"]) == ("ok", 1, "p0/up")
        assert (line["model"], line["upstream_status"], line["status"]) == ("m", 200, 200)
    assert up.connections == 1


async def test_a_body_that_comes_after_its_head_needs_no_pipeline(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most HTTP libraries write head and body apart. The head is known from the second request on."""
    p = await proxy(provide((await upstream(wire.ok, "keep")).port))
    forbid_the_long_way(monkeypatch)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", p.running.port)
    for _ in range(3):
        for part in (head + b"Content-Length: %d\r\n\r\n" % len(body), body[:20], body[20:]):
            writer.write(part)
            await asyncio.sleep(0.02)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        assert json.loads(await reader.readexactly(length)) == wire.reply
    writer.close()
    await writer.wait_closed()
    assert [line["outcome"] for line in await p.exchanges(3)] == ["ok"] * 3


async def test_a_body_that_does_not_come_is_a_fault_of_the_client(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    p = await proxy(provide((await upstream(wire.ok, "keep")).port), server={"body_timeout": 0.1})
    reader, writer = await asyncio.open_connection("127.0.0.1", p.running.port)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    writer.write(head + b"Content-Length: 20\r\n\r\n{")
    assert (await reader.readline()).startswith(b"HTTP/1.1 408 ")
    writer.close()
    await writer.wait_closed()
    (line,) = await p.exchanges(1)
    assert (line["fault"], line["attempts"]) == ("request_timeout", 0)


async def test_a_response_that_is_not_kept_needs_no_pipeline(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    p = await proxy(provide((await upstream(wire.ok, "keep")).port), speak=dialects)
    forbid_the_long_way(monkeypatch)
    body = {"model": "m", "input": "hi", "store": False}
    async with p.session.post(f"{p.running.url}/v1/responses", json=body) as response:
        assert (response.status, (await response.json())["store"]) == (200, False)
    (line,) = await p.exchanges(1)
    assert (line["protocol"], line["outcome"], line["attempts"]) == ("responses", "ok", 1)


async def test_a_response_that_is_kept_needs_no_pipeline(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each key finds what it has stored, and nothing else."""
    up = await upstream(wire.ok, "keep")
    keys = [{"name": name, "key": f"sk-{name}"} for name in ("mine", "yours")]
    p = await proxy(provide(up.port), speak=dialects, keys=keys, store={"kind": "memory"})
    forbid_the_long_way(monkeypatch)
    url, mine, yours = f"{p.running.url}/v1/responses", *({"authorization": f"Bearer sk-{one['name']}"} for one in keys)
    async with p.session.post(url, json={"model": "m", "input": "hi"}, headers=mine) as response:
        given = await response.json()
        assert (response.status, given["store"]) == (200, True)
    monkeypatch.undo()
    async with p.session.get(f"{url}/{given['id']}", headers=mine) as response:
        assert await response.json() == given
    async with p.session.get(f"{url}/{given['id']}", headers=yours) as response:
        assert response.status == 404


async def test_the_request_of_a_stream_is_parsed_once(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **options: Any) -> None:
        raise AssertionError("parsed again")

    up = await upstream(*wire.chunked(wire.token("hi"), wire.token("", "stop"), b"data: [DONE]\n\n"))
    p = await proxy(provide(up.port))
    monkeypatch.setattr(Pipeline, "receive", fail)
    answer = await p.ask(stream=True)
    assert answer.status == 200
    assert answer.text.endswith(b"data: [DONE]\n\n")


async def test_the_only_target_of_a_stream_is_looked_up_once(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **options: Any) -> None:
        raise AssertionError("looked up again")

    up = await upstream(*wire.chunked(wire.token("hi", "stop"), b"data: [DONE]\n\n"))
    p = await proxy(provide(up.port))
    monkeypatch.setattr(exchange, "_list_candidates", fail)
    assert (await p.ask(stream=True)).status == 200


async def test_the_end_of_a_stream_goes_with_its_last_bytes(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for a stream that fails: its end follows an error event."""
    ends: list[bytes] = []
    write_last = ChunkedResponse.write_last
    monkeypatch.setattr(ChunkedResponse, "write_last", lambda self, data: ends.append(data) or write_last(self, data))
    head, *chunks, end = wire.chunked(wire.token("hi"), wire.token("", "stop"), b"data: [DONE]\n\n")
    up = await upstream(head, chunks[0], 0.05, *chunks[1:], end, "keep")
    answer = await (await proxy(up)).ask(stream=True)
    assert len(ends) == 1
    assert answer.text.endswith(ends[0])
    cut = await upstream(head, chunks[0], 0.05)
    failed = await (await proxy(cut)).ask(stream=True)
    assert b"upstream_truncated" in failed.text
    assert len(ends) == 1


@pytest.mark.parametrize("limit", ["_LARGEST", "_MOST_VALUES"])
async def test_a_larger_request_is_left_to_the_exchange(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    p = await proxy(provide((await upstream(wire.ok, "keep")).port))
    monkeypatch.setattr(short_way, limit, 4)
    received = []
    receive = Pipeline.receive
    monkeypatch.setattr(Pipeline, "receive", lambda self, *args: received.append(args[0]) or receive(self, *args))
    assert (await p.ask()).json == wire.reply
    assert len(received) == 1


HANDED_OVER: dict[str, tuple[list[Step], int, str | None]] = {
    "an error": ([b"HTTP/1.1 400 No\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"], 400, None),
    "no JSON": (
        [b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{]"],
        502,
        "upstream_invalid_json",
    ),
    "half a body": (
        [b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n" + b'{"choices"'],
        502,
        "upstream_truncated",
    ),
}


@pytest.mark.parametrize("case", HANDED_OVER)
async def test_a_reply_that_is_not_plain_is_read_by_an_attempt_and_asked_for_once(
    proxy: StartProxy, upstream: StartUpstream, case: str
) -> None:
    """The pool has one place: if the exchange took a second one, or kept the first, a later request would get none."""
    script, status, code = HANDED_OVER[case]
    up = await upstream(*script)
    p = await proxy(provide(up.port, **SMALL_POOL), retries={"attempts": 1})
    for asked in (1, 2, 3):
        answer = await p.ask()
        assert answer.status == status
        assert code in (None, answer.error["code"])
        assert len(up.requests) == asked
    assert [line["attempts"] for line in await p.exchanges(3)] == [1, 1, 1]


async def test_a_reply_in_parts_is_complete(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    """The second half comes later, and the exchange waits for it."""
    half = len(wire.ok) - 10
    up = await upstream(wire.ok[:half], 0.05, wire.ok[half:], "keep")
    answer = await (await proxy(up)).ask()
    assert (answer.status, answer.json) == (200, wire.reply)


async def test_a_large_reply_is_read_by_an_attempt(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    text = "x" * 300_000
    reply = wire.reply | {"choices": [wire.reply["choices"][0] | {"message": {"role": "assistant", "content": text}}]}
    up = await upstream(wire.http(json.dumps(reply).encode()))
    p = await proxy(provide(up.port, **SMALL_POOL))
    for _ in range(2):
        answer = await p.ask()
        assert answer.json["choices"][0]["message"]["content"] == text


async def test_a_credential_in_the_reply_is_masked(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    secret = "sk-upstream-0123456789abcdef"
    message = {"role": "assistant", "content": f"your key is {secret}"}
    reply = wire.reply | {"choices": [wire.reply["choices"][0] | {"message": message}]}
    up = await upstream(wire.http(json.dumps(reply).encode()))
    answer = await (await proxy(provide(up.port))).ask()
    assert answer.status == 200
    assert secret.encode() not in answer.text
    assert "masked" in answer.headers["x-dragoman-changes"]


async def test_a_credential_whose_letters_the_reply_escapes_is_masked(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    secret = "sk-upstream-0123456789abcdef"
    message = {"role": "assistant", "content": f"your key is {secret}"}
    reply = wire.reply | {"choices": [wire.reply["choices"][0] | {"message": message}]}
    escaped = json.dumps(reply).replace(secret, "".join(f"\\u{ord(letter):04x}" for letter in secret))
    up = await upstream(wire.http(escaped.encode()))
    answer = await (await proxy(provide(up.port))).ask()
    assert answer.status == 200
    assert "your key is" in answer.json["choices"][0]["message"]["content"]
    assert secret.encode() not in answer.text


async def test_a_client_that_leaves_gives_its_place_back(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    up = await upstream("hang")
    p = await proxy(provide(up.port, **SMALL_POOL))
    for count in (1, 2, 3):
        up.asked.clear()
        task = asyncio.create_task(p.ask())
        await asyncio.wait_for(up.asked.wait(), 5)
        task.cancel()
        await asyncio.wait({task})
        lines = await p.exchanges(count)
    assert [line["outcome"] for line in lines] == ["client_left"] * 3
