"""Timers that mostly never fire, in groups that share one timer of the event loop.

Each exchange has a timer, and nearly all are stopped long before their time. To put one into a set and to take it out
again costs a fraction of what a timer of the event loop does. The members of a group are woken some seconds before
their time; what is left of it they wait for with a timer of their own, so that nothing is late.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

__all__ = ["Sleeper", "find_group"]

_TURN = 5.0  # seconds of the event loop's clock that belong to one group


class Sleeper(Protocol):
    """A member of a group. It may leave the group at any time."""

    def wake(self) -> None:
        """The time has nearly come. The group has no members any more."""


class _Wheel:
    """The groups of one event loop, by the number of their turn."""

    __slots__ = ("_groups", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._groups: dict[int, set[Sleeper]] = {}

    def find_group(self, when: float) -> set[Sleeper] | None:
        turn = int(when / _TURN)
        group = self._groups.get(turn)
        if group is None and turn * _TURN > self.loop.time():
            group = self._groups[turn] = set()
            self.loop.call_at(turn * _TURN, self._wake, turn)
        return group

    def _wake(self, turn: int) -> None:
        group = self._groups.pop(turn)
        while group:
            group.pop().wake()


_latest: _Wheel | None = None  # a process has one event loop; one that has several makes more wheels than it needs


def find_group(loop: asyncio.AbstractEventLoop, when: float) -> set[Sleeper] | None:
    """The group to join for a time of the running loop's clock; None if that is near: then use a timer."""
    global _latest
    if _latest is None or _latest.loop is not loop:
        _latest = _Wheel(loop)
    return _latest.find_group(when)
