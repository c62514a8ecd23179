"""Framings: timing, broken connections, and faulty bytes."""

from __future__ import annotations

import asyncio
import gzip
import json

import aiohttp
import pytest

from dragoman.adapters.sse import Event, Stray
from dragoman.contract.fakes import FakeProvider
from dragoman.contract.fakes.answers import SENTENCE

from .client import ChatClient


@pytest.mark.parametrize(
    ("behaviour", "pauses"), [("slow(delay=0.01)", 19), ("slow-first(delay=0.01)", 1), ("pause(delay=0.01)", 1)]
)
async def test_slow_behaviour_pauses(
    behaviour: str, pauses: int, client: ChatClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    sleep = asyncio.sleep

    async def record_sleep(seconds: float) -> None:
        slept.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", record_sleep)
    async with FakeProvider("openai", behaviour=behaviour) as fake:
        reply = await client.send(fake, stream=True)
    assert (reply.text, slept.count(0.01)) == (SENTENCE, pauses)


@pytest.mark.parametrize(
    ("name", "begun", "error"),
    [
        ("hang", False, TimeoutError),
        ("hang-after-headers", True, TimeoutError),
        ("stall", True, TimeoutError),
        ("cut", True, aiohttp.ClientError),
        ("cut-fin", True, aiohttp.ClientPayloadError),
        ("cut-before", False, aiohttp.ServerDisconnectedError),
        ("cut-body", True, aiohttp.ClientPayloadError),
        ("garbage", False, aiohttp.ClientError),
    ],
)
async def test_broken_reply_ends_early(name: str, begun: bool, error: type[Exception], client: ChatClient) -> None:
    async with FakeProvider("openai", behaviour=name) as fake:
        reply = await client.send(fake, stream=True, read_timeout=1.0)
        assert isinstance(reply.error, error) and (reply.status == 200) == begun
        assert reply.done == 0 and bool(reply.raw) == (begun and name != "hang-after-headers")
        assert SENTENCE.startswith(reply.text) and reply.text != SENTENCE
        fake.behaviour = "text"
        assert (await client.send(fake, stream=True)).text == SENTENCE


async def test_stream_ends_early_but_cleanly(client: ChatClient) -> None:
    whole, stream = await client.send_both("cut-clean")
    assert stream.error is None and stream.finishes == [] and stream.done == 0 and stream.text
    assert whole.body["choices"][0]["finish_reason"] is None
    _, stream = await client.send_both("no-done")
    assert stream.finishes == ["stop"] and stream.done == 0


async def test_stream_has_broken_or_bare_lines(client: ChatClient) -> None:
    whole, stream = await client.send_both("malformed-event")
    broken = [item.data for item in stream.items if isinstance(item, Event) and b"broken" in item.data]
    assert len(broken) == 1 and stream.raw.endswith(b"data: [DONE]\n\n")
    for text in (broken[0], whole.raw):
        with pytest.raises(ValueError):
            json.loads(text)
    _, stream = await client.send_both("bare-text(reason=client timeout)", "mindie")
    assert stream.items[-1] == Stray(b"Engine callback timeout: client timeout") and stream.finishes == []
    _, stream = await client.send_both("bare-json")
    strays = [item.text for item in stream.items if isinstance(item, Stray)]
    assert json.loads(strays[-2])["choices"][0]["finish_reason"] == "stop" and strays[-1] == b"[DONE]"


@pytest.mark.parametrize(
    ("dialect", "keys"),
    [
        ("openai", {"error"}),
        ("databricks", {"error_code", "message"}),
        ("azure", {"error"}),
        ("mindie", {"error", "error_type"}),
    ],
)
async def test_stream_contains_an_error(dialect: str, keys: set[str], client: ChatClient) -> None:
    whole, stream = await client.send_both("error-event(status=503)", dialect)
    assert set(stream.chunks[-1]) == keys == set(whole.body) and len(stream.chunks) > 3 and stream.done == 0
    assert whole.status == 200
    whole, stream = await client.send_both("first-error", dialect)
    assert [set(event) for event in stream.events] == [keys] and set(whole.body) == keys


@pytest.mark.parametrize("name", ["split-utf8", "crlf", "cr", "bom", "comments", "multiline-data", "two-done", "gzip"])
async def test_framing_keeps_the_text(name: str, client: ChatClient) -> None:
    whole, stream = await client.send_both(name)
    assert stream.text == SENTENCE and stream.finishes == ["stop"] and stream.done == (2 if name == "two-done" else 1)
    assert json.loads(whole.raw.decode("utf-8-sig"))["choices"][0]["message"]["content"] == SENTENCE


@pytest.mark.parametrize(
    ("name", "sign"),
    [
        ("crlf", b"}\r\n\r\ndata: "),
        ("cr", b"}\r\rdata: "),
        ("bom", b"\xef\xbb\xbfdata: "),
        ("comments", b": keep-alive\n\ndata: "),
        ("multiline-data", b'\ndata:  "choices": ['),
    ],
)
async def test_framing_changes_the_bytes(name: str, sign: bytes, client: ChatClient) -> None:
    _, stream = await client.send_both(name)
    assert sign in stream.raw and (name != "cr" or b"\n" not in stream.raw)


async def test_split_utf8_sends_one_byte_in_each_http_chunk(session: aiohttp.ClientSession) -> None:
    async with FakeProvider("openai", behaviour="split-utf8") as fake:
        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
        async with session.post(f"{fake.base_url}/chat/completions", json=body) as response:
            sizes = [len(data) async for data, _ in response.content.iter_chunks()]
    assert set(sizes) == {1}


async def test_after_done_sends_events_after_the_end(client: ChatClient) -> None:
    _, stream = await client.send_both("after-done")
    assert stream.events.index("[DONE]") < len(stream.events) - 3


async def test_size_sets_the_length_of_large_replies(client: ChatClient) -> None:
    whole, stream = await client.send_both("huge-event(size=1)")
    assert len(whole.raw) > 2**20 and max(len(line) for line in stream.raw.split(b"\n")) > 2**20
    whole, stream = await client.send_both("huge-body(size=3)")
    assert len(whole.body["padding"]) == 3 * 2**20 and len(stream.raw) > 3 * 2**20 and stream.finishes == ["stop"]


async def test_gzip_bomb_is_small_when_compressed() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
    plain = aiohttp.ClientSession(auto_decompress=False)
    async with plain, FakeProvider("openai", behaviour="gzip-bomb(size=8)") as fake:
        response = await plain.post(f"{fake.base_url}/chat/completions", json=body)
        packed = await response.read()
    assert response.headers["Content-Encoding"] == "gzip" and len(packed) < 2**16
    assert len(gzip.decompress(packed)) > 8 * 2**20


async def test_invalid_header_breaks_the_reply(session: aiohttp.ClientSession, client: ChatClient) -> None:
    for name in ("huge-header", "two-lengths"):
        whole, _ = await client.send_both(name)
        assert isinstance(whole.error, aiohttp.ClientError) and whole.raw == b""
    whole, _ = await client.send_both("folded-header")
    assert whole.body == {"choices": []} and whole.headers["x-fake"] == "a b"


async def test_extra_bytes_follow_the_reply() -> None:
    async with FakeProvider("openai", behaviour="extra-bytes") as fake:
        reader, writer = await asyncio.open_connection(fake.host, fake.port)
        body = b'{"model":"m","messages":[{"role":"user","content":"Hello"}]}'
        writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: fake\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        assert (await reader.readuntil(b"smuggled")).count(b"HTTP/1.1 200 OK") == 2
        assert not reader.at_eof()
        writer.close()
        await fake.until(lambda: fake.disconnects == 1)
