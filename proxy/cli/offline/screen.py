"""Where output goes: payloads to standard output as they are, remarks to standard error. Colours only on a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any, TextIO

import orjson

__all__ = ["pretty", "put", "put_json", "say"]


def pretty(value: Any) -> str:
    """A JSON value over several lines."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def put(data: bytes) -> None:
    """Bytes to standard output, at once."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def put_json(value: Any) -> None:
    """A JSON value to standard output."""
    if _colored(sys.stdout):
        from rich.highlighter import JSONHighlighter
        from rich.text import Text

        _print(sys.stdout, JSONHighlighter()(Text(pretty(value))))
    else:
        put(pretty(value).encode() + b"\n")


def say(lines: Iterable[tuple[str, str]], stream: TextIO | None = None) -> None:
    """Lines to standard error, or to `stream`: pairs of a style, empty for none, and a text."""
    stream = stream or sys.stderr
    colored = _colored(stream)
    for style, text in lines:
        text = _clean(text, stream.encoding)
        if colored and style:
            from rich.text import Text

            _print(stream, Text(text, style))
        else:
            print(text, file=stream, flush=True)


def _colored(stream: TextIO) -> bool:
    return stream.isatty() and "NO_COLOR" not in os.environ


def _print(stream: TextIO, text: Any) -> None:
    from rich.console import Console

    Console(file=stream, soft_wrap=True, highlight=False).print(text)


def _clean(text: str, encoding: str) -> str:
    """A mark for each character that a terminal might obey, and an escape for what it cannot show; line ends stay."""
    text = "".join(char if char.isprintable() or char == "\n" else "\N{REPLACEMENT CHARACTER}" for char in text)
    return text.encode(encoding, "backslashreplace").decode(encoding)
