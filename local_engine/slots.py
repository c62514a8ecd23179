"""Who sits in which slot, and what of an earlier prompt can be reused there.

A slot remembers the prompt tokens that prefill computed in it; what was generated behind them is not reused, since
single tokens are computed in another way than prompts (kv.py) and the same request must give the same tokens whatever
came before it. A new prompt starts from the longest remembered beginning, in its slot or copied from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["LEAST_REUSE", "Place", "Slots", "common"]

LEAST_REUSE = 8
"""Tokens: a shorter common beginning is computed again, which costs less than the copy."""


@dataclass(frozen=True, slots=True)
class Place:
    """A slot for a prompt. Its first `kept` tokens are there, or are to be copied from `source`."""

    row: int
    kept: int = 0
    source: int | None = None


@dataclass(slots=True)
class _Slot:
    tokens: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    busy: bool = False
    used: int = 0


def common(left: NDArray[np.int64], right: NDArray[np.int64]) -> int:
    """How many tokens two texts begin with in common."""
    shorter = min(len(left), len(right))
    differs = left[:shorter] != right[:shorter]
    return int(differs.argmax()) if differs.any() else shorter


class Slots:
    """The table of slots. `reuse` False never reuses anything."""

    def __init__(self, count: int, *, reuse: bool = True) -> None:
        self._slots = [_Slot() for _ in range(count)]
        self._reuse = reuse
        self._clock = 0

    @property
    def free(self) -> int:
        return sum(not slot.busy for slot in self._slots)

    def idle(self, row: int) -> bool:
        return not self._slots[row].busy

    def take(self, prompt: Sequence[int]) -> Place | None:
        """A slot for a prompt, None if all are busy. The two last tokens are never reused: a run of them is needed."""
        idle = [row for row, slot in enumerate(self._slots) if not slot.busy]
        if not idle:
            return None
        place = self._choose(np.array(prompt, np.int64), idle)
        slot = self._slots[place.row]
        slot.busy = True
        slot.tokens = np.array(prompt[: place.kept], np.int64)
        return place

    def _choose(self, prompt: NDArray[np.int64], idle: list[int]) -> Place:
        oldest = min(idle, key=lambda row: (len(self._slots[row].tokens) > 0, self._slots[row].used, row))
        kept, best = self._longest(prompt) if self._reuse else (0, oldest)
        if kept < LEAST_REUSE:
            return Place(oldest)
        if best in idle and (best == oldest or 2 * kept >= len(self._slots[best].tokens)):
            return Place(best, kept)
        return Place(oldest, kept, best)

    def _longest(self, prompt: NDArray[np.int64]) -> tuple[int, int]:
        """Length and row of the longest beginning; an idle row before a busy one."""
        lengths = [min(common(slot.tokens, prompt), len(prompt) - 2) for slot in self._slots]
        best = max(range(len(lengths)), key=lambda row: (lengths[row], self.idle(row), -row))
        return lengths[best], best

    def computed(self, row: int, tokens: Sequence[int]) -> None:
        """The slot now holds these prompt tokens."""
        self._slots[row].tokens = np.array(tokens, np.int64)

    def release(self, row: int, *, forget: bool = False) -> None:
        self._clock += 1
        slot = self._slots[row]
        slot.busy, slot.used = False, self._clock
        if forget or not self._reuse:
            slot.tokens = np.zeros(0, np.int64)

    def move(self, source: int, target: int) -> None:
        """The sequence of a busy slot now sits in an idle one, whose memory is lost; its old slot is empty."""
        if not self._slots[source].busy or self._slots[target].busy:
            raise ValueError(f"slot {source} cannot move to {target}")
        self._slots[target], self._slots[source] = self._slots[source], _Slot()
