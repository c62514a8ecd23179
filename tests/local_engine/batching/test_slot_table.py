"""The slot table: which slot a prompt gets, and which prefix it reuses."""

from __future__ import annotations

from dragoman.local_engine.batching.slot_table import MIN_REUSED_TOKENS, SlotAssignment, SlotTable


def test_a_prompt_starts_from_the_longest_remembered_prefix() -> None:
    slots, text = SlotTable(3), list(range(100, 160))
    assert slots.assign(text) == SlotAssignment(0)
    slots.record_prompt(0, text)
    assert slots.assign([*text[:30], 1, 2]) == SlotAssignment(1, 30, 0), "copied from a busy slot"
    slots.record_prompt(1, [*text[:30], 1, 2])
    assert slots.assign([5] * 9) == SlotAssignment(2)
    assert slots.assign([1]) is None
    slots.release(0)
    slots.release(1)
    assert slots.assign([*text, 9]) == SlotAssignment(0, 59), "continued in place, but for the last two"
    assert slots.assign(text[: MIN_REUSED_TOKENS + 1]) == SlotAssignment(1), "too short to be worth it"
