"""A request leaves no cycle of references with a frame or a part of its exchange in it: that would keep the request's
body until the garbage collector runs, which is rarely, so that clients that vanish could fill the memory."""

from __future__ import annotations

import asyncio
import gc
import io
import re
import types
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager

import aiohttp
import pytest

from dragoman.contract.fakes import FakeProvider
from dragoman.contract.json_types import JsonObject
from dragoman.proxy.server.lifecycle import start

from .conftest import Pair, configure
from .raw_http import POST, converse

BODY = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"fake:stall %s"}]}' % (b"x" * 10_000)
WHOLE = b"%sContent-Length: %d\r\n\r\n%s" % (POST, len(BODY), BODY)


async def leave(pair: Pair, data: bytes, read: int = 0) -> None:
    """Send bytes, read as many, and go."""
    reader, writer = await asyncio.open_connection("127.0.0.1", pair.proxy.port)
    writer.write(data)
    await reader.readexactly(read)
    await asyncio.sleep(0.05)
    writer.transport.abort()
    await asyncio.sleep(0.05)


def leave_in(text: str, read: int = 0, model: str = "m") -> Callable[[Pair], Awaitable[None]]:
    data = BODY.replace(b"fake:stall", text.encode()).replace(b'"m"', b'"%s"' % model.encode())
    return lambda pair: leave(pair, b"%sContent-Length: %d\r\n\r\n%s" % (POST, len(data), data), read)


def ask(text: str, path: str = "/v1/chat/completions", **more: object) -> Callable[[Pair], Awaitable[None]]:
    async def send(pair: Pair) -> None:
        body = {"model": "m", "messages": [{"role": "user", "content": text}], **more}
        async with aiohttp.ClientSession(pair.proxy.url) as session, session.post(path, json=body) as answer:
            try:
                await answer.read()
            except aiohttp.ClientPayloadError:
                assert more.get("stream"), "only Azure's streams are broken off"

    return send


async def send_slowly(pair: Pair) -> None:
    """The body's time limit passes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", pair.proxy.port)
    writer.write(WHOLE[:5000])
    assert b" 408 " in await reader.readline()
    await reader.read()
    writer.close()


async def send_raw(pair: Pair, data: bytes) -> None:
    await converse(pair.proxy.port, [data])


CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n2000\r\n" + b"x" * 0x2000
OF_EXCHANGE = (
    "dragoman.proxy.exchange.",
    "dragoman.adapters.pipeline.",
    "dragoman.adapters.chat.",
    "dragoman.proxy.upstreams.aiohttp_client.HttpResponse",
    "dragoman.proxy.http.aiohttp_connection.Connection",
    "dragoman.proxy.http.aiohttp_bodies.",
)
HAS_BODY = re.compile("proxy/(exchange|upstreams)/|request_body")
WAYS = {
    "a chunk is wrong": lambda pair: send_raw(pair, CHUNKED + b"wrong"),
    "a chunk is wrong, later": lambda pair: send_raw(pair, CHUNKED + b"\r\nzz\r\n"),
    "the body is too large": lambda pair: send_raw(pair, CHUNKED + b"\r\n2000\r\n" + b"x" * 0x2000 + b"\r\n0\r\n\r\n"),
    "the body is no JSON": lambda pair: send_raw(pair, b"%sConnection: close\r\nContent-Length: 5\r\n\r\n[1,2," % POST),
    "the client leaves in the body": lambda pair: leave(pair, WHOLE[:5000]),
    "the client leaves before the answer": leave_in("fake:hang"),
    "the client leaves after the head": leave_in("fake:hang-after-headers"),
    "the client leaves in the stream": leave_in("fake:stall", 500),
    "the body is too slow": send_slowly,
    "the upstream is silent": ask("fake:hang"),
    "the upstream falls silent": ask("fake:stall", stream=True),
    "the upstream falls silent, Azure": ask(
        "fake:stall", "/chat/completions?api-version=2024-05-01-preview", stream=True
    ),
    "the upstream breaks off": ask("fake:cut"),
    "the upstream breaks off a stream": ask("fake:cut", stream=True),
    "the upstream sends no JSON": ask("fake:html"),
    "the upstream sends a broken event": ask("fake:malformed-event", stream=True),
    "the upstream refuses": ask("fake:status-400"),
    "the upstream fails": ask("fake:status-500"),
    "the upstream is overloaded": ask("fake:rate-limit"),
    "both targets of a hedged model are silent": ask("fake:hang", model="hedged"),
    "the client leaves a hedged model": leave_in("fake:hang", model="hedged"),
    "a hedged model answers": ask("hello", model="hedged"),
    "the second target of a hedged model answers": ask("fake:slow-first(delay=0.1)", model="hedged", stream=True),
    "a value is invalid": ask("hello", temperature=9),
    "a value of a large body is invalid": ask("hello", stop=[[]] * 2_500),
    "a large body is no JSON": lambda pair: send_raw(
        pair, b"%sConnection: close\r\nContent-Length: 11000\r\n\r\n%b1" % (POST, b"[]," * 3_666 + b"1")
    ),
    "there is no such model": ask("hello", model="other"),
    "there is no such address": ask("hello", "/v1/other"),
    "the answer is a usual one": ask("hello"),
    "the stream is a usual one": ask("hello", stream=True),
}


@contextmanager
def collect_garbage() -> Iterator[list[object]]:
    """Find what only the garbage collector frees."""
    found: list[object] = []
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
        gc.collect()
        found += gc.garbage
    finally:
        gc.set_debug(0)
        gc.enable()
        gc.garbage.clear()


@pytest.fixture
async def hasty() -> AsyncIterator[Pair]:
    """Its time limits are short. Collections of garbage do not look at what there was before."""
    gc.freeze()
    timeouts: JsonObject = {"first_token": 0.3, "inter_token": 0.3, "total": 0.5}
    log = io.BytesIO()
    async with FakeProvider("openai") as fake:
        targets = [{"provider": "p", "model": name} for name in ("up", "other")]
        models: JsonObject = {"m": {"targets": targets[:1]}, "hedged": {"targets": targets, "hedge_after": 0.03}}
        server = {"body_timeout": 0.2, "body_limit": 12_000}
        config = configure(fake.base_url, timeouts=timeouts, models=models, server=server)
        proxy = await start(config, log_stream=log)
        yield Pair(proxy, fake, log)
        await proxy.stop()


@pytest.mark.parametrize("way", WAYS)
async def test_no_frame_is_in_a_cycle(hasty: Pair, way: str) -> None:
    for _ in range(2):  # the first one fills caches
        with collect_garbage() as garbage:
            await WAYS[way](hasty)
            await asyncio.sleep(0.05)
    frames = [one.f_code for one in garbage if isinstance(one, types.FrameType)]
    assert [f"{code.co_filename}: {code.co_name}" for code in frames if HAS_BODY.search(code.co_filename)] == []


def count_alive() -> Counter[str]:
    """The objects that belong to exchanges and to the connections of their clients, by type. The collector cannot say
    which of them only it frees: it closes a generator before it looks."""
    names = (f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.get_objects())
    return Counter(name for name in names if name.startswith(OF_EXCHANGE))


@pytest.mark.parametrize("way", WAYS)
async def test_nothing_of_an_exchange_stays(hasty: Pair, way: str) -> None:
    alive = []
    gc.disable()
    try:
        for _ in range(2):  # the first one fills caches
            await WAYS[way](hasty)
            await asyncio.sleep(0.05)
            alive.append(count_alive())
    finally:
        gc.enable()
    assert alive[1] - alive[0] == Counter()
