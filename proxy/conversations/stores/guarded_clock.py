"""The time of day for a store, which no sudden change of the system's clock can make delete everything.

The system's clock may be wrong for a moment: it is set by hand, by a program, or by a broken time server. So it is
compared with the time that has passed. If it departs from that by more than `TOLERANCE`, the time goes on as before,
and the change counts only after it has held for `PROOF`. Nobody has measured what passed between the last time that the
store knows and a start of the process. If that is more than `TOLERANCE`, both times count until the proof: what is
stored gets the later one, so that it is not deleted too early, and nothing is deleted that is young by the earlier one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["PROOF", "TOLERANCE", "ClockState", "GuardedClock", "measure_time"]

TOLERANCE = 300.0
"""Seconds by which the clock may be set without a proof."""

PROOF = 3600.0
"""Seconds for which a larger change has to hold."""

_BOOT_TIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def measure_time() -> float:
    """Seconds that no one can set. They pass while the machine sleeps too, if the system can tell."""
    return time.clock_gettime(_BOOT_TIME)


@dataclass(frozen=True, slots=True)
class ClockState:
    """What a restart has to know: the last trusted time, and since when the clock has shown another one; both in
    seconds since 1970, the second by the doubted clock, None if there is no doubt."""

    known_at: float
    doubted_at: float | None = None


class GuardedClock:
    """`bounds` of the time are the same, except after a start with a doubted clock.

    `wall` returns seconds since 1970, `measure` seconds from any moment. `report` gets a sentence if a doubt begins, or
    ends, while the process runs.
    """

    def __init__(
        self,
        report: Callable[[str], None],
        wall: Callable[[], float] = time.time,
        measure: Callable[[], float] = measure_time,
    ) -> None:
        self._report = report
        self._wall = wall
        self._measure = measure
        self._trusted = wall() - measure()  # distance of the trusted time from the measured one
        self._doubted: float | None = None  # the same for the system's clock, if it shows another time
        self._doubted_at = 0.0
        self._is_measured = True  # the trusted time has been measured all the while

    def resume(self, state: ClockState) -> None:
        """Go on from the time that the store knows."""
        now, measured = self._wall(), self._measure()
        if abs(now - state.known_at) <= TOLERANCE:
            return
        self._trusted, self._is_measured = state.known_at - measured, False
        self._doubted, self._doubted_at = now - measured, now
        began = state.doubted_at
        if began is not None and (state.known_at < began <= now or began <= now < state.known_at):
            self._doubted_at = began  # a restart does not begin the proof again

    def get_state(self) -> ClockState:
        """What `resume` needs after a restart."""
        known_at = self._look() + self._trusted
        return ClockState(known_at, None if self._doubted is None else self._doubted_at)

    def bounds(self) -> tuple[float, float]:
        """The time that it is at least, and at most. What is old by the first may be deleted; what is stored now gets
        the second."""
        measured = self._look()
        candidates = self._list_candidates()
        return measured + min(candidates), measured + max(candidates)

    def _list_candidates(self) -> tuple[float, ...]:
        if self._is_measured or self._doubted is None:
            return (self._trusted,)
        return (self._trusted, self._doubted)

    def _look(self) -> float:
        """Compare the clocks, and return the measured time."""
        now, measured = self._wall(), self._measure()
        distance = now - measured
        if abs(distance - self._trusted) <= TOLERANCE:
            if self._doubted is not None:
                self._report("the system's clock is right again")
            self._trust(distance)
        elif self._doubted is None or abs(distance - self._doubted) > TOLERANCE:
            self._doubted, self._doubted_at = distance, now
            self._report(_describe_jump(distance - self._trusted))
        elif now - self._doubted_at >= PROOF:
            if self._is_measured:
                self._report("the system's clock counts again: its new time has held for an hour")
            self._trust(distance)
        return measured

    def _trust(self, distance: float) -> None:
        self._trusted, self._doubted, self._is_measured = distance, None, True


def _describe_jump(seconds: float) -> str:
    direction = "ahead" if seconds > 0 else "back"
    text = f"the system's clock has jumped {abs(seconds) / 3600:.1f} hours {direction}"
    return f"{text}; until the new time has held for an hour, responses age by the time that passes"
