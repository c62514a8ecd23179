"""The live list of a busy proxy: the latest exchanges, how many are left out, and the end of each that was shown."""

from __future__ import annotations

import json
import re

from dragoman.proxy.server.page.event_feed import MOST_AT_ONCE, EventFeed
from dragoman.proxy.telemetry.inspector import Inspector
from dragoman.proxy.telemetry.record import ExchangeRecord

FEW = 20


class Watched:
    """A buffer of exchanges, and a feed of it that sends `FEW` new ones at a time."""

    def __init__(self) -> None:
        self._inspector = Inspector(limit=10**9, is_used=True)
        self._feed = EventFeed(
            self._inspector, lambda one: {"seq": one.number, "ended": one.has_ended}, dict, lambda: False, FEW
        )

    def begin(self, count: int) -> list[ExchangeRecord]:
        records = [ExchangeRecord("id", "openai", "chat") for _ in range(count)]
        for record in records:
            self._inspector.begin(record, "/v1/chat/completions")
        return records

    def end(self, records: list[ExchangeRecord]) -> None:
        for record in records:
            record.duration_ms = 1.0
            self._inspector.end(record)

    def look(self) -> tuple[list[int], int]:
        """The numbers of the exchanges that are sent, negative if they have ended, and how many are left out."""
        events = re.findall(rb"event: (\w+)\ndata: (.+)\n\n", b"".join(self._feed.write_changes()))
        found = [(name, json.loads(data)) for name, data in events]
        numbers = [-data["seq"] if data["ended"] else data["seq"] for name, data in found if name == b"exchange"]
        return numbers, sum(data["count"] for name, data in found if name == b"left_out")


def test_a_burst_after_a_quiet_time_is_sent_whole() -> None:
    watched = Watched()
    watched.begin(MOST_AT_ONCE)
    assert watched.look() == ([*range(1, MOST_AT_ONCE + 1)], 0)


def test_of_a_flood_the_latest_are_sent_and_the_others_counted() -> None:
    watched = Watched()
    watched.begin(1_000)
    watched.look()
    watched.end(watched.begin(1_000))
    assert watched.look() == ([*range(-1_981, -2_001, -1)], 980)
    watched.begin(FEW)
    assert watched.look() == ([*range(2_001, 2_001 + FEW)], 0)


def test_the_end_of_each_that_was_shown_is_sent_and_of_no_other() -> None:
    watched = Watched()
    records = watched.begin(1_000)
    shown, left_out = watched.look()
    assert (shown, left_out) == ([*range(801, 1_001)], 800)
    watched.end(records)
    assert watched.look() == ([-number for number in shown], 0)
    assert watched.look() == ([], 0)


def test_ends_that_are_too_many_at_once_are_sent_later() -> None:
    watched = Watched()
    shown = []
    records = watched.begin(MOST_AT_ONCE)
    shown += watched.look()[0]
    for _ in range(5):
        records += watched.begin(FEW)
        shown += watched.look()[0]
    watched.end(records)
    first, second, third = watched.look()[0], watched.look()[0], watched.look()[0]
    assert (len(first), third) == (MOST_AT_ONCE, [])
    assert [*first, *second] == [-number for number in shown]
