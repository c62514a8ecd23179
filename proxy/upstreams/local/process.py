"""One engine process: started in a private folder, asked whether it is ready, stopped.

It runs in a session of its own, so that Ctrl-C reaches the proxy alone, which drains first. Its standard input is a
pipe that nobody writes to: when this process ends, however it ends, the pipe does, and the engine with it. What the
engine prints goes to `say`, line by line. It gets no variable that looks like a credential.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from dragoman.local_engine.large_pages import request_large_pages
from dragoman.proxy.upstreams.errors import ERRORS

__all__ = ["COMMAND", "EngineProcess"]

COMMAND = (sys.executable, "-P", "-m", "dragoman.local_engine.serve")

_KEPT = 20  # lines of what it said last
_LONGEST = 1 << 20  # bytes of a line
_GRACE = 5.0
_POLL = (0.01, 0.25)  # seconds between two questions, growing
_BEAT = 1.0  # seconds between two questions of one that is ready
_SECRETS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")


class EngineProcess:
    def __init__(self, process: asyncio.subprocess.Process, socket: Path, say: Callable[[str], None]) -> None:
        self.said: deque[str] = deque(maxlen=_KEPT)
        self._process = process
        self._socket = socket
        self._say = say
        self._pump = asyncio.ensure_future(self._listen())

    @classmethod
    async def start(cls, arguments: Sequence[str], socket: Path, say: Callable[[str], None]) -> EngineProcess:
        """Raises OSError where no process can be made."""
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            "--attached",
            "--socket",
            str(socket),
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=request_large_pages({name: value for name, value in os.environ.items() if not _is_secret(name)}),
            start_new_session=True,
            limit=_LONGEST,
        )
        return cls(process, socket, say)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ready(self) -> dict[str, Any] | None:
        """What /health tells once the model is there; None where the process ends before that."""
        ended = asyncio.ensure_future(self.ended())
        pause, longest = _POLL
        try:
            async with aiohttp.ClientSession(connector=self._connector()) as session:
                while not ended.done():
                    health = await _health(session)
                    if health is not None:
                        return health
                    await asyncio.wait((ended,), timeout=pause)
                    pause = min(longest, 2 * pause)
        finally:
            ended.cancel()
        return None

    async def useless(self, longest: float) -> str:
        """Wait until it has failed, or an answer or a step takes longer than `longest` seconds; says which."""
        limit = aiohttp.ClientTimeout(total=longest)
        async with aiohttp.ClientSession(connector=self._connector(), timeout=limit) as session:
            while True:
                await asyncio.sleep(min(_BEAT, longest / 2))
                try:
                    async with session.get("http://engine/health") as answer:
                        health = orjson.loads(await answer.read())
                except TimeoutError:
                    return f"no answer for {longest:g} s (step_timeout)"
                except ERRORS:
                    continue  # its end is seen elsewhere
                if health.get("failed") is not None:
                    return str(health["failed"])
                if health.get("step_seconds", 0) > longest:
                    return f"a step has been running for {health['step_seconds']:.0f} s (step_timeout: {longest:g})"

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def _connector(self) -> aiohttp.UnixConnector:
        return aiohttp.UnixConnector(str(self._socket))

    async def ended(self) -> int:
        """Wait for the end, and for the last of what was said; the exit status, negative for a signal."""
        status = await self._process.wait()
        await asyncio.wait((self._pump,), timeout=1)
        return status

    async def stop(self) -> None:
        """Close the pipe; what has not ended 5 s later is killed."""
        stdin = self._process.stdin
        assert stdin is not None
        stdin.close()
        try:
            async with asyncio.timeout(_GRACE):
                await self._process.wait()
        except TimeoutError:
            self.kill()
            await self._process.wait()
        await asyncio.wait((self._pump,), timeout=1)
        self._pump.cancel()

    async def _listen(self) -> None:
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
            self.said.append(text)
            self._say(text)


async def _health(session: aiohttp.ClientSession) -> dict[str, Any] | None:
    try:
        async with session.get("http://engine/health") as answer:
            found: dict[str, Any] | None = orjson.loads(await answer.read()) if answer.status == 200 else None
            return found
    except ERRORS:
        return None  # it does not listen yet


def _is_secret(name: str) -> bool:
    return any(word in name.upper() for word in _SECRETS)
