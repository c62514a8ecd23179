"""Memory goes back to the system once after each busy time."""

from __future__ import annotations

import sys

import pytest

from dragoman.proxy.config.models import ServerLimits
from dragoman.proxy.server.memory_return import MemoryReturn, find_trim
from dragoman.proxy.server.overload import OverloadGuard


def find_ends(peaks: list[int]) -> list[int]:
    """The positions at which a busy time is over."""
    left = iter(peaks)
    memory = MemoryReturn(lambda: next(left), None)
    return [position for position in range(len(peaks)) if memory.is_time_over()]


@pytest.mark.parametrize(
    ("peaks", "ends"),
    [
        ([0, 3, 1, 0], []),
        ([20, 40, 30, 11, 10, 0, 0], [4]),
        ([40, 0, 15, 3, 16, 4, 0], [1, 5]),
        ([100, 25, 24, 6, 0], [1, 3]),
    ],
    ids=["never busy", "once", "twice", "by steps"],
)
def test_a_busy_time_is_over_when_a_quarter_is_left(peaks: list[int], ends: list[int]) -> None:
    assert find_ends(peaks) == ends


def test_a_steady_load_is_no_end_however_few_requests_run_at_a_moment() -> None:
    guard = OverloadGuard(ServerLimits())
    memory = MemoryReturn(guard.take_peak, None)
    for _ in range(3):
        for in_flight in (3, 40, 0):
            guard.judge(in_flight)
        assert not memory.is_time_over()
    assert memory.is_time_over()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have other C libraries")
def test_the_c_library_gives_memory_back() -> None:
    trim = find_trim()
    assert trim is None or trim() in (0, 1)
