"""An upstream that plays a script of raw bytes, and the bytes of usual replies."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from dragoman.contract.json_types import JsonObject, JsonValue

__all__ = ["StartUpstream", "Step", "Upstream", "Wire", "chunked", "http", "token"]

Step: TypeAlias = bytes | float | str | asyncio.Event


@dataclass
class Upstream:
    """Plays `script` to every request: bytes are sent, a number is a pause in seconds, an event is waited for, `hang`
    waits until the proxy closes the connection, `reset` breaks it off. After the last step it hangs up, unless that is
    `keep`."""

    script: Iterable[Step]
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
            elif isinstance(step, asyncio.Event):
                await step.wait()
            elif isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
            else:
                await asyncio.sleep(float(step))
        return False

    @property
    def bodies(self) -> list[JsonValue]:
        return [json.loads(request.partition(b"\r\n\r\n")[2]) for request in self.requests]


class StartUpstream(Protocol):
    """Starts an upstream that plays these steps to every request."""

    async def __call__(self, *script: Step, ssl: ssl.SSLContext | None = None) -> Upstream: ...


REPLY: JsonObject = {
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


class Wire:
    """Replies as bytes: `ok`, `stream`, and the functions that make others."""

    reply = REPLY
    ok = http(json.dumps(REPLY).encode())
    stream = b"".join(chunked(token("he"), token("llo", "stop"), b"data: [DONE]\n\n"))
    http = staticmethod(http)
    chunked = staticmethod(chunked)
    token = staticmethod(token)
