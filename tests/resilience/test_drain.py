"""Stopping under load: what runs ends, what is idle is closed, and nothing hangs."""

from __future__ import annotations

from tests.resilience.drain import Load, run

LOAD = Load(streams=50, idle=10, workers=4, halves=5, events=30, delay=0.4)


async def test_what_runs_ends_and_nothing_hangs() -> None:
    figures = await run(LOAD)
    assert figures.whole_streams == LOAD.streams
    assert figures.hung == 0
    assert set(figures.before) == set(figures.during) == {"200"}
    assert set(figures.after) <= {"200", "closed", "refused"}
    assert figures.halves == {"200": LOAD.halves}
    assert set(figures.idle) <= {"200", "closed"}
    assert figures.open_after_answer == 0
    assert figures.status == 0
    assert figures.exit_after < 1.0
