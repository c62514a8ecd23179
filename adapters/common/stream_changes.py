"""Recording what a normalizer changes: the same calls for a whole reply, which has its receipt, and for a stream."""

from __future__ import annotations

from typing import Protocol

from dragoman.adapters.changes import Receipt, Weight
from dragoman.adapters.paths import Path

__all__ = ["ChangeRecorder", "StreamChanges"]


class ChangeRecorder(Protocol):
    """The part of a Receipt that normalizers write to: see there."""

    def record_conversion(
        self, path: Path, reason: str, weight: Weight = "form", after: Path | None = None
    ) -> None: ...

    def record_fill(self, path: Path, reason: str) -> None: ...

    def record_drop(self, path: Path, reason: str, weight: Weight = "loss") -> None: ...


class StreamChanges:
    """Records each reason once per stream, at one place: the same change happens to chunk after chunk."""

    def __init__(self, receipt: Receipt, place: Path) -> None:
        self._receipt = receipt
        self._place = place
        self._recorded: set[str] = set()

    def record_conversion(self, path: Path, reason: str, weight: Weight = "form", after: Path | None = None) -> None:
        if reason not in self._recorded:
            self._recorded.add(reason)
            self._receipt.record_conversion(self._place, reason, weight)

    def record_fill(self, path: Path, reason: str) -> None:
        self.record_conversion(path, reason)

    def record_drop(self, path: Path, reason: str, weight: Weight = "loss") -> None:
        self.record_conversion(path, reason, weight)
