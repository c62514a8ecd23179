"""Stop sequences: text is held back while it could be the start of one."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["StopSequenceScanner"]


class StopSequenceScanner:
    """Scans text incrementally and returns the part that is before any stop sequence."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ""
        self.found: str | None = None

    def add(self, text: str) -> str:
        """Add text; return what can be shown now. When `found` is set, nothing more is returned."""
        if self.found is not None:
            return ""
        if not self._stops:
            return text
        pending = self._held + text
        hits = [(pending.find(stop), -len(stop), stop) for stop in self._stops if stop in pending]
        if hits:
            at, _, self.found = min(hits)
            self._held = ""
            return pending[:at]
        held = max((_count_overlap(pending, stop) for stop in self._stops), default=0)
        self._held = pending[len(pending) - held :]
        return pending[: len(pending) - held]

    def finish(self) -> str:
        """End the text; return what was held back."""
        held, self._held = self._held, ""
        return held


def _count_overlap(text: str, stop: str) -> int:
    """Count the characters of the longest text end that is a proper prefix of the stop sequence."""
    return next((size for size in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:size])), 0)
