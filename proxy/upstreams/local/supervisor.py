"""Keeps one engine process running.

    state      event                        next
    stopped    start                        starting
    starting   /health says ready           ready
    starting   the process ends             the first time: EngineError; later: waiting
    ready      the process ends             waiting
    ready      it hangs, or has failed      killed, so it ends
    waiting    the pause is over            starting
    any        stop                         stopped

The first pause is none at all; each further end within a minute of being ready doubles it, up to half a minute.

An engine hangs when /health does not answer, or one step takes longer, than `step_timeout`.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dragoman.adapters.faults import Fault
from dragoman.proxy.telemetry.log import Log

from .process import EngineProcess

__all__ = ["EngineError", "Supervisor", "private_folder"]

PATIENCE = 60.0
"""Seconds that a request waits for an engine that is being restarted."""

_PAUSES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
_STEADY = 60.0
_NOTICE = 1.0
_LONGEST_PATH = 100  # bytes; a socket's address holds 104 or 108


class EngineError(Exception):
    """The engine cannot start; the text says why."""


class Supervisor:
    """One engine. `start` it inside the event loop, `stop` it at the end; both once. `step_timeout` is in seconds."""

    def __init__(self, name: str, arguments: Sequence[str], step_timeout: float) -> None:
        self.name = name
        self.step_timeout = step_timeout
        self.folder = private_folder()
        self.socket = self.folder / "engine.sock"
        self.health: dict[str, Any] = {}
        self.restarts = 0
        self._arguments = arguments
        self._up = asyncio.Event()
        self._down = asyncio.Event()
        self._process: EngineProcess | None = None
        self._watch: asyncio.Task[None] | None = None
        self._log: Log | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def start(self, log: Log) -> dict[str, Any]:
        """What /health tells once the model is there. Raises EngineError."""
        self._log = log
        process = await self._launched()
        if not self._up.is_set():
            raise EngineError(_why(process, await process.ended()))
        self._watch = asyncio.ensure_future(self._keep(process))
        return self.health

    async def ready(self) -> None:
        """Wait for a running engine. Raises Fault."""
        if self._up.is_set():
            return
        try:
            async with asyncio.timeout(PATIENCE):
                await self._up.wait()
        except TimeoutError:
            text = f"the engine {self.name} is not running; the log tells why"
            raise Fault("upstream_unavailable", text, code="engine_down", retry_after=10) from None

    async def lost(self) -> None:
        """A connection broke: if that was the engine's end, see it before anyone asks again."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_NOTICE):
                await self._down.wait()

    async def stop(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait((self._watch,))
        self._up.clear()
        if self._process is not None:
            await self._process.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    async def _keep(self, process: EngineProcess) -> None:
        failures = 0
        while True:
            since = time.monotonic()
            pulse = asyncio.ensure_future(self._end_if_useless(process))
            try:
                status = await process.ended()
            finally:
                pulse.cancel()
            self._up.clear()
            self._down.set()
            failures = 0 if time.monotonic() - since > _STEADY else failures
            pause = _PAUSES[min(failures, len(_PAUSES) - 1)]
            failures += 1
            self._told("engine_ended", reason=_why(process, status), restart_in=pause)
            await asyncio.sleep(pause)
            await process.stop()
            process = await self._restarted(process)

    async def _end_if_useless(self, process: EngineProcess) -> None:
        reason = await process.useless(self.step_timeout)
        self._up.clear()
        self._told("engine_stuck", reason=reason)
        process.kill()

    async def _restarted(self, before: EngineProcess) -> EngineProcess:
        self.restarts += 1
        try:
            return await self._launched()
        except EngineError as error:
            self._told("engine_not_started", reason=str(error))
            return before  # has ended, so the next pause begins at once

    async def _launched(self) -> EngineProcess:
        """A process that is ready, or that has ended."""
        try:
            process = await EngineProcess.start(self._arguments, self.socket, self._say)
        except OSError as error:
            raise EngineError(f"no process can be started: {error.strerror or error}") from None
        self._process = process
        health = await process.ready()
        if health is not None:
            self.health = health
            self._down.clear()
            self._up.set()
        return process

    def _say(self, line: str) -> None:
        if self._log is not None:
            self._log.info("engine", provider=self.name, text=line)

    def _told(self, event: str, **words: Any) -> None:
        if self._log is not None:
            self._log.error(event, provider=self.name, **words)


def private_folder() -> Path:
    """A new folder that only this user can enter, with a path short enough for a socket in it."""
    folder = Path(tempfile.mkdtemp(prefix="dragoman-"))
    if len(bytes(folder)) < _LONGEST_PATH - len("/engine.sock"):
        return folder
    folder.rmdir()
    return Path(tempfile.mkdtemp(prefix="dragoman-", dir="/tmp"))


def _why(process: EngineProcess, status: int) -> str:
    errors = [line for line in process.said if line.startswith("error: ")]
    if status == 2 and errors:
        return errors[-1].removeprefix("error: ")
    how = f"was ended by {_signal(-status)}" if status < 0 else f"ended with status {status}"
    return f"the engine {how}" + (f"; it said: {process.said[-1]}" if process.said else "")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
