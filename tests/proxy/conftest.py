"""Upstreams made of raw bytes, a dialect that does as little as possible, and a proxy between the two."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.common.completeness import Completeness
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.common.stream_reader import StreamReaderBase
from dragoman.adapters.common.stream_writer import StreamWriterBase
from dragoman.adapters.dialect import Called, Dialect, Served, prefix
from dragoman.adapters.faults import Fault
from dragoman.adapters.sse import Event, Item
from dragoman.adapters.streams import Chunk, Output
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import Running, start

# A dialect: OpenAI's shapes, without any validation.


def _read_request(call: Call, ctx: Context) -> JsonObject:
    if call.body.get("broken"):
        raise RuntimeError("sk-canary-of-a-defect")
    if "messages" not in call.body:
        raise Fault("invalid_request", "messages is missing", ("messages",), code="missing_required_parameter")
    return call.body


def _write_fault(fault: Fault, ctx: Context) -> Reply:
    error = {"message": fault.message, "type": fault.kind, "param": fault.param, "code": fault.code}
    headers = {} if fault.retry_after is None else {"retry-after": f"{fault.retry_after:g}"}
    return Reply(fault.status, {"error": error}, headers)


class _Writer(StreamWriterBase):
    def __init__(self, aborts: bool) -> None:
        super().__init__()
        self._aborts_on_fault = aborts

    def _encode_chunk(self, chunk: Chunk) -> bytes:
        return b"data: " + (chunk.raw or json.dumps(chunk.body).encode()) + b"\n\n"

    def _encode_end(self) -> bytes:
        return b"data: [DONE]\n\n"

    def _encode_fault(self, fault: Fault) -> bytes:
        self.aborts = self._aborts_on_fault
        return b"data: " + json.dumps(_write_fault(fault, None).body).encode() + b"\n\n"  # type: ignore[arg-type]


def _write_request(request: JsonObject, ctx: Context) -> Call:
    body = {**request, "model": ctx.target.model}
    for name in ctx.target.lacks & body.keys():
        raise Fault("unsupported_parameter", f"{name} is not supported", (name,), code="unsupported_parameter")
    if ctx.target.policy.extra_parameters == "drop" and body.pop("extra", None):
        ctx.receipt.record_drop(("extra",), "the target does not know it")
    return Call("POST", "/chat/completions", body)


def _read_reply(reply: Reply, ctx: Context) -> JsonObject:
    if "choices" not in reply.body:
        raise Fault("upstream_error", str(reply.body.get("error")), status=502, code="in_band")
    return reply.body


def _read_fault(reply: Reply, ctx: Context) -> Fault:
    kinds = {401: "upstream_auth_failed", 408: "upstream_timeout", 422: "unprocessable", 429: "rate_limit"}
    kind = kinds.get(reply.status, "upstream_error" if reply.status >= 500 else "invalid_request")
    status = 502 if kind == "upstream_auth_failed" else reply.status
    after = reply.headers.get("Retry-After")
    message = reply.raw.decode("utf-8", "replace")[:200]
    return Fault(kind, message, status=status, retry_after=float(after) if after else None)  # type: ignore[arg-type]


class _Completeness(Completeness):
    is_complete = False
    missing = "it finished"


class _Reader(StreamReaderBase):
    wrong_event = "an event that is not JSON"
    _completeness: _Completeness

    def __init__(self, ctx: Context) -> None:
        super().__init__(ReplyRules("openai"), ctx, "openai/chat.event", _Completeness())

    def _process_item(self, item: Item) -> list[Output]:
        data = item.data if isinstance(item, Event) else item.text
        if data == b"[DONE]":
            return self._conclude()
        try:
            body = json.loads(data)
        except ValueError:
            return self._broken(data, None)
        if "defect" in body:
            raise RuntimeError("canary")
        if "error" in body:
            return self._fail(Fault("rate_limit", str(body["error"]), code="in_band"))
        if any(choice.get("finish_reason") for choice in body.get("choices", ())):
            self._completeness.is_complete = True
        return [Chunk(body, data)]


def make_dialect(name: str = "openai", aborts: bool = False) -> Dialect:
    served = Served(_read_request, lambda reply, _: Reply(200, reply), lambda _: _Writer(aborts), _write_fault)
    called = Called(_write_request, _read_reply, _Reader, _read_fault)
    auth = {"bearer": {"Authorization": "Bearer {}"}, "api-key": {"api-key": "{}"}}
    return Dialect(
        name,
        auth,
        served={"chat": served},
        called={"chat": called},
        paths={"chat": prefix(name, "/v1/chat/completions")},
        forwarded=("x-ratelimit-left",),
    )


@pytest.fixture
def dialects() -> dict[str, Dialect]:
    return {"openai": make_dialect()}


@pytest.fixture
def aborting_dialects() -> dict[str, Dialect]:
    return {"openai": make_dialect(aborts=True)}


# Upstreams


@dataclass
class Upstream:
    """Plays `script` to every request: bytes are sent, a number is a pause in seconds, `hang` waits until the proxy
    closes the connection, `reset` breaks it off. After the last step it hangs up, unless that is `keep`."""

    script: list[Any]
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.closed.set()
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
        self.requests.append(head + await reader.readexactly(length))
        self.asked.set()
        for step in self.script:
            if step == "keep":
                return True
            if step == "hang":
                await reader.read()
            elif step == "reset":
                at_once = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
                writer.transport.abort()
                return False
            elif isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
            else:
                await asyncio.sleep(step)
        return False

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(request.partition(b"\r\n\r\n")[2]) for request in self.requests]


@pytest.fixture
async def upstream() -> AsyncIterator[Callable[..., Awaitable[Upstream]]]:
    servers = []

    async def listen(*script: Any, ssl: Any = None) -> Upstream:
        fake = Upstream(list(script))
        server = await asyncio.start_server(fake, "127.0.0.1", 0, ssl=ssl)
        fake.port = server.sockets[0].getsockname()[1]
        servers.append(server)
        return fake

    yield listen
    for server in servers:
        server.close()
    await asyncio.sleep(0)


REPLY = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
}


def http(body: bytes, *headers: str, status: str = "200 OK", media_type: str = "application/json") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {media_type}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunked(*parts: bytes, end: bool = True) -> list[bytes]:
    """The head of an event stream and its chunks, one write each."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return [head, *(b"%x\r\n%s\r\n" % (len(part), part) for part in parts), *([b"0\r\n\r\n"] if end else [])]


