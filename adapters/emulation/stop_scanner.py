"""Finds the first stop string in a text that arrives in pieces.

The first stop string is the one that is complete first, as for a server that looks after each character; of several
that are complete at the same character, it is the longest. Text is held back only as long as it may be the beginning of
a stop string, so at most one character less than the longest one has.
"""

from __future__ import annotations

__all__ = ["StopScanner"]


class StopScanner:
    """Scans one text. `keeps_stop`: the stop string is a part of the text that is passed on. `stop` is the first stop
    string, once it was found."""

    __slots__ = ("_held", "_keeps_stop", "_longest", "_stops", "stop")

    def __init__(self, stops: tuple[str, ...], *, keeps_stop: bool = False) -> None:
        self._stops = stops
        self._longest = max(map(len, stops))
        self._keeps_stop = keeps_stop
        self._held = ""
        self.stop: str | None = None

    @property
    def has_stopped(self) -> bool:
        """Whether a stop string was found."""
        return self.stop is not None

    def feed(self, text: str) -> str:
        """Return the text that can be passed on. After a stop string, `has_stopped` is true and nothing follows."""
        text = self._held + text
        found = self._find_stop(text)
        if found is not None:
            start, end = found
            self.stop, self._held = text[start:end], ""
            return text[: end if self._keeps_stop else start]
        at = len(text) - self._count_held(text)
        self._held = text[at:]
        return text[:at]

    def flush(self) -> str:
        """Return the text that was held back: no stop string follows."""
        held, self._held = self._held, ""
        return held

    def _find_stop(self, text: str) -> tuple[int, int] | None:
        found = [(at + len(stop), at) for stop in self._stops if (at := text.find(stop)) >= 0]
        if not found:
            return None
        end, start = min(found)
        return start, end

    def _count_held(self, text: str) -> int:
        for size in range(min(self._longest - 1, len(text)), 0, -1):
            tail = text[-size:]
            if any(stop.startswith(tail) for stop in self._stops):
                return size
        return 0
