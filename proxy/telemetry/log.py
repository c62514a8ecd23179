"""The log: one line on standard error for each event, one event for each exchange. Secrets are masked."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Mapping
from traceback import format_exception
from typing import Any, BinaryIO, TypeAlias

import orjson

from .mask import Mask

__all__ = ["Log", "create_log"]

_LEVELS = ("debug", "info", "warning", "error", "critical")
"""There are no critical events: at this level the log is empty."""

_WORD = re.compile(r"[^\s\"'=\\]+")
"""A text that needs no quotes in a line of the style console."""

Renderer: TypeAlias = Callable[[dict[str, Any]], bytes]


class Log:
    """Writes each event as one line, with one write. Every exchange writes one, so speed matters.

    An event is a word with fields. If the field `exc_info` is an exception, its traceback is written.
    """

    def __init__(self, mask: Mask, render: Renderer, level: str, stream: BinaryIO) -> None:
        self._mask = mask
        self._render = render
        self._stream = stream
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

    def write_exchange(self, line: dict[str, Any]) -> None:
        """Do what `info("exchange", **line)` does, without copying the line: it is altered."""
        self._write(1, "exchange", line)

    def _write(self, level: int, event: str, line: dict[str, Any]) -> None:
        if level < self._min_level:
            return
        line["event"] = event
        line["level"] = _LEVELS[level]
        line["timestamp"] = self._timestamp()
        if (error := line.pop("exc_info", None)) is not None:
            line["exception"] = "".join(format_exception(error)).rstrip()
        self._stream.write(self._mask(self._render(line)) + b"\n")
        self._stream.flush()

    def _timestamp(self) -> str:
        now = time.time()
        second = int(now)
        if second != self._second:
            self._second, self._stamp = second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._stamp}.{int((now - second) * 1000):03d}Z"


def create_log(mask: Mask, style: str = "json", level: str = "info", stream: BinaryIO | None = None) -> Log:
    """A log that writes to `stream`, by default to standard error. `style` is json or console."""
    return Log(mask, _RENDERERS[style], level, stream or sys.stderr.buffer)


def _render_json(line: dict[str, Any]) -> bytes:
    return orjson.dumps(line, default=str)


def _render_console(line: dict[str, Any]) -> bytes:
    """The time, the level, the event, then `name=value` for each field. Unprintable characters are escaped, so that no
    value can send commands to a terminal."""
    head = [str(line.pop("timestamp")), f"{line.pop('level'):<8}", str(line.pop("event"))]
    text = " ".join([*head, *(f"{name}={_quote_value(value)}" for name, value in line.items())])
    return "".join(map(_escape_unprintable, text)).encode()


def _quote_value(value: Any) -> str:
    if isinstance(value, str) and _WORD.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def _escape_unprintable(character: str) -> str:
    return character if character.isprintable() else f"\\u{ord(character):04x}"


_RENDERERS: Mapping[str, Renderer] = {"json": _render_json, "console": _render_console}
