"""The supervisor of a server process: it restarts the process if it ends or hangs.

    state      event                          next
    stopped    start                          starting
    starting   /health says ready             ready
    starting   the process ends               the first time: EngineError; later: waiting
    ready      the process ends               waiting
    ready      it hangs, or reports failure   killed, so it ends
    waiting    the pause is over              starting
    any        stop                           stopped

The first restart follows at once. Each further end within a minute of being ready doubles the pause before the next
restart, up to half a minute.

A server hangs if /health does not answer, or one step takes longer, than `hang_timeout`.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dragoman.adapters.faults import Fault
from dragoman.proxy.telemetry.log import Log

from .process import Command, ServerProcess

__all__ = ["EngineError", "Supervisor", "create_private_folder"]

READY_TIMEOUT = 60.0
"""Seconds that a request waits for a server that restarts."""

_PAUSES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
_STEADY = 60.0  # seconds of being ready after which failures count from 0 again
_DETECT_TIMEOUT = 5.0  # seconds until a broken connection is no sign of an end
_MAX_PATH = 100  # bytes; a socket's address holds 104 or 108


class EngineError(Exception):
    """The server cannot start; the text says why."""


class Supervisor:
    """One server, shared by the upstreams that call it. Each upstream is a user; removing the last user stops the
    server.

    `start` it once, inside the event loop. `hang_timeout` is in seconds.
    """

    def __init__(self, name: str, command: Command, hang_timeout: float) -> None:
        self.name = name
        self.command = command
        self.hang_timeout = hang_timeout
        self.folder = create_private_folder()
        self.socket = self.folder / "server.sock"
        self.health: dict[str, Any] = {}
        self.restarts = 0
        self.is_started = False
        self.is_stopped = False
        self._users = 0
        self._up = asyncio.Event()
        self._down = asyncio.Event()
        self._process: ServerProcess | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._log: Log | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def statistics(self) -> Mapping[str, Any]:
        """What the running process last said of itself, at most a second ago; empty if it has said nothing."""
        return {} if self._process is None else self._process.statistics

    async def start(self, log: Log) -> dict[str, Any]:
        """Start the process, wait until it is ready, and return its /health. Raises EngineError."""
        self._log = log
        self.is_started = True
        process = await self._launch()
        if not self._up.is_set():
            raise EngineError(_describe_end(process, await process.wait_for_end()))
        self._keeper = asyncio.ensure_future(self._keep_running(process))
        return self.health

    def add_user(self) -> None:
        self._users += 1

    async def remove_user(self) -> None:
        """Stop the server if this was its last user."""
        self._users -= 1
        if self._users == 0:
            await self._stop()

    async def wait_until_ready(self) -> None:
        """Wait until the server is ready. Raises Fault."""
        if self._up.is_set():
            return
        try:
            async with asyncio.timeout(READY_TIMEOUT):
                await self._up.wait()
        except TimeoutError:
            text = f"{self.name}: the process is not running; the log says why"
            raise Fault("upstream_unavailable", text, code="engine_down", retry_after=10) from None

    async def detect_end(self) -> None:
        """After a broken connection: wait until it is known whether the process has ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_DETECT_TIMEOUT):
                await self._down.wait()

    async def _stop(self) -> None:
        self.is_stopped = True
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait((self._keeper,))
        self._up.clear()
        if self._process is not None:
            await self._process.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    async def _keep_running(self, process: ServerProcess) -> None:
        failures = 0
        while True:
            since = time.monotonic()
            pulse = asyncio.ensure_future(self._kill_if_stuck(process))
            try:
                status = await process.wait_for_end()
            finally:
                pulse.cancel()
            self._up.clear()
            self._down.set()
            failures = 0 if time.monotonic() - since > _STEADY else failures
            pause = _PAUSES[min(failures, len(_PAUSES) - 1)]
            failures += 1
            self._log_error("engine_ended", reason=_describe_end(process, status), restart_in=pause)
            await asyncio.sleep(pause)
            await process.stop()
            process = await self._restart(process)

    async def _kill_if_stuck(self, process: ServerProcess) -> None:
        reason = await process.watch_health(self.hang_timeout)
        self._up.clear()
        self._log_error("engine_stuck", reason=reason)
        process.kill()

    async def _restart(self, before: ServerProcess) -> ServerProcess:
        self.restarts += 1
        try:
            return await self._launch()
        except EngineError as error:
            self._log_error("engine_not_started", reason=str(error))
            return before  # it has ended, so the next pause begins at once

    async def _launch(self) -> ServerProcess:
        """Start a process and wait until it is ready or has ended."""
        try:
            process = await ServerProcess.start(self.command, self.socket, self._log_line)
        except OSError as error:
            raise EngineError(f"no process can be started: {error.strerror or error}") from None
        self._process = process
        health = await process.wait_until_ready()
        if health is not None:
            self.health = health
            self._down.clear()
            self._up.set()
        return process

    def _log_line(self, line: str) -> None:
        if self._log is not None:
            self._log.info("engine", provider=self.name, text=line)

    def _log_error(self, event: str, **fields: Any) -> None:
        if self._log is not None:
            self._log.error(event, provider=self.name, **fields)


def create_private_folder() -> Path:
    """A new folder that only this user can enter, with a path short enough for a socket in it."""
    folder = Path(tempfile.mkdtemp(prefix="dragoman-"))
    if len(bytes(folder)) < _MAX_PATH - len("/server.sock"):
        return folder
    folder.rmdir()
    return Path(tempfile.mkdtemp(prefix="dragoman-", dir="/tmp"))


def _describe_end(process: ServerProcess, status: int) -> str:
    errors = [line for line in process.last_lines if line.startswith("error: ")]
    if status == 2 and errors:
        return errors[-1].removeprefix("error: ")
    how = f"was killed by {_signal_name(-status)}" if status < 0 else f"ended with status {status}"
    return f"the process {how}" + (f"; its last line: {process.last_lines[-1]}" if process.last_lines else "")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
