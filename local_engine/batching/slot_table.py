"""The slots of the KV cache: which ones are busy, and which prompt prefix each one can share with a new prompt.

A slot remembers the prompt tokens that prefill computed in it. Generated tokens are not reused: GroupQueryAttention
computes single tokens differently from prompts (kv_cache.py), and the same request must produce the same tokens
regardless of earlier requests. A new prompt starts from the longest remembered prefix, in place or copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["MIN_REUSED_TOKENS", "SlotAssignment", "SlotTable", "count_common_prefix"]

MIN_REUSED_TOKENS = 8
"""Tokens. A shorter common prefix is computed again, which costs less than the copy."""


@dataclass(frozen=True, slots=True)
class SlotAssignment:
    """The slot of a prompt. Its first `reused` tokens are already in `row`, or must be copied from row `source`."""

    row: int
    reused: int = 0
    source: int | None = None


@dataclass(slots=True)
class _Slot:
    tokens: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    busy: bool = False
    last_used: int = 0


def count_common_prefix(left: NDArray[np.int64], right: NDArray[np.int64]) -> int:
    """Count the tokens of the longest common prefix of two token sequences."""
    shorter = min(len(left), len(right))
    differs = left[:shorter] != right[:shorter]
    return int(differs.argmax()) if differs.any() else shorter


class SlotTable:
    """The state of all slots. With `reuse` False, no prefix is reused."""

    def __init__(self, count: int, *, reuse: bool = True) -> None:
        self._slots = [_Slot() for _ in range(count)]
        self._reuse = reuse
        self._releases = 0

    def is_idle(self, row: int) -> bool:
        return not self._slots[row].busy

    def assign(self, prompt: Sequence[int]) -> SlotAssignment | None:
        """Assign a slot to a prompt; None if all are busy.

        The last two tokens are never reused: prefill must compute at least two tokens.
        """
        idle = [row for row, slot in enumerate(self._slots) if not slot.busy]
        if not idle:
            return None
        assignment = self._select(np.array(prompt, np.int64), idle)
        slot = self._slots[assignment.row]
        slot.busy = True
        slot.tokens = np.array(prompt[: assignment.reused], np.int64)
        return assignment

    def _select(self, prompt: NDArray[np.int64], idle: list[int]) -> SlotAssignment:
        oldest = min(idle, key=lambda row: (len(self._slots[row].tokens) > 0, self._slots[row].last_used, row))
        length, best = self._find_longest_prefix(prompt) if self._reuse else (0, oldest)
        if length < MIN_REUSED_TOKENS:
            return SlotAssignment(oldest)
        if best in idle and (best == oldest or 2 * length >= len(self._slots[best].tokens)):
            return SlotAssignment(best, length)
        return SlotAssignment(oldest, length, best)

    def _find_longest_prefix(self, prompt: NDArray[np.int64]) -> tuple[int, int]:
        """Return the length and the row of the longest shared prefix. Idle rows are preferred to busy ones."""
        lengths = [min(count_common_prefix(slot.tokens, prompt), len(prompt) - 2) for slot in self._slots]
        best = max(range(len(lengths)), key=lambda row: (lengths[row], self.is_idle(row), -row))
        return lengths[best], best

    def record_prompt(self, row: int, tokens: Sequence[int]) -> None:
        """Record that the slot contains these prompt tokens."""
        self._slots[row].tokens = np.array(tokens, np.int64)

    def release(self, row: int, *, forget: bool = False) -> None:
        """Mark a slot as idle. With `forget`, its contents are not reused."""
        self._releases += 1
        slot = self._slots[row]
        slot.busy, slot.last_used = False, self._releases
        if forget or not self._reuse:
            slot.tokens = np.zeros(0, np.int64)

    def move(self, source: int, target: int) -> None:
        """Move the entry of a busy slot to an idle one, whose contents are lost. The old slot becomes idle."""
        if not self._slots[source].busy or self._slots[target].busy:
            raise ValueError(f"slot {source} cannot move to {target}")
        self._slots[target], self._slots[source] = self._slots[source], _Slot()
