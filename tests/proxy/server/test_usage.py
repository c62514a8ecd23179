"""What keys have used: counted in memory, written to the store, and read from it again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from dragoman.adapters.faults import Fault
from dragoman.proxy.config.client_keys import Budget
from dragoman.proxy.config.traffic import Price
from dragoman.proxy.conversations.stores.interface import StoreError
from dragoman.proxy.conversations.stores.memory import MemoryStore
from dragoman.proxy.routing.budgets import KeyBudget
from dragoman.proxy.server.usage_writer import UsageWriter
from dragoman.proxy.telemetry.record import ExchangeRecord
from dragoman.proxy.telemetry.usage_ledger import UsageLedger
from dragoman.proxy.telemetry.usage_rows import UsageRow


class Clock:
    """A clock that is set by hand."""

    def __init__(self, text: str) -> None:
        self.set(text)

    def set(self, text: str) -> None:
        self.now = datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock("2027-01-31T12:00:00")


@pytest.fixture
def ledger(clock: Clock) -> UsageLedger:
    return UsageLedger(clock)


def create_writer(ledger: UsageLedger) -> UsageWriter:
    """A writer whose errors fail the test."""
    return UsageWriter(ledger, pytest.fail)


def make_record(key: str | None, given: int = 10, made: int = 5, **more: object) -> ExchangeRecord:
    record = ExchangeRecord("id", "openai", "chat")
    record.key, record.model, record.target, record.attempts = key, "m", "p/up", 1
    record.usage = {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}
    for name, value in more.items():
        setattr(record, name, value)
    record.end()
    return record


def test_tries_that_failed_are_counted_but_not_their_tokens(ledger: UsageLedger) -> None:
    ledger.count(make_record("a", attempts=3))
    ledger.count(make_record("a", usage=None, attempts=2))
    assert ledger.take_rows() == [UsageRow("2027-01-31", "a", "m", "p/up", 2, 10, 5, 0, 0.0, 5)]


def test_exchanges_are_added_up_by_key(ledger: UsageLedger) -> None:
    price = Price(input=2.0, output=10.0)
    for key in ("a", "a", "b", None):
        ledger.count(make_record(key, price=price))
    ledger.count(make_record("a", target=None))
    used = {key: ledger.find(key) for key in ("a", "b", "", "c")}
    assert {key: (one.day_tokens, one.month_tokens) for key, one in used.items()} == {
        "a": (30, 30),
        "b": (15, 15),
        "": (15, 15),
        "c": (0, 0),
    }
    assert used["a"].month_cost == pytest.approx(2 * (10 * 2 + 5 * 10) / 1e6)


def test_cached_tokens_have_a_price_of_their_own() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 0, "prompt_tokens_details": {"cached_tokens": 80}}
    cheap = make_record("a", usage=usage, price=Price(input=10, output=0, cached=1))
    assert cheap.cost == pytest.approx((20 * 10 + 80 * 1) / 1e6)
    assert make_record("a", usage=usage, price=Price(input=10, output=0)).cost == pytest.approx(100 * 10 / 1e6)
    assert make_record("a", usage=usage).cost is None


def test_days_and_months_begin_at_zero(ledger: UsageLedger, clock: Clock) -> None:
    ledger.count(make_record("a"))
    assert (ledger.find("a").day_tokens, ledger.find("a").month_tokens) == (15, 15)
    clock.set("2027-02-02T00:00:00")
    assert (ledger.find("a").day_tokens, ledger.find("a").month_tokens) == (0, 0)
    ledger.count(make_record("a"))
    assert ledger.find("a").day_tokens == 15
    clock.set("2027-02-03T00:00:00")
    assert (ledger.find("a").day_tokens, ledger.find("a").month_tokens) == (0, 15)


async def test_each_day_has_its_rows(ledger: UsageLedger, clock: Clock) -> None:
    store, writer = MemoryStore(), create_writer(ledger)
    await writer.open(store)
    ledger.count(make_record("a"))
    await writer.flush()
    clock.set("2027-02-01T00:00:01")
    await writer.flush()
    ledger.count(make_record("a"))
    ledger.count(make_record("a"))
    await writer.close()
    assert await store.load_usage("2027-01-01") == [
        UsageRow("2027-01-31", "a", "m", "p/up", 1, 10, 5, 0, 0.0, 1),
        UsageRow("2027-02-01", "a", "m", "p/up", 2, 20, 10, 0, 0.0, 2),
    ]


async def test_a_ledger_begins_with_what_is_stored(ledger: UsageLedger, clock: Clock) -> None:
    store = MemoryStore()
    rows = [UsageRow(day, "a", "m", "p/up", 1, 10, 5, 0, 1.5, 1) for day in ("2026-12-31", "2027-01-30", "2027-01-31")]
    await store.add_usage(rows, "2026-01-01")
    writer = create_writer(ledger)
    await writer.open(store)
    used = ledger.find("a")
    assert (used.day_tokens, used.month_tokens, used.day_cost, used.month_cost) == (15, 30, 1.5, 3.0)
    await writer.close()
    assert len(await store.load_usage("2026-01-01")) == 3


async def test_sums_of_other_processes_are_read(
    ledger: UsageLedger, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.proxy.server.usage_writer._TICK", 0.001)
    store, writer = MemoryStore(), create_writer(ledger)
    await writer.open(store)
    ledger.count(make_record("a"))
    await store.add_usage([UsageRow("2027-01-31", "a", "m", "p/up", 1, 100, 0, 0, 0.0, 1)], "2026-01-01")
    for _ in range(1000):
        if ledger.find("a").day_tokens == 115:
            break
        await asyncio.sleep(0.005)
    assert ledger.find("a").day_tokens == 115
    await writer.close()


class FailingStore(MemoryStore):
    """A store that cannot be written to while `is_full`."""

    is_full = True

    async def add_usage(self, rows: Sequence[UsageRow], forget_before: str) -> None:
        if self.is_full:
            raise StoreError("disk_full", "no room")
        await super().add_usage(rows, forget_before)


async def test_what_cannot_be_written_is_written_later(clock: Clock) -> None:
    errors: list[StoreError] = []
    ledger, store = UsageLedger(clock), FailingStore()
    writer = UsageWriter(ledger, errors.append)
    await writer.open(store)
    ledger.count(make_record("a"))
    await writer.flush()
    ledger.count(make_record("a"))
    await writer.flush()
    assert [error.reason for error in errors] == ["disk_full"]
    store.is_full = False
    ledger.count(make_record("a"))
    await writer.close()
    assert [row.requests for row in await store.load_usage("2027-01-01")] == [3]
    assert ledger.find("a").day_tokens == 45


def test_names_that_clients_choose_are_bounded(ledger: UsageLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.proxy.telemetry.usage_ledger._MOST_ROWS", 3)
    for number in range(10):
        ledger.count(make_record("a", model=f"m{number}"))
    found = {row.model: row.requests for row in ledger.take_rows()}
    assert found == {"m0": 1, "m1": 1, "m2": 1, "other": 7}


@pytest.mark.parametrize(
    ("rules", "message", "reset"),
    [
        ({"tokens_per_day": 15}, "15 tokens a day; the next day begins at 2027-02-01 00:00:00 UTC", 12 * 3600),
        ({"tokens_per_month": 12}, "12 tokens a month; the next month begins at 2027-02-01 00:00:00 UTC", 12 * 3600),
        ({"cost_per_day": 0.00005}, "cost of 5e-05 a day; the next day begins at", 12 * 3600),
        ({"cost_per_month": 0, "tokens_per_day": 1}, "a day; the next day begins at", 12 * 3600),
    ],
)
def test_a_budget_that_is_used_up_says_when_the_next_begins(
    ledger: UsageLedger, clock: Clock, rules: dict[str, float], message: str, reset: float
) -> None:
    budget = KeyBudget("a", Budget.from_values(rules), ledger, clock)
    ledger.count(make_record("a", price=Price(input=2, output=10)))
    with pytest.raises(Fault) as caught:
        budget.check()
    assert message in caught.value.message
    assert (caught.value.status, caught.value.code) == (429, "insufficient_quota")
    assert caught.value.retry_after == pytest.approx(reset)
    clock.set("2027-02-01T00:00:00")
    if "cost_per_month" not in rules:
        budget.check()


def test_a_budget_with_something_left(ledger: UsageLedger, clock: Clock) -> None:
    budget = KeyBudget("a", Budget(tokens_per_day=16, tokens_per_month=100), ledger, clock)
    ledger.count(make_record("a"))
    budget.check()
    assert [(one.unit, one.period, one.limit, one.used) for one in budget.list_states()] == [
        ("tokens", "day", 16, 15),
        ("tokens", "month", 100, 15),
    ]
