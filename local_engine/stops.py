"""Stop strings: text is held back as long as it could be the beginning of one."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["StopScanner"]


class StopScanner:
    """Feed it text; it gives back what is certain to stand before any stop string."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ""
        self.found: str | None = None

    def add(self, text: str) -> str:
        """The text that may be shown now. Once `found` is set, that was the last."""
        if self.found is not None:
            return ""
        if not self._stops:
            return text
        whole = self._held + text
        hits = [(whole.find(stop), -len(stop), stop) for stop in self._stops if stop in whole]
        if hits:
            at, _, self.found = min(hits)
            self._held = ""
            return whole[:at]
        kept = max((_overlap(whole, stop) for stop in self._stops), default=0)
        self._held = whole[len(whole) - kept :]
        return whole[: len(whole) - kept]

    def finish(self) -> str:
        """What was held back, at the end of the text."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """The longest end of the text that the stop string begins with, shorter than the stop string itself."""
    return next((size for size in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:size])), 0)
