"""Paced streams whose events are chained: each carries its number and a hash over all before it, so that one that is
lost, doubled, reordered or of another stream is noticed."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import dataclass, field

__all__ = ["Chain", "ChainedUpstream", "follow_stream"]

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass
class Chain:
    """The texts of one stream. `step` returns the next one: its number and the hash of everything so far."""

    name: str
    number: int = 0
    _hash: bytes = field(default=b"", repr=False)

    def step(self) -> str:
        self.number += 1
        self._hash = hashlib.blake2b(
            b"%s %d %s" % (self.name.encode(), self.number, self._hash), digest_size=8
        ).digest()
        return f"{self.number}:{self._hash.hex()} "


class ChainedUpstream:
    """Streams `events` chained events, one every `interval` seconds, to each request; the stream's name is the text of
    the last message."""

    def __init__(self, events: int, interval: float) -> None:
        self._events, self._interval = events, interval
        self.open = 0
        self.port = 0

    async def start(self, port: int = 0) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, "127.0.0.1", port, backlog=4096)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                request = json.loads(await reader.readexactly(length))
                await self._stream(request["messages"][-1]["content"], writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _stream(self, name: str, writer: asyncio.StreamWriter) -> None:
        chain, clock = Chain(name), asyncio.get_running_loop().time
        self.open += 1
        try:
            writer.write(_HEAD)
            next_time = clock()
            for _ in range(self._events):
                writer.write(_write_event({"content": chain.step()}, None))
                next_time += self._interval
                await asyncio.sleep(max(next_time - clock(), 0))
                await writer.drain()
            writer.write(_write_event({}, "stop") + _write_chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        finally:
            self.open -= 1


def _write_event(delta: dict[str, str], finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    event = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return _write_chunk(b"data: %s\n\n" % json.dumps(event).encode())


def _write_chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def follow_stream(port: int, name: str, events: int, path: str = "/v1/chat/completions") -> str:
    """Ask a proxy for one stream, and check it; what is wrong with it, or nothing."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": name}], "stream": True}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        status = await reader.readline()
        if status.split()[1:2] != [b"200"]:
            return f"{name}: {status!r}"
        return await _check_events(reader, Chain(name), events)
    except (OSError, ValueError) as error:
        return f"{name}: {error!r}"
    finally:
        writer.close()


async def _check_events(reader: asyncio.StreamReader, chain: Chain, events: int) -> str:
    done = False
    while line := await reader.readline():
        if not line.startswith(b"data: "):
            continue
        if done := line == b"data: [DONE]\n":
            break
        for choice in json.loads(line[6:]).get("choices", ()):
            for text in choice["delta"].get("content", "").split():
                if text + " " != (wanted := chain.step()):
                    return f"{chain.name}: {text!r} instead of {wanted!r}"
    return "" if done and chain.number == events else f"{chain.name}: {chain.number} events of {events}, done: {done}"
