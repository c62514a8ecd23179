"""What the page keeps of exchanges is bounded, whatever clients send."""

from __future__ import annotations

import pytest

from dragoman.adapters.changes import Receipt
from dragoman.proxy.telemetry.inspector import Inspector
from dragoman.proxy.telemetry.record import ExchangeRecord

LIMIT = 1024 * 1024


def end_exchange(inspector: Inspector, number: int, path: str, changes: int) -> None:
    record = ExchangeRecord(f"id-{number}", "openai", "chat")
    inspector.begin(record, path)
    record.receipt = Receipt()
    for place in range(changes):
        record.receipt.record_drop(("messages", place, "name"), "the target lacks it")
    inspector.end(record)


@pytest.mark.parametrize(
    ("path", "changes", "most"),
    [
        ("/v1/chat/completions", 0, 409),
        ("/v1/chat/completions", 1_000, 3),
        ("/v1/chat/completions?" + "x" * 8000, 0, 99),
    ],
    ids=["usual", "many changes", "a long address"],
)
def test_receipts_and_addresses_count(path: str, changes: int, most: int) -> None:
    inspector = Inspector("off", LIMIT, is_used=True)
    for number in range(500):
        end_exchange(inspector, number, path, changes)
    assert inspector.count <= most
    assert inspector.size <= LIMIT
    assert inspector.count + inspector.dropped == 500


@pytest.mark.parametrize("has_ended", [False, True])
def test_a_replay_that_is_over_is_not_expected_any_more(has_ended: bool) -> None:
    """It may have been refused before an exchange began; another request may have its id."""
    inspector = Inspector("off", LIMIT, is_used=True)
    inspector.expect_replay("id-1", "id-0")
    if has_ended:
        inspector.forget_replay("id-1")
    end_exchange(inspector, 1, "/v1/chat/completions", 0)
    found = inspector.find("id-1")
    assert found is not None
    assert found.replayed_from == (None if has_ended else "id-0")
