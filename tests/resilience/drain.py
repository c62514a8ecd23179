"""Stops a proxy under load with SIGTERM, and counts what becomes of every client.

    python -m tests.resilience.drain [--streams 500] [--idle 50] [--workers 20] [--halves 20] [--server nginx]

When the signal arrives, some clients read streams, some have sent half of a body, some hold idle connections, and some
workers send one request after the other. The last line has the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp

from tests.resilience.reference_servers import REFERENCE_SERVERS
from tests.resilience.serving_process import ServingProcess, configure, listen, serve, serve_reference

__all__ = ["Figures", "Load", "run"]

_PATIENCE = 10.0  # seconds without an answer, after which a request hangs
_LIMIT = 120.0  # seconds for everything
_CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "up"}
_MESSAGE = {"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
_REPLY = {"id": "c", "object": "chat.completion", "created": 1, "model": "up", "choices": [_MESSAGE]}
_QUESTION = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@dataclass(frozen=True)
class Load:
    """How many clients of each kind there are, and how long a stream is: `events` with `pace` seconds between two. The
    listener is closed `delay` seconds after the signal."""

    streams: int = 500
    idle: int = 50
    workers: int = 20
    halves: int = 20
    events: int = 50
    pace: float = 0.1
    delay: float = 1.0


@dataclass
class Figures:
    """What became of the clients. `before` counts requests until /ready answered 503, `during` those until shortly
    before the listener was closed, `after` the rest. `exit_after` is in seconds after the last stream."""

    whole_streams: int = 0
    before: Counter[str] = field(default_factory=Counter)
    during: Counter[str] = field(default_factory=Counter)
    after: Counter[str] = field(default_factory=Counter)
    halves: Counter[str] = field(default_factory=Counter)
    idle: Counter[str] = field(default_factory=Counter)
    open_after_answer: int = 0
    exit_after: float = 0.0
    status: int | None = None

    @property
    def hung(self) -> int:
        counts = (self.before, self.during, self.after, self.halves, self.idle)
        return sum(counter["hung"] for counter in counts)


class Upstream:
    """A provider whose streams count their events, and whose other replies come at once."""

    def __init__(self, load: Load) -> None:
        self._load = load

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                body = json.loads(await reader.readexactly(length))
                await (self._stream(writer) if body.get("stream") else self._reply(writer))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the proxy closes its connections when it stops

    async def _reply(self, writer: asyncio.StreamWriter) -> None:
        body = json.dumps(_REPLY).encode()
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        await writer.drain()

    async def _stream(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for number in range(self._load.events):
            self._write_event(writer, {"content": f"{number} "}, None)
            await asyncio.sleep(self._load.pace)
        self._write_event(writer, {}, "stop")
        writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
        await writer.drain()

    def _write_event(self, writer: asyncio.StreamWriter, delta: dict[str, str], finish_reason: str | None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        event = f"data: {json.dumps({**_CHUNK, 'choices': [choice]})}\n\n".encode()
        writer.write(b"%x\r\n%b\r\n" % (len(event), event))


class Clients:
    """All clients of one run."""

    def __init__(self, proxy: ServingProcess, load: Load, figures: Figures) -> None:
        self.proxy, self.load, self.figures = proxy, load, figures
        self.host, self.port = "127.0.0.1", int(proxy.url.rpartition(":")[2])
        self.counter = figures.before
        self.begun = 0
        self.last_stream = 0.0
        self.ready = asyncio.Event()
        self.stopping = asyncio.Event()

    async def read_stream(self) -> None:
        body = {**_QUESTION, "stream": True}
        wanted = "".join(f"{number} " for number in range(self.load.events))
        async with self.proxy.session.post(f"{self.proxy.url}/v1/chat/completions", json=body) as response:
            self._count_begun()
            events = (await response.read()).split(b"\n\n")
        self.last_stream = max(self.last_stream, time.monotonic())
        chunks = [json.loads(event.removeprefix(b"data: ")) for event in events[:-2]]
        text = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)
        self.figures.whole_streams += text == wanted and events[-2] == b"data: [DONE]"

    async def work(self) -> None:
        """Send requests until a connection is refused."""
        result = ""
        async with aiohttp.ClientSession() as session:
            while result != "refused":
                counter = self.counter
                result = await self.ask(session)
                counter[result] += 1

    async def ask(self, session: aiohttp.ClientSession) -> str:
        url = f"{self.proxy.url}/v1/chat/completions"
        try:
            async with session.post(url, json=_QUESTION, timeout=aiohttp.ClientTimeout(_PATIENCE)) as response:
                await response.read()
                return str(response.status)
        except aiohttp.ClientConnectorError:
            return "refused"
        except TimeoutError:
            return "hung"
        except aiohttp.ClientError:
            return "closed"

    async def send_half(self) -> None:
        """Send half of a body before the signal and the rest a second after it."""
        body = json.dumps(_QUESTION).encode()
        async with self._connect() as (reader, writer):
            writer.write(self._head("POST", "/v1/chat/completions", len(body)) + body[:20])
            await self.stopping.wait()
            await asyncio.sleep(1)
            self.figures.halves[await self._exchange(reader, writer, body[20:])] += 1

    async def hold_connection(self) -> None:
        """Use a connection once, and again at some moment after the signal."""
        request = self._head("GET", "/live", 0)
        async with self._connect() as (reader, writer):
            assert await self._exchange(reader, writer, request, closes=False) == "200"
            self._count_begun()
            await self.stopping.wait()
            await asyncio.sleep(random.uniform(0, 2 * self.load.delay))
            self.figures.idle[await self._exchange(reader, writer, request)] += 1

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            yield reader, writer
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    def _count_begun(self) -> None:
        self.begun += 1
        if self.begun == self.load.streams + self.load.idle:
            self.ready.set()

    def _head(self, method: str, path: str, length: int) -> bytes:
        lines = [
            f"{method} {path} HTTP/1.1",
            f"Host: {self.host}",
            "Content-Type: application/json",
            f"Content-Length: {length}",
        ]
        return "\r\n".join([*lines, "", ""]).encode()

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes, *, closes: bool = True
    ) -> str:
        try:
            writer.write(data)
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _PATIENCE)
            await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]))
            if closes:
                says_close = b"connection: close" in head.lower()
                self.figures.open_after_answer += not says_close or bool(await asyncio.wait_for(reader.read(), 1))
            return head.split()[1].decode()
        except TimeoutError:
            return "hung"
        except (ConnectionError, asyncio.IncompleteReadError):
            return "closed"


async def run(load: Load, server: str = "dragoman") -> Figures:
    """Start a proxy, all clients, and stop it. `server` may name one of the reference servers."""
    figures = Figures()
    with TemporaryDirectory() as folder:
        async with listen(Upstream(load)) as port, _serve(Path(folder), load, port, server) as proxy:
            await _stop_under_load(Clients(proxy, load, figures), _get_stop(server))
    return figures


def _serve(folder: Path, load: Load, port: int, server: str) -> AbstractAsyncContextManager[ServingProcess]:
    if server in REFERENCE_SERVERS:
        return serve_reference(folder, REFERENCE_SERVERS[server], port)
    config = configure(port, server={"drain": {"delay": f"{load.delay}s", "timeout": "60s"}})
    config["providers"]["p"]["pool"] = {"connections": load.streams + load.workers + load.halves}
    return serve(folder, config)


async def _stop_under_load(clients: Clients, stop: signal.Signals) -> None:
    load, figures, proxy = clients.load, clients.figures, clients.proxy
    kinds = [(clients.read_stream, load.streams), (clients.work, load.workers)]
    kinds += [(clients.send_half, load.halves), (clients.hold_connection, load.idle)]
    async with asyncio.timeout(_LIMIT), asyncio.TaskGroup() as tasks:
        for begin, count in kinds:
            for _ in range(count):
                tasks.create_task(begin())
        await clients.ready.wait()
        proxy.send_signal(stop)
        while await _is_ready(proxy):
            pass
        clients.counter = figures.during
        clients.stopping.set()
        await asyncio.sleep(load.delay * 0.8)
        clients.counter = figures.after
    figures.status = await proxy.wait()
    figures.exit_after = time.monotonic() - clients.last_stream


def _get_stop(server: str) -> signal.Signals:
    return REFERENCE_SERVERS[server].stop if server in REFERENCE_SERVERS else signal.SIGTERM


async def _is_ready(proxy: ServingProcess) -> bool:
    try:
        return await proxy.get("/ready") == 200
    except aiohttp.ClientError:
        return False


def _print_figures(load: Load, figures: Figures) -> None:
    for name in ("before", "during", "after", "halves", "idle"):
        counts = ", ".join(f"{count} {result}" for result, count in sorted(getattr(figures, name).items()))
        print(f"{name:8}{counts or 'none'}")
    print(f"answers that do not close their connection: {figures.open_after_answer}; exit status {figures.status}")
    print(
        f"{figures.whole_streams} of {load.streams} streams finished, {figures.hung} requests hung, "
        f"{sum(figures.before.values()) - figures.before['200']} failed before readiness was down, "
        f"exit {figures.exit_after:.2f} s after the last stream"
    )


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("streams", "idle", "workers", "halves"):
        parser.add_argument(f"--{name}", type=int, default=getattr(Load, name))
    parser.add_argument("--server", choices=["dragoman", *REFERENCE_SERVERS], default="dragoman")
    options = vars(parser.parse_args())
    server = options.pop("server")
    load = Load(**options)
    _print_figures(load, asyncio.run(run(load, server)))


if __name__ == "__main__":
    _main()
