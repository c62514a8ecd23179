"""Writing lines to a file descriptor in a thread, so that whoever writes a line never waits and never fails.

A pipe that nobody reads blocks its writer, a full disk and a closed pipe fail it. Here only the thread waits, and the
lines wait in a queue of limited size. If the queue is full, new lines are dropped and counted; at their place, one line
says how many they were. What could not be written is tried again, so a short failure loses nothing.
"""

from __future__ import annotations

import io
import os
import select
import threading
import time
from collections.abc import Callable

from .rendering import escape_unprintable

__all__ = ["LineWriter", "QueuedText"]

_CAPACITY = 4 * 1024**2  # bytes of the lines that wait
_GATHER = 0.02  # seconds between two writes, so that many lines share one
_RETRY = 0.25  # seconds after a failed write
_PATIENCE = 1.0  # seconds that `close` waits for a reader


class LineWriter:
    """Writes lines to `descriptor`, in order. Any thread may call its methods. The thread ends with the process.

    `describe_drops` makes the line for a number of dropped lines. `capacity` is in bytes.
    """

    def __init__(self, descriptor: int, describe_drops: Callable[[int], bytes], capacity: int = _CAPACITY) -> None:
        self._descriptor = descriptor
        self._describe_drops = describe_drops
        self._capacity = capacity
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._lines: list[bytes] = []
        self._size = 0  # bytes of the lines that are not written, including those that are being written
        self._dropped = 0
        self._is_waiting = False
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> None:
        """Queue a line, which ends with a line feed. Never waits, never raises."""
        with self._lock:
            if self._dropped or self._size + len(line) > self._capacity:
                self._dropped += 1
                return
            self._lines.append(line)
            self._size += len(line)
            wakes, self._is_waiting = self._is_waiting, False
        if wakes:
            self._wake.set()

    def close(self) -> None:
        """Write what is queued. Gives up after a second if nobody reads, and at once if writing fails."""
        with self._lock:
            self._is_closing = True
        self._wake.set()
        self._thread.join(_PATIENCE)

    def _run(self) -> None:
        while True:
            lines, size, dropped = self._take()
            if lines or dropped:
                notice = self._describe_drops(dropped) if dropped else b""
                self._write_all(b"".join((*lines, notice)))
                with self._lock:
                    self._size -= size
                time.sleep(0 if self._is_closing else _GATHER)
            elif self._is_closing:
                return
            else:
                self._wake.wait()

    def _take(self) -> tuple[list[bytes], int, int]:
        """The queued lines, their size, and how many were dropped after them. If there are none, the next line wakes
        the thread."""
        with self._lock:
            lines, self._lines = self._lines, []
            dropped, self._dropped = self._dropped, 0
            if not lines and not dropped:
                self._is_waiting = True
                self._wake.clear()
            return lines, sum(map(len, lines)), dropped

    def _write_all(self, data: bytes) -> None:
        """Write all bytes, however long that takes; when closing, until the first failure."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:  # whoever made the pipe has made it non-blocking
                self._wait_until_writable()
            except OSError:
                if self._is_closing:
                    return
                time.sleep(_RETRY)

    def _wait_until_writable(self) -> None:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        poll.poll(_RETRY * 1000)


class QueuedText(io.TextIOBase):
    """Text, such as a `print` or a warning of a library, on its way to a LineWriter. Control characters in it
    are escaped."""

    def __init__(self, writer: LineWriter) -> None:
        self._writer = writer
        self._begun = ""  # of a line

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._writer.write(escape_unprintable(line).encode() + b"\n")
        return len(text)
