"""The log: one line on standard error for each event, one event for each exchange. Secrets are masked."""

from __future__ import annotations

import sys
import time
from io import BytesIO
from traceback import format_exception
from typing import Any, Literal, Protocol, TypeAlias

from .mask import Mask
from .rendering import RENDERERS, Renderer

__all__ = ["Level", "Log", "LogOutput", "create_log", "render_drops"]

Level: TypeAlias = Literal["debug", "info", "warning", "error"]

_LEVELS = ("debug", "info", "warning", "error", "critical")
"""There are no critical events: at this level the log is empty."""


class LogOutput(Protocol):
    """Takes the lines of a log, without waiting and without raising."""

    def write(self, line: bytes, /) -> object: ...


class Log:
    """Writes each event as one line. Every exchange writes one, so speed matters.

    An event is a word with fields. If the field `exc_info` is an exception, its traceback is written.
    """

    def __init__(self, mask: Mask, render: Renderer, level: str, output: LogOutput) -> None:
        self._mask = mask
        self._render = render
        self._output = output
        self._min_level = _LEVELS.index(level)
        self._second = 0
        self._stamp = ""

    def debug(self, event: str, **fields: Any) -> None:
        self._write(0, event, fields)

    def info(self, event: str, **fields: Any) -> None:
        self._write(1, event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._write(2, event, fields)

    def error(self, event: str, **fields: Any) -> None:
        self._write(3, event, fields)

    def write_event(self, level: Level, event: str, line: dict[str, Any], at: float | None = None) -> None:
        """Write an event of this level, without copying the line: it is altered. It happened `at` so many seconds since
        1970, or now."""
        self._write(_LEVELS.index(level), event, line, at)

    def _write(self, level: int, event: str, line: dict[str, Any], at: float | None = None) -> None:
        if level < self._min_level:
            return
        line["event"] = event
        line["level"] = _LEVELS[level]
        line["timestamp"] = self._timestamp(time.time() if at is None else at)
        if (error := line.pop("exc_info", None)) is not None:
            line["exception"] = "".join(format_exception(error)).rstrip()
        self._output.write(self._mask(self._render(line)) + b"\n")

    def _timestamp(self, now: float) -> str:
        second = int(now)
        if second != self._second:
            self._second, self._stamp = second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._stamp}.{int((now - second) * 1000):03d}Z"


def create_log(mask: Mask, style: str = "json", level: str = "info", output: LogOutput | None = None) -> Log:
    """A log that writes to `output`, by default to standard error. `style` is json or console."""
    return Log(mask, RENDERERS[style], level, output or _StandardError())


def render_drops(style: str, count: int) -> bytes:
    """The line that replaces `count` lines that a full queue has dropped. `style` is json or console."""
    output = BytesIO()
    create_log(Mask(), style, output=output).warning("log_dropped", lines=count, message=f"{count} lines were dropped")
    return output.getvalue()


class _StandardError:
    """For programs that embed dragoman. Writing waits as long as standard error does."""

    def write(self, line: bytes) -> None:
        sys.stderr.buffer.write(line)
        sys.stderr.flush()
