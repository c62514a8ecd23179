"""The provider of the benchmarks in Python, for machines without a C compiler: what `native/provider.c` does.

A request that contains `bench-burst` gets a stream as fast as possible, one with `bench-paced` gets one event per 5 ms,
any other gets one whole reply. Start it with `python _upstream.py PORT`. The text of each event has its number, and
when it was sent.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from itertools import count
from typing import Any, cast

import uvloop
from _cases import EVENTS, PACE, REPLY

__all__ = ["PIECES", "STREAM_HEAD", "WHOLE"]

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_NO_TIME, _MASK = "f" * 12, (1 << 48) - 1


def build_body(kind: str, choice: dict[str, Any], **more: Any) -> bytes:
    head = {"id": "chatcmpl-3f6d0c9be7a14e0f8d52", "object": kind, "created": 1700000000, "model": "bench"}
    return json.dumps({**head, "choices": [{"index": 0, **choice}], **more}, ensure_ascii=False).encode()


def build_reply() -> bytes:
    text = f"A relay takes what it is given and hands it on; {REPLY}. " * 3
    message = {"role": "assistant", "content": text.strip(), "refusal": None}
    usage = {"prompt_tokens": 900, "completion_tokens": 60, "total_tokens": 960}
    choice = {"message": message, "logprobs": None, "finish_reason": "stop"}
    body = build_body("chat.completion", choice, usage=usage)
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def build_stream() -> list[bytes]:
    """Build the events, each as one HTTP chunk; the last one also ends the body."""
    events = [build_event({"content": f" @{number:03d}{_NO_TIME}"}, None) for number in range(EVENTS)]
    events[0] = build_event({"role": "assistant", "content": ""}, None) + events[0]
    events[-1] += build_event({}, "stop") + write_chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
    return events


def build_event(delta: dict[str, Any], finish_reason: str | None) -> bytes:
    choice = {"delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return write_chunk(b"data: " + build_body("chat.completion.chunk", choice) + b"\n\n")


def write_chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def set_time(piece: bytes) -> bytes:
    """Replace the time of a piece, whose token has none, by the time of the clock."""
    return piece.replace(_NO_TIME.encode(), b"%012x" % (time.monotonic_ns() & _MASK), 1)


WHOLE = build_reply()
PIECES = build_stream()


_PHASES = (number * 0.618034 % 1 for number in count())
"""The phases of `PACE` at which streams begin, evenly distributed. Streams in the same phase cost less, by chance."""


class Upstream(asyncio.Protocol):
    """One connection: answers complete requests, one at a time."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's transport does not derive from it

    def data_received(self, data: bytes) -> None:
        self.received += data
        while (request := self.next_request()) is not None:
            self.answer(request)

    def next_request(self) -> bytes | None:
        end = self.received.find(b"\r\n\r\n")
        if end < 0:
            return None
        length = _LENGTH.search(self.received, 0, end)
        end += 4 + (int(length[1]) if length else 0)
        if len(self.received) < end:
            return None
        request = bytes(self.received[:end])
        del self.received[:end]
        return request

    def answer(self, request: bytes) -> None:
        if b"bench-paced" in request:
            self.transport.write(STREAM_HEAD)
            due = self.loop.time() + next(_PHASES) * PACE
            self.loop.call_at(due, self.pace, 0, due)
        elif b"bench-burst" in request:
            self.transport.write(STREAM_HEAD + b"".join(map(set_time, PIECES)))
        else:
            self.transport.write(WHOLE)

    def pace(self, number: int, due: float) -> None:
        if self.transport.is_closing():
            return
        self.transport.write(set_time(PIECES[number]))
        if number + 1 < len(PIECES):
            self.loop.call_at(due + PACE, self.pace, number + 1, due + PACE)


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
