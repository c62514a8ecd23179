"""Judges large requests in a process of its own, as long as such requests are refused.

A hostile body takes tens of milliseconds until it is refused, and a thread that works on it takes turns with the event
loop: whoever sends such bodies without a pause makes all others wait. So the first large request that is refused
starts a process, which then says of each one what is wrong with it. The proxy itself reads only what is right.

    calm       no large request was refused lately: there is no process, and large requests cost nothing more
    starting   one was refused: the process is being started, and does nothing yet
    judging    every large request goes to the process first
    calm       none was refused for CALM seconds: the process has ended, and its memory is free

If the process ends by itself, the request that it had is refused, since it may be the reason. If it cannot be started,
the thread of `large_bodies` does all the work, until it is calm again.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeAlias

import orjson

from dragoman.adapters.faults import Fault
from dragoman.adapters.long_values import LongValue
from dragoman.local_engine.large_pages import request_large_pages
from dragoman.proxy.http.large_body import LargeBody, list_pieces

from .judge_process import HEAD, read_fault

__all__ = ["CALM", "BodyJudge", "LongValues", "Question", "Report", "Verdict"]

CALM = 30.0
"""Seconds without a refused request after which the process ends."""

Question: TypeAlias = Mapping[str, Any]
"""The head of a request, in JSON values, as `judge_process.judge` takes it."""

LongValues: TypeAlias = Sequence[LongValue]
"""Those of a body, by which it is parsed in parts."""

Report: TypeAlias = Callable[..., None]
"""Logs an event with fields, as `Log.warning` does."""

_COMMAND = (sys.executable, "-P", "-m", "dragoman.proxy.exchange.judge_process")
_LONGEST = 10.0  # seconds that the process takes to start, or to answer
_TIMEVAL = struct.Struct("@ll")  # seconds and microseconds, as the system's sockets take them
_MOST_PIECES = 1024  # that the system takes at once (IOV_MAX)
_RETRY_AFTER = 1.0


class Verdict:
    """What the process says of a request: the fault that refuses it; or the long values of its body; or neither, if it
    is not known whether it is right JSON."""

    fault: Fault | None = None
    long_values: LongValues | None = None


class BodyJudge:
    """The process, and the thread that waits for it. Used inside one event loop. `report` logs what goes wrong."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._threads = ThreadPoolExecutor(1, "body-judge")
        self._process: _Process | None = None
        self._is_wanted = False
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    @property
    def is_ready(self) -> bool:
        """Whether there is a process that answers."""
        return self._process is not None

    def note_refusal(self) -> None:
        """Start the process because a large request was refused, or let it go on."""
        if self._is_closed:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(CALM, self._rest)
        if not self._is_wanted:
            self._is_wanted = True
            self._threads.submit(self._start)

    def submit(self, question: Question, body: bytes | LargeBody, verdict: Verdict) -> Future[None]:
        """Ask the process about a request. What it says is put into `verdict`."""
        return self._threads.submit(self._ask, question, body, verdict)

    def close(self) -> None:
        """End the process, also if it is at work."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._process is not None:
            self._process.kill()
        if self._is_wanted:
            self._threads.submit(self._end)
        self._threads.shutdown(wait=False)

    def _rest(self) -> None:
        self._threads.submit(self._end)

    # In the thread

    def _start(self) -> None:
        try:
            self._process = _Process()
        except OSError as error:
            self._report("body_judge", reason="it does not start", error=str(error))

    def _ask(self, question: Question, body: bytes | LargeBody, verdict: Verdict) -> None:
        if (process := self._process) is None:
            return
        try:
            process.ask(question, body, verdict)
        except OSError as error:
            self._end()
            if not self._is_closed:
                self._report("body_judge", reason="it has ended", error=str(error))
            text = "the process that judges large requests ended with this one"
            verdict.fault = Fault("overloaded", text, code="overloaded", retry_after=_RETRY_AFTER)
        if verdict.fault is not None and not isinstance(body, bytes):
            body.drop()

    def _end(self) -> None:
        process, self._process, self._is_wanted = self._process, None, False
        if process is not None:
            process.end()


class _Process:
    """A process that runs, and the socket to it. Every method raises OSError if it fails or takes too long."""

    def __init__(self) -> None:
        own, other = socket.socketpair()
        try:
            with other:
                env = request_large_pages(os.environ)
                self._popen = subprocess.Popen(_COMMAND, stdin=other.fileno(), stdout=subprocess.DEVNULL, env=env)
        except OSError:
            own.close()
            raise
        self._socket = own
        self.limit_waiting(_LONGEST)
        try:
            self._read()
        except OSError:
            self.end()
            raise

    def limit_waiting(self, seconds: float) -> None:
        """Let the system end each wait: what Python's own timeout does takes many calls for a large body."""
        for limit in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
            self._socket.setsockopt(socket.SOL_SOCKET, limit, _TIMEVAL.pack(int(seconds), int(seconds % 1 * 1_000_000)))

    def ask(self, question: Question, body: bytes | LargeBody, verdict: Verdict) -> None:
        """Find out what is wrong with a request."""
        head = json.dumps(question).encode()
        self._send(deque((HEAD.pack(len(head), len(body)) + head, *list_pieces(body))))
        answer = orjson.loads(self._read())
        if isinstance(answer, dict):
            verdict.fault = read_fault(answer)
        elif isinstance(answer, list):
            verdict.long_values = [LongValue(*one) for one in answer]

    def _send(self, pieces: deque[bytes | memoryview]) -> None:
        """Send all pieces in few calls: when one returns, the event loop waits until this thread makes the next."""
        while pieces:
            sent = self._socket.sendmsg(islice(pieces, _MOST_PIECES))
            while pieces and sent >= len(pieces[0]):
                sent -= len(pieces.popleft())
            if sent:
                pieces[0] = memoryview(pieces[0])[sent:]

    def _read(self) -> bytes:
        head = self._socket.recv(HEAD.size, socket.MSG_WAITALL)
        size, _ = HEAD.unpack(head) if len(head) == HEAD.size else (0, 0)
        answer = self._socket.recv(size, socket.MSG_WAITALL)
        if not answer or len(answer) < size:
            raise ConnectionError("it closed its socket")
        return answer

    def kill(self) -> None:
        """End it at once. Another thread may still wait for it."""
        self._popen.kill()

    def end(self) -> None:
        """End it, and free what it has."""
        self._popen.kill()
        self._popen.wait()
        self._socket.close()
