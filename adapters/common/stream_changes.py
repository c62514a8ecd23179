"""Records what a normalizer changes: the receipt itself for a whole reply, StreamChanges for a stream."""

from __future__ import annotations

from typing import Protocol

from dragoman.adapters.changes import Receipt, Weight
from dragoman.adapters.paths import Path

__all__ = ["ChangeRecorder", "StreamChanges"]

_NONE: frozenset[str] = frozenset()  # shared by all streams


class ChangeRecorder(Protocol):
    """The methods of a Receipt that normalizers use."""

    def record_conversion(self, path: Path, reason: str, weight: Weight = "form", after: Path | None = None) -> None:
        """Record that the value at `path` has another form now, or another place, `after`."""

    def record_fill(self, path: Path, reason: str) -> None:
        """Record that a missing value at `path` was filled in."""

    def record_drop(self, path: Path, reason: str, weight: Weight = "loss") -> None:
        """Record that the value at `path` was removed."""


class StreamChanges:
    """Records each reason once per stream, at the path where it occurs first, because the same change occurs in many
    chunks."""

    def __init__(self, receipt: Receipt) -> None:
        self._receipt = receipt
        self._recorded = _NONE

    def record_conversion(self, path: Path, reason: str, weight: Weight = "form", after: Path | None = None) -> None:
        """Record a reason if the stream has not had it."""
        if self._is_new(reason):
            self._receipt.record_conversion(path, reason, weight, after)

    def record_fill(self, path: Path, reason: str) -> None:
        """Record a reason if the stream has not had it."""
        if self._is_new(reason):
            self._receipt.record_fill(path, reason)

    def record_drop(self, path: Path, reason: str, weight: Weight = "loss") -> None:
        """Record a reason if the stream has not had it."""
        if self._is_new(reason):
            self._receipt.record_drop(path, reason, weight)

    def _is_new(self, reason: str) -> bool:
        if reason in self._recorded:
            return False
        self._recorded |= {reason}
        return True
