"""Incremental framing of server-sent events: bytes in, items out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Event", "Item", "Stray"]


@dataclass(frozen=True, slots=True)
class Event:
    """One dispatched event: its data lines joined by LF, and the value of its `event` field (empty: none)."""

    data: bytes
    event: bytes = b""


@dataclass(frozen=True, slots=True)
class Stray:
    """One line that is no SSE field: bare JSON, bare text, an error page. SSE parsers skip it; we must not."""

    text: bytes


Item: TypeAlias = Event | Stray
