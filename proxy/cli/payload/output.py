"""Output: payloads go to standard output unaltered, remarks to standard error. Only terminals get colors, and none of
the characters that they would obey."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from typing import Any, TextIO

import orjson

from dragoman.proxy.cli.terminal import remove_controls

__all__ = ["format_json", "print_json", "print_lines", "write_bytes"]

_CONTROLS = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")  # in UTF-8, all but tab and line feed


def format_json(value: Any) -> str:
    """A JSON value on several lines."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def write_bytes(data: bytes) -> None:
    """Write bytes to standard output, and flush it."""
    sys.stdout.flush()
    sys.stdout.buffer.write(_CONTROLS.sub(b"", data) if sys.stdout.isatty() else data)
    sys.stdout.buffer.flush()


def print_json(value: Any) -> None:
    """Print a JSON value to standard output."""
    if _has_color(sys.stdout):
        from rich.highlighter import JSONHighlighter
        from rich.text import Text

        _print_styled(sys.stdout, JSONHighlighter()(Text(remove_controls(format_json(value)))))
    else:
        write_bytes(format_json(value).encode() + b"\n")


def print_lines(lines: Iterable[tuple[str, str]], stream: TextIO | None = None) -> None:
    """Print lines to `stream`, by default to standard error. A line is a pair of a style, "" for none, and a text."""
    stream = stream or sys.stderr
    has_color = _has_color(stream)
    for style, text in lines:
        text = _make_printable(text, stream.encoding)
        if has_color and style:
            from rich.text import Text

            _print_styled(stream, Text(text, style))
        else:
            print(text, file=stream, flush=True)


def _has_color(stream: TextIO) -> bool:
    return stream.isatty() and "NO_COLOR" not in os.environ


def _print_styled(stream: TextIO, text: Any) -> None:
    from rich.console import Console

    Console(file=stream, soft_wrap=True, highlight=False).print(text)


def _make_printable(text: str, encoding: str) -> str:
    """Replace characters that a terminal might obey, line ends excepted, and escape those that it cannot show."""
    text = "".join(char if char.isprintable() or char == "\n" else "\N{REPLACEMENT CHARACTER}" for char in text)
    return text.encode(encoding, "backslashreplace").decode(encoding)
