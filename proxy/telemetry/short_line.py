"""Log events as short lines for people: `12:01:07 fast -> lakehouse 200 1.2 s 312+88 tok -seed`.

They show what a JSON line of the log says, so what a terminal gets and what `dragoman tail` makes of a file are the
same. Every event can be shown; nothing is escaped here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeAlias

__all__ = ["format_short"]

Line: TypeAlias = Mapping[str, Any]

_WORD = re.compile(r"[^\s\"'=\\]+")
"""A text that needs no quotes."""
_HEAD = frozenset({"timestamp", "level", "event"})
_MARKS = {"dropped": "-", "clamped": "~", "converted": "~", "filled": "+", "emulated": "*"}
_MOST_CHANGES = 5
_MOST_TEXT = 120  # characters of a message


def format_short(line: Line, quote: Callable[[Any], str] = json.dumps) -> str:
    """The line of an event. `quote` makes JSON text of any value."""
    head = _format_time(str(line.get("timestamp", "")))
    event, level = line.get("event"), str(line.get("level", ""))
    if event == "exchange":
        return " ".join([head, *_list_exchange_words(line)])
    if event == "refused" and "path" in line:
        return " ".join([head, *_list_refusal_words(line)])
    if event == "model_list":
        return " ".join([head, *_list_listing_words(line)])
    words = [f"{name}={_quote_word(value, quote)}" for name, value in line.items() if name not in _HEAD]
    return " ".join([head, *([level] if level not in ("", "info") else []), str(event), *words])


def _list_exchange_words(line: Line) -> Iterator[str]:
    """Model, provider, status, duration, tokens, losses, then what went wrong."""
    target = _text(line.get("target"))
    where = _text(line.get("model")) or _text(line.get("path")) or _text(line.get("protocol"))
    yield f"{where} -> {target.partition('/')[0]}" if target else where
    if key := _text(line.get("key")):
        yield f"[{key}]"
    yield _text(line.get("status")) or "-"
    yield _format_duration(line.get("duration_ms"))
    if "tokens_in" in line or "tokens_out" in line:
        yield f"{line.get('tokens_in', '?')}+{line.get('tokens_out', '?')} tok"
    yield from _list_losses(line)
    if isinstance(attempts := line.get("attempts"), int) and attempts > 1:
        yield f"{attempts} tries"
    if line.get("outcome") == "client_left":
        yield "the client left"
    if fault := _text(line.get("fault")):
        yield f"{fault}: {_shorten(_text(line.get('message')))}"


def _list_listing_words(line: Line) -> Iterator[str]:
    """Whose client asked which models there are."""
    yield f"list of models for {_text(line.get('dialect'))}"
    if key := _text(line.get("key")):
        yield f"[{key}]"


def _list_refusal_words(line: Line) -> Iterator[str]:
    """Method, path, status and the reason."""
    yield f"{_text(line.get('method'))} {_text(line.get('path'))}"
    yield f"{_text(line.get('status'))} {_text(line.get('fault'))}"
    if message := _text(line.get("message")):
        yield _shorten(message)


def _list_losses(line: Line) -> Iterator[str]:
    """What was lost, and what was emulated, by path. Nothing about changes that keep the meaning."""
    changes, count = line.get("changes"), 0
    if isinstance(changes, Mapping):  # a running proxy counts them, and lists the first ones
        count = changes.get("loss") or 0
        changes = line.get("losses")
    found = [one for one in changes if isinstance(one, Mapping)] if isinstance(changes, list) else []
    shown = [one for one in found if one.get("weight") == "loss" or one.get("action") == "emulated"]
    for change in shown[:_MOST_CHANGES]:
        path = _text(change.get("before")) or _text(change.get("after")) or _text(change.get("reason"))
        yield f"{_MARKS.get(_text(change.get('action')), '~')}{path}"
    if (more := max(len(shown), count) - min(len(shown), _MOST_CHANGES)) > 0:
        yield f"and {more} more" if shown else f"{more} lost"


def _format_time(timestamp: str) -> str:
    """The local time of an RFC 3339 timestamp, to the second; what is no timestamp stays."""
    try:
        return datetime.fromisoformat(timestamp).astimezone().strftime("%H:%M:%S")
    except (ValueError, OverflowError):
        return timestamp


def _format_duration(milliseconds: Any) -> str:
    if not isinstance(milliseconds, (int, float)):
        return "-"
    seconds = milliseconds / 1000
    return f"{milliseconds:.0f} ms" if seconds < 0.1 else f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def _quote_word(value: Any, quote: Callable[[Any], str]) -> str:
    return value if isinstance(value, str) and _WORD.fullmatch(value) else quote(value)


def _shorten(text: str) -> str:
    first = text.partition("\n")[0]
    return first if len(first) <= _MOST_TEXT else f"{first[: _MOST_TEXT - 3]}..."


def _text(value: Any) -> str:
    return "" if value is None else str(value)
