"""What the page keeps of exchanges is bounded, whatever clients send."""

from __future__ import annotations

import time
from itertools import islice

import pytest

from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
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


def test_an_exchange_that_runs_is_there_when_someone_looks() -> None:
    """In the order in which they began, with the time of then, whichever has ended first."""
    inspector = Inspector("heads", LIMIT, is_used=True)
    records = [ExchangeRecord(f"id-{number}", "openai", "chat") for number in range(3)]
    before = time.time()
    for record in records:
        inspector.begin_recording(record, "POST", "/v1/chat/completions", ())
        inspector.begin(record, "/v1/chat/completions")
    records[1].end()
    inspector.end(records[1])
    kept = [*inspector.list_newest()]
    assert kept == records[::-1]
    assert [one.number for one in kept] == [3, 2, 1]
    assert [one.has_ended for one in kept] == [False, True, False]
    assert all((found := one.unfold_recording()) is not None and found.request.head is not None for one in kept)
    assert all(abs(one.began - before) < 5 for one in kept)
    assert inspector.find("id-2") is kept[0]


def test_exchanges_that_nobody_has_looked_at_are_bounded() -> None:
    inspector = Inspector("off", LIMIT, is_used=True)
    records = [ExchangeRecord(f"id-{number}", "openai", "chat") for number in range(2_000)]
    for record in records:
        inspector.begin(record, "/v1/chat/completions")
    assert inspector.size <= LIMIT
    assert inspector.count + inspector.dropped == len(records)
    assert [*islice(inspector.list_newest(), 10)] == records[:-11:-1]


def test_if_recording_is_switched_off_the_latest_exchanges_stay() -> None:
    inspector = Inspector("heads", 64 * LIMIT, is_used=True)
    for number in range(1_500):
        end_exchange(inspector, number, "/v1/chat/completions", 0)
    assert inspector.count == 1_500
    inspector.configure("off", 64 * LIMIT, is_used=True)
    assert [one.number for one in inspector.list_newest()] == [*range(1_500, 500, -1)]


def test_an_exchange_that_runs_is_dropped_as_any_other() -> None:
    inspector = Inspector("bodies", LIMIT, is_used=True)
    record = ExchangeRecord("first", "openai", "chat")
    inspector.begin_recording(record, "POST", "/v1/chat/completions", [(b"name", b"x" * 1_000)])
    inspector.begin(record, "/v1/chat/completions")
    for number in range(500):
        end_exchange(inspector, number, "/v1/chat/completions", 0)
    assert inspector.find("first") is None
    assert inspector.size <= LIMIT
    inspector.end(record)
    assert record.recording is None


def test_a_try_with_a_record_of_its_own_changes_nothing_in_the_list() -> None:
    """It may begin before the exchange has its place, and end when more of the exchange is kept."""
    inspector = Inspector("off", LIMIT, is_used=True)
    record = ExchangeRecord("id", "openai", "chat")
    inspector.begin(record, "/v1/chat/completions?a")
    attempt = record.fork("p/m", Receipt())
    assert inspector.count == 1
    size = record.kept_bytes
    record.join(attempt)
    assert (record.number, record.kept_bytes, record.target) == (1, size, "p/m")
    assert size == inspector.size > 0


def test_what_is_left_of_a_fault_is_in_the_list() -> None:
    inspector = Inspector("off", LIMIT, is_used=True)
    record = ExchangeRecord("id", "openai", "chat")
    inspector.begin(record, "/v1/chat/completions")
    record.record_fault(Fault("overloaded", "try again later"))
    record.end()
    assert record.has_ended
    assert (record.fault_code, record.fault_message) == ("overloaded", "try again later")  # the page's thread may look
    inspector.end(record)
    record.release()
    (kept,) = inspector.list_newest()
    assert (kept.fault, kept.fault_code, kept.fault_message) == (None, "overloaded", "try again later")
