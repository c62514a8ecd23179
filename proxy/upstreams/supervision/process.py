"""One server process: its start in a private folder, its health checks, its end.

It runs in a session of its own, so that Ctrl-C reaches only the proxy, which drains first. Its standard input is a pipe
that nobody writes to: when the proxy ends for any reason, the pipe closes, and the server stops. Each line that the
server prints is passed to `log_line`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import aiohttp
import orjson

from dragoman.proxy.upstreams.errors import CLIENT_ERRORS

__all__ = ["Command", "ServerProcess", "environment_without_secrets", "isolated_environment"]

_MAX_LINES = 20  # the latest lines that it printed
_MAX_LINE = 1 << 20  # bytes
_GRACE = 5.0  # seconds
_POLL = (0.01, 0.25)  # seconds between two health checks before it is ready: the first, the longest
_BEAT = 1.0  # seconds between two health checks when it is ready
_SECRETS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")
_PYTHON_VARIABLES = ("PATH", "LANG")
_HEALTH = "http://server/health"


@dataclass(frozen=True, slots=True)
class Command:
    """The command line of a server, to which `--attached --socket PATH` is added, and its environment."""

    arguments: Sequence[str]
    make_environment: Callable[[Path], Mapping[str, str]]
    """Called with the server's private folder before every start."""
    in_private_folder: bool = False
    """Whether the private folder is the working folder too."""


def environment_without_secrets(folder: Path) -> dict[str, str]:
    """This process's environment without the variables whose names look like those of credentials."""
    return {name: value for name, value in os.environ.items() if not any(word in name.upper() for word in _SECRETS)}


def isolated_environment(folder: Path) -> dict[str, str]:
    """Only the variables that Python needs. HOME is the private folder."""
    kept = {name: os.environ[name] for name in _PYTHON_VARIABLES if name in os.environ}
    if paths := [str(Path(part).absolute()) for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]:
        kept["PYTHONPATH"] = os.pathsep.join(paths)
    return {**kept, "HOME": str(folder)}


class ServerProcess:
    """A running server. `last_lines` are the latest lines of its output, `statistics` what it last said of itself."""

    statistics: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, process: asyncio.subprocess.Process, socket: Path, log_line: Callable[[str], None]) -> None:
        self.last_lines: deque[str] = deque(maxlen=_MAX_LINES)
        self._process = process
        self._socket = socket
        self._log_line = log_line
        self._output = asyncio.ensure_future(self._read_output())

    @classmethod
    async def start(cls, command: Command, socket: Path, log_line: Callable[[str], None]) -> ServerProcess:
        """Start the process. Raises OSError if it cannot be created."""
        process = await asyncio.create_subprocess_exec(
            *command.arguments,
            "--attached",
            "--socket",
            str(socket),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=command.make_environment(socket.parent),
            cwd=socket.parent if command.in_private_folder else None,
            start_new_session=True,
            limit=_MAX_LINE,
        )
        return cls(process, socket, log_line)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def wait_until_ready(self) -> dict[str, Any] | None:
        """Wait until /health answers 200, and return its reply; None if the process ends before that."""
        ended = asyncio.ensure_future(self.wait_for_end())
        pause, longest = _POLL
        try:
            async with aiohttp.ClientSession(connector=self._create_connector()) as session:
                while not ended.done():
                    health = await _fetch_health(session)
                    if health is not None:
                        return health
                    await asyncio.wait((ended,), timeout=pause)
                    pause = min(longest, 2 * pause)
        finally:
            ended.cancel()
        return None

    async def watch_health(self, limit: float) -> str:
        """Check /health until it reports a failure, or an answer or a step takes longer than `limit` seconds, and
        return the reason."""
        timeout = aiohttp.ClientTimeout(total=limit)
        async with aiohttp.ClientSession(connector=self._create_connector(), timeout=timeout) as session:
            while True:
                await asyncio.sleep(min(_BEAT, limit / 2))
                try:
                    async with session.get(_HEALTH) as answer:
                        health = orjson.loads(await answer.read())
                except TimeoutError:
                    return f"no answer for {limit:g} s"
                except CLIENT_ERRORS:
                    continue  # if it has ended, `wait_for_end` returns
                self.statistics = health
                if health.get("failed") is not None:
                    return str(health["failed"])
                if health.get("step_seconds", 0) > limit:
                    return f"a step has been running for {health['step_seconds']:.0f} s; the limit is {limit:g} s"

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def _create_connector(self) -> aiohttp.UnixConnector:
        return aiohttp.UnixConnector(str(self._socket))

    async def wait_for_end(self) -> int:
        """Wait for the end and the rest of the output. Returns the exit status, negative for a signal."""
        status = await self._process.wait()
        await asyncio.wait((self._output,), timeout=1)
        return status

    async def stop(self) -> None:
        """Close its standard input, and kill it if it has not ended 5 s later."""
        stdin = self._process.stdin
        assert stdin is not None
        stdin.close()
        try:
            async with asyncio.timeout(_GRACE):
                await self._process.wait()
        except TimeoutError:
            self.kill()
            await self._process.wait()
        await asyncio.wait((self._output,), timeout=1)
        self._output.cancel()

    async def _read_output(self) -> None:
        output = self._process.stdout
        assert output is not None
        while True:
            try:
                line = await output.readline()
            except ValueError:
                line = b"(a line too long to show)\n"
            if not line:
                return
            text = line.decode("utf-8", "replace").rstrip()
            self.last_lines.append(text)
            self._log_line(text)


async def _fetch_health(session: aiohttp.ClientSession) -> dict[str, Any] | None:
    try:
        async with session.get(_HEALTH) as answer:
            found: dict[str, Any] | None = orjson.loads(await answer.read()) if answer.status == 200 else None
            return found
    except CLIENT_ERRORS:
        return None  # it does not listen yet
