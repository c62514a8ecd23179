"""Records what a normalizer changes: the receipt itself for a whole reply, StreamChanges for a stream."""

from __future__ import annotations

from typing import Protocol

from dragoman.adapters.changes import Receipt, Weight
from dragoman.adapters.paths import Path

__all__ = ["ChangeRecorder", "StreamChanges"]


class ChangeRecorder(Protocol):
    """The methods of a Receipt that normalizers use."""

    def record_conversion(self, path: Path, reason: str, weight: Weight = "form", after: Path | None = None) -> None:
        """Record that the value at `path` has another form now, or another place, `after`."""

    def record_fill(self, path: Path, reason: str) -> None:
        """Record that a missing value at `path` was filled in."""

    def record_drop(self, path: Path, reason: str, weight: Weight = "loss") -> None:
        """Record that the value at `path` was removed."""


class StreamChanges:
    """Records each reason once per stream, at one path, because the same change occurs in many chunks."""

    def __init__(self, receipt: Receipt, place: Path) -> None:
        self._receipt = receipt
        self._place = place
        self._recorded: set[str] = set()

    def record_conversion(self, path: Path, reason: str, weight: Weight = "form", after: Path | None = None) -> None:
        """Record a reason if the stream has not had it; `path` and `after` are ignored."""
        if reason not in self._recorded:
            self._recorded.add(reason)
            self._receipt.record_conversion(self._place, reason, weight)

    def record_fill(self, path: Path, reason: str) -> None:
        """Record a reason as a conversion."""
        self.record_conversion(path, reason)

    def record_drop(self, path: Path, reason: str, weight: Weight = "loss") -> None:
        """Record a reason as a conversion of this weight."""
        self.record_conversion(path, reason, weight)
