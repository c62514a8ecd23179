"""A client that asks for the same thing again and again, and measures each answer: `python _neighbor.py PORT CASE`.

The cases: `live` asks for /live every 2 ms, `chat` sends a small chat request to the model `neighbor` every 20 ms. It
ends with its standard input, and prints for each answer when it was asked for, by the monotonic clock, and how long it
took, in seconds.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

__all__: list[str] = []

CHAT = json.dumps({"model": "neighbor", "messages": [{"role": "user", "content": "Hello"}]}).encode()
HEAD = "{} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"
CASES = {
    "live": (0.002, HEAD.format("GET /live", 0).encode()),
    "chat": (0.02, HEAD.format("POST /v1/chat/completions", len(CHAT)).encode() + CHAT),
}


async def main() -> None:
    port, (pause, request) = int(sys.argv[1]), CASES[sys.argv[2]]
    ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    found: list[tuple[float, float]] = []
    while not ended.done():
        start = time.monotonic()
        writer.write(request)
        await read_answer(reader)
        found.append((start, time.monotonic() - start))
        await asyncio.sleep(pause)
    print(json.dumps(found))


async def read_answer(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 "):
        raise SystemExit(f"a wrong answer: {head!r}")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    await reader.readexactly(int(length.partition(b":")[2]))


asyncio.run(main())