def token(text: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "x", "choices": [choice]}).encode() + b"\n\n"


@pytest.fixture
def wire() -> Any:
    """Shapes of replies: `ok`, `stream`, and the functions to make others."""

    class Wire:
        reply = REPLY
        ok = http(json.dumps(REPLY).encode())
        stream = b"".join(chunked(token("he"), token("llo", "stop"), b"data: [DONE]\n\n"))

    wire = Wire()
    wire.http, wire.chunked, wire.token = http, chunked, token  # type: ignore[attr-defined]
    return wire


# The proxy


@dataclass
class Proxy:
    running: Running
    log: io.BytesIO
    session: aiohttp.ClientSession

    @property
    def port(self) -> int:
        return self.running.port

    @property
    def url(self) -> str:
        return f"{self.running.url}/v1/chat/completions"

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]

    async def exchanges(self, count: int = 1) -> list[dict[str, Any]]:
        """The lines of finished exchanges, once there are that many."""
        for _ in range(200):
            found = [line for line in self.lines if line["event"] == "exchange"]
            if len(found) >= count:
                return found
            await asyncio.sleep(0.01)
        raise AssertionError(f"there were not {count} exchanges: {self.lines}")

    async def ask(self, *, headers: dict[str, str] | None = None, **body: Any) -> Answer:
        payload = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **body}
        async with self.session.post(self.url, json=payload, headers=headers) as response:
            try:
                text = await response.read()
            except aiohttp.ClientPayloadError:
                return Answer(response.status, response.headers, b"", broken=True)
            return Answer(response.status, response.headers, text)

    async def raw(self, data: bytes, *, eof: bool = False) -> bytes:
        """Send bytes, read until the proxy closes the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        if eof:
            writer.write_eof()
        try:
            return await asyncio.wait_for(reader.read(), 5)
        finally:
            writer.close()


@dataclass
class Answer:
    status: int
    headers: Any
    text: bytes
    broken: bool = False

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def error(self) -> Any:
        return self.json["error"]

    @property
    def events(self) -> list[Any]:
        data = [event.removeprefix(b"data: ") for event in self.text.split(b"\n\n") if event]
        return [event.decode() if event == b"[DONE]" else json.loads(event) for event in data]


@pytest.fixture
async def proxy(dialects: dict[str, Dialect]) -> AsyncIterator[Callable[..., Awaitable[Proxy]]]:
    """Starts proxies. `providers` are upstreams, ports or provider settings; the model "m" has them all as targets."""
    started: list[Proxy] = []

    async def make(
        *providers: Any, speak: dict[str, Dialect] | None = None, random: Any = None, **config: Any
    ) -> Proxy:
        server = {"port": 0, "drain": {"delay": 0.001, "timeout": 5}, **config.pop("server", {})}
        names = {f"p{number}": _provider(provider) for number, provider in enumerate(providers)}
        targets = [{"provider": name, "model": "up"} for name in names]
        models = config.pop("models", {"m": {"targets": targets}} if targets else {})
        whole = Config.model_validate({"server": server, "providers": names, "models": models, **config})
        log = io.BytesIO()
        running = await start(whole, dialects=speak or dialects, log_stream=log, random=random)
        made = Proxy(running, log, aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()))
        started.append(made)
        return made

    yield make
    for made in started:
        await made.session.close()
        made.running.stopping_now.set()
        await made.running.stop()


def _provider(given: Any) -> dict[str, Any]:
    if isinstance(given, dict):
        return {"dialect": "openai", **given}
    return {"dialect": "openai", "base_url": f"http://127.0.0.1:{getattr(given, 'port', given)}/v1"}
