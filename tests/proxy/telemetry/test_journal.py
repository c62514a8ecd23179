"""Exchanges that have ended are written together, and whoever reads what they left finds all of them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import pytest

from dragoman.proxy.telemetry.inspector import Inspector
from dragoman.proxy.telemetry.journal import Journal
from dragoman.proxy.telemetry.log import create_log
from dragoman.proxy.telemetry.mask import Mask
from dragoman.proxy.telemetry.metrics import ExchangeMetrics
from dragoman.proxy.telemetry.record import ExchangeRecord
from dragoman.proxy.telemetry.usage_ledger import UsageLedger


class Kept:
    """A journal, what it writes to, and the functions that wait for their time."""

    def __init__(self) -> None:
        self.lines = io.BytesIO()
        self.inspector = Inspector("off", 1_000_000, is_used=True)
        self.metrics = ExchangeMetrics()
        self.ledger = UsageLedger()
        self.waiting: list[Callable[[], None]] = []
        log = create_log(Mask(), output=self.lines)
        self.journal = Journal(
            log, self.metrics, self.inspector, ledger=self.ledger, call_later=lambda _, call: self.waiting.append(call)
        )

    def add(self, number: int) -> ExchangeRecord:
        """An exchange that begins and ends."""
        record = ExchangeRecord(f"id-{number}", "openai", "chat")
        self.inspector.begin(record, "/v1/chat/completions")
        record.target, record.key, record.usage = "up", "key", {"prompt_tokens": 2, "completion_tokens": 1}
        self.journal.write(record)
        return record

    @property
    def ids(self) -> list[str]:
        """The exchanges in the log."""
        return [json.loads(line)["request_id"] for line in self.lines.getvalue().splitlines()]


class Unwritable:
    def __str__(self) -> str:
        raise TypeError


def test_exchanges_are_written_together_and_in_order() -> None:
    kept = Kept()
    for number in range(3):
        kept.add(number)
    assert kept.ids == []
    (call,) = kept.waiting
    call()
    assert kept.ids == ["id-0", "id-1", "id-2"]
    kept.add(3)
    assert len(kept.waiting) == 2


def test_only_so_many_wait() -> None:
    kept = Kept()
    for number in range(1000):
        kept.add(number)
    assert len(kept.ids) > 700
    assert len(kept.waiting) == 1


@pytest.mark.parametrize("name", ["inspector", "ledger", "metrics"])
def test_a_reader_finds_what_has_ended(name: str) -> None:
    kept = Kept()
    kept.add(1)
    if name == "inspector":
        assert [one.has_ended for one in kept.inspector.list_newest()] == [True]
    elif name == "ledger":
        assert kept.ledger.find("key").day_tokens == 3
    else:
        kept.metrics.before_reading()
        assert [sum(one.values.values()) for one in kept.metrics.counters if one.name == "requests"] == [1]
    assert kept.ids == ["id-1"]


def test_a_line_has_the_time_of_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept()
    monkeypatch.setattr("time.time", lambda: 1_700_000_000.25)
    record = kept.add(1)
    monkeypatch.setattr("time.time", lambda: 1_700_000_099.5)
    kept.journal.catch_up()
    line = json.loads(kept.lines.getvalue())
    assert (line["timestamp"], line["duration_ms"]) == ("2023-11-14T22:13:20.250Z", record.duration_ms)


def test_an_exchange_that_cannot_be_written_keeps_none_back() -> None:
    kept = Kept()
    kept.add(1).status = Unwritable()  # type: ignore[assignment]
    kept.add(2)
    with pytest.raises(TypeError):
        kept.waiting[0]()
    kept.add(3)
    kept.waiting[1]()
    assert kept.ids == ["id-2", "id-3"]
