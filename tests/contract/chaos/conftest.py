"""A fault proxy in front of an upstream of raw bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest

from dragoman.contract.chaos import ChaosProxy


@dataclass
class Peer:
    """An upstream that answers each connection as `answer` says, and keeps what it received."""

    answer: bytes = b""
    echo: bool = False
    port: int = 0
    received: bytearray = field(default_factory=bytearray)
    endings: list[str] = field(default_factory=list)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                self.received += data
                writer.write(data if self.echo else b"")
                if self.answer:
                    writer.write(self.answer)
                    writer.write_eof()
            self.endings.append("end")
        except ConnectionError:
            self.endings.append("reset")
        finally:
            self.ended.set()
            writer.close()


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    one = Peer()
    server = await asyncio.start_server(one.serve, "127.0.0.1", 0)
    one.port = server.sockets[0].getsockname()[1]
    yield one
    server.close()


@pytest.fixture
async def proxy(peer: Peer) -> AsyncIterator[ChaosProxy]:
    async with ChaosProxy("p", f"127.0.0.1:{peer.port}", seed=7) as one:
        yield one


Connect = Callable[[], "asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]]"]


@pytest.fixture
async def connect(proxy: ChaosProxy) -> AsyncIterator[Connect]:
    writers: list[asyncio.StreamWriter] = []

    async def opened() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, _, port = proxy.listen.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writers.append(writer)
        return reader, writer

    yield lambda: asyncio.ensure_future(opened())
    for writer in writers:
        writer.close()
