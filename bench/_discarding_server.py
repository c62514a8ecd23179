"""A server that reads each request and answers 400: `python _discarding_server.py PORT`."""

from __future__ import annotations

import asyncio
import sys

__all__: list[str] = []

ANSWER = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
READ = 65_536


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    left = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while left and (data := await reader.read(min(left, READ))):
        left -= len(data)
    writer.write(ANSWER)
    await writer.drain()
    writer.close()


async def main() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(main())
