"""Shows log lines as short ones."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import orjson

from dragoman.proxy.cli.payload.output import print_lines
from dragoman.proxy.telemetry.short_line import format_short

from .filters import Filter

__all__ = ["show"]

_STYLES = {"warning": "yellow", "error": "bold red", "debug": "dim"}


def show(lines: Iterable[bytes], chosen: Filter) -> None:
    """Print the chosen lines to standard output as they come. What is no JSON is printed as it is if nothing is left
    out."""
    for line in lines:
        text = line.rstrip(b"\r\n").decode("utf-8", "replace")
        event = _parse(line)
        if event is None:
            shown = [("", text)] if text and chosen.takes_all else []
        else:
            shown = [(_STYLES.get(str(event.get("level")), ""), format_short(event))] if chosen.accepts(event) else []
        print_lines(shown, sys.stdout)


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None
