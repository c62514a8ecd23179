"""A proxy that serves over a provider made of raw bytes."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp

from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import RunningProxy, start

from .streams import PAIRS, POLICIES, Speaker, TornStream

__all__ = ["Answer", "Provider", "ServedProxy", "model_of", "open_proxy", "provider_of", "write_request"]

_PATHS = {
    Speaker("openai", "chat"): "/v1/chat/completions",
    Speaker("openai", "responses"): "/v1/responses",
    Speaker("openai", "completions"): "/v1/completions",
    Speaker("databricks", "chat"): "/serving-endpoints/chat/completions",
    Speaker("databricks", "responses"): "/serving-endpoints/responses",
    Speaker("databricks", "completions"): "/serving-endpoints/completions",
    Speaker("azure", "chat"): "/chat/completions?api-version=2024-05-01-preview",
    Speaker("mindie", "chat"): "/mindie/v1/chat/completions",
}
_REQUESTS: dict[str, dict[str, Any]] = {
    "chat": {
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
        "max_tokens": 90,
    },
    "responses": {"input": "hi", "instructions": "Be brief.", "max_output_tokens": 90},
    "completions": {"prompt": "hi", "max_tokens": 90},
}


def provider_of(speaker: Speaker) -> str:
    return f"{speaker.dialect}-{speaker.protocol}"


def model_of(speaker: Speaker, policy: str) -> str:
    """The public name of a model, and the provider's own name for it."""
    return f"{provider_of(speaker)}-{policy}"


def write_request(stream: TornStream) -> JsonObject:
    """The body of the request that the stream answers. Only OpenAI's clients can ask for usage."""
    client, provider = stream.pair
    body = {"model": model_of(provider, stream.policy), "stream": True, **_REQUESTS[client.protocol]}
    asks = client.dialect == "openai" and client.protocol != "responses"
    return {**body, "stream_options": {"include_usage": True}} if asks else body


class Provider:
    """Answers each request with `stream`."""

    def __init__(self) -> None:
        self.stream: TornStream | None = None

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the proxy has closed the connection
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """True if the connection stays open."""
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]))
        stream = self.stream
        assert stream is not None
        for piece in _write_reply(stream):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)  # the proxy may read it before the next one comes
        return stream.framing != "close" and not stream.is_cut


def _write_reply(stream: TornStream) -> list[bytes]:
    """The head of the reply, and its body in pieces."""
    missing = 9 if stream.is_cut else 0
    rule = {
        "chunked": b"Transfer-Encoding: chunked",
        "length": b"Content-Length: %d" % (len(stream.data) + missing),
        "close": b"Connection: close",
    }[stream.framing]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%b\r\n\r\n" % rule
    if stream.framing != "chunked":
        return [head, *stream.writes]
    chunks = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in stream.writes]
    return [head, *chunks, *([] if stream.is_cut else [b"0\r\n\r\n"])]


class Answer(NamedTuple):
    """What a client got, and the log's line about it. `is_broken`: the connection ended before the body did."""

    status: int
    data: bytes
    is_broken: bool
    line: dict[str, Any]


class _Log(io.BytesIO):
    """`exchanges` gets the line of each exchange."""

    def __init__(self) -> None:
        super().__init__()
        self.exchanges: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def write(self, data: JsonValue) -> int:
        line = json.loads(data)
        if line["event"] == "exchange":
            self.exchanges.put_nowait(line)
        return len(data)


class ServedProxy:
    """A running proxy, its one provider, and its client."""

    def __init__(self, proxy: RunningProxy, provider: Provider, session: aiohttp.ClientSession, log: _Log) -> None:
        self._proxy = proxy
        self._provider = provider
        self._session = session
        self._log = log

    async def ask(self, stream: TornStream) -> Answer:
        """Ask for a stream while the provider has this one."""
        self._provider.stream = stream
        url = self._proxy.url + _PATHS[stream.pair.client]
        data, is_broken = b"", False
        async with self._session.post(url, json=write_request(stream)) as response:
            try:
                async for piece in response.content.iter_any():
                    data += piece
            except aiohttp.ClientPayloadError:
                is_broken = True
        line = await asyncio.wait_for(self._log.exchanges.get(), 10)  # it is written after the last byte
        return Answer(response.status, data, is_broken, line)


@asynccontextmanager
async def open_proxy() -> AsyncIterator[ServedProxy]:
    provider, log = Provider(), _Log()
    listener = await asyncio.start_server(provider, "127.0.0.1", 0)
    proxy = await start(_configuration(listener.sockets[0].getsockname()[1]), log_stream=log)
    async with aiohttp.ClientSession() as session:
        yield ServedProxy(proxy, provider, session, log)
    await proxy.stop()
    listener.close()


def _configuration(port: int) -> Config:
    speakers = dict.fromkeys(provider for _, provider in PAIRS)
    return Config.from_values(
        {
            "providers": {
                provider_of(one): {
                    "dialect": one.dialect,
                    "base_url": f"http://127.0.0.1:{port}",
                    "protocols": [one.protocol],
                }
                for one in speakers
            },
            "models": {
                model_of(one, policy): {"targets": [_target(one, policy)]} for one in speakers for policy in POLICIES
            },
            "store": {"kind": "none"},
            "server": {"port": 0, "hold_headers": 600, "drain": {"delay": 0.001}},
        }
    )


def _target(provider: Speaker, policy: str) -> JsonObject:
    choice = {"replies": policy, "emulate_completions": True}
    return {"provider": provider_of(provider), "model": model_of(provider, policy), "policy": choice}
