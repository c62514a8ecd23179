"""`dragoman serve` as a process of its own, between clients and a scripted upstream."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

import aiohttp

from dragoman.contract.json_types import JsonObject, JsonValue
from tests.ports import find_free_port
from tests.resilience.reference_servers import ReferenceServer

__all__ = ["MAIN", "ServingProcess", "configure", "listen", "serve", "serve_reference"]

_PATIENCE = 60.0  # seconds; a process that is slower hangs
MAIN = "from dragoman.proxy.cli.main import main; main()"


class ServingProcess:
    """A running proxy. `url` is its address, `session` a client's pool of connections to it."""

    def __init__(self, process: subprocess.Popen[bytes], url: str, session: aiohttp.ClientSession) -> None:
        self.process = process
        self.url = url
        self.session = session

    async def ask(self, **body: JsonValue) -> tuple[int, bytes]:
        """The status and the whole body of an answer."""
        payload = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **body}
        async with self.session.post(f"{self.url}/v1/chat/completions", json=payload) as response:
            return response.status, await response.read()

    async def get(self, path: str) -> int:
        """The status of the answer to a GET."""
        async with self.session.get(self.url + path) as response:
            return response.status

    def send_signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def wait(self) -> int:
        """The exit status."""
        return await asyncio.to_thread(self.process.wait, _PATIENCE)


def configure(port: int, **more: JsonValue) -> JsonObject:
    """A configuration whose model "m" leads to the upstream at this port."""
    server = {"drain": {"delay": "10ms", "timeout": "30s"}, **more.pop("server", {})}
    providers = {"p": {"dialect": "openai", "base_url": f"http://127.0.0.1:{port}/v1"}}
    models = {"m": {"targets": [{"provider": "p"}]}}
    return {"server": server, "providers": providers, "models": models, "store": {"kind": "none"}, **more}


@asynccontextmanager
async def listen(
    handler: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[int]:
    """Serve connections with the handler; gives the port. In the end, wait until the other side has closed them."""
    connections: set[asyncio.Task[None]] = set()

    async def serve_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handler(reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(asyncio.create_task(serve_connection(reader, writer)))

    server = await asyncio.start_server(connect, "127.0.0.1", 0, backlog=1024)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.gather(*connections)


@asynccontextmanager
async def serve(
    folder: Path,
    config: JsonObject,
    *options: str,
    stderr: int | IO[bytes] | None = None,
    env: Mapping[str, str] | None = None,
    prelude: str = "",
) -> AsyncIterator[ServingProcess]:
    """Run the process. Its standard error is the file `stderr.log` in `folder`, if none is given. It runs the code
    `prelude` first."""
    file, port = folder / "dragoman.yaml", find_free_port()
    file.write_text(json.dumps(config))
    command = [sys.executable, "-c", prelude + MAIN, "serve", "--config", str(file), "--port", str(port), *options]
    process = _spawn(command, folder / "stderr.log", stderr, {**os.environ, **(env or {})})
    async with _watch(process, port) as proxy:
        yield proxy


@asynccontextmanager
async def serve_reference(folder: Path, server: ReferenceServer, upstream: int) -> AsyncIterator[ServingProcess]:
    """Run nginx or HAProxy."""
    port = find_free_port()
    process = _spawn(server.write_command(folder, port, upstream), folder / "stderr.log", None, os.environ)
    async with _watch(process, port) as proxy:
        yield proxy


@asynccontextmanager
async def _watch(process: subprocess.Popen[bytes], port: int) -> AsyncIterator[ServingProcess]:
    try:
        await _wait_until_listening(port, process)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            yield ServingProcess(process, f"http://127.0.0.1:{port}", session)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.to_thread(process.wait)


def _spawn(
    arguments: list[str], file: Path, stderr: int | IO[bytes] | None, env: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    with file.open("ab") as log:
        return subprocess.Popen(arguments, stderr=stderr or log, env=env, start_new_session=True)


async def _wait_until_listening(port: int, process: subprocess.Popen[bytes]) -> None:
    while True:
        assert process.poll() is None, f"the proxy has not started: status {process.returncode}"
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        await asyncio.sleep(0.02)
