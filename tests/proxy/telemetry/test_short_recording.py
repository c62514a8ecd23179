"""What is noted on the short way is what a recording of all steps has, at whatever step someone looks."""

from __future__ import annotations

import gc
from itertools import count
from typing import Any, NamedTuple, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.adapters.changes import Receipt
from dragoman.adapters.pipeline import TargetPlan
from dragoman.proxy.telemetry import recording as usual
from dragoman.proxy.telemetry import short_recording as short
from dragoman.proxy.telemetry.inspector import Inspector
from dragoman.proxy.telemetry.record import ExchangeRecord
from dragoman.proxy.telemetry.recording import REPLY, REQUEST, Message, Recording
from dragoman.proxy.telemetry.short_recording import ShortRecording

HEADERS = [(b"Host", b"localhost")]
HEAD = ("POST", "/v1/chat/completions", HEADERS)
SENT = (b"POST / HTTP/1.1\r\n", b"Authorization: Bearer key\r\n", b"\r\n")
PLAN = cast(TargetPlan, object())
SECRETS = (b"key",)
STEPS = ("the request", "a call", "what is sent", "the reply", "the answer", "its head")


class Bodies(NamedTuple):
    request: bytes | list[bytes]
    sent: bytes
    reply: bytes
    answer: bytes


def body(size: int, letter: bytes) -> bytes:
    return letter * size


SMALL = Bodies(body(3_000, b"a"), body(3_001, b"b"), body(600, b"c"), body(601, b"d"))
LARGE = SMALL._replace(request=body(70_000, b"a"))  # a limit applies
sizes = st.sampled_from([0, 1, 90, 3_000, 17_000, 70_000])
bodies = st.builds(
    lambda request, sent, reply, answer, is_large: Bodies(
        [body(request, b"a"), body(request, b"a")] if is_large else body(request, b"a"),
        body(request if sent is None else sent, b"a" if sent is None else b"b"),
        body(reply, b"c"),
        body(reply if answer is None else answer, b"c" if answer is None else b"d"),
    ),
    *(sizes, sizes | st.none(), sizes, sizes | st.none(), st.booleans()),
)


def create_receipt(changes: int) -> Receipt:
    receipt = Receipt()
    for number in range(changes):
        receipt.record_drop(("messages", number), "the target lacks it")
    return receipt


def write_short(made: ShortRecording, given: Bodies, receipt: Receipt, steps: int) -> None:
    """Record the first steps. The reply has a change of its own."""
    for step in STEPS[:steps]:
        match step:
            case "the request":
                made.add_request(given.request)
            case "a call":
                made.begin_call(PLAN, receipt, "p/m")
            case "what is sent":
                made.record_request(SENT, given.sent)
            case "the reply":
                receipt.record_fill(("usage",), "it has none")
                made.record_whole_reply(200, {"a": "b"}, SECRETS, given.reply)
            case "the answer":
                made.add_answer(given.answer)
            case "its head":
                made.record_answer(200, {"c": "d"})


def write_usual(made: Recording, given: Bodies, receipt: Receipt, steps: int) -> None:
    for step in STEPS[:steps]:
        match step:
            case "the request":
                for piece in (given.request,) if isinstance(given.request, bytes) else given.request:
                    made.add(REQUEST, piece)
            case "a call":
                made.begin_try(PLAN, receipt)
                call = made.begin_call("p/m", receipt, 0)
            case "what is sent":
                call.record_request(SENT, given.sent)
            case "the reply":
                receipt.record_fill(("usage",), "it has none")
                call.record_reply(200, {"a": "b"}, SECRETS)
                call.add_reply(given.reply)
                call.end(None)
            case "the answer":
                made.add_copy(REPLY, given.answer)
            case "its head":
                made.record_answer(200, {"c": "d"})


def show(recording: Recording) -> list[Any]:
    calls = [
        (one.target, one.attempt, one.number, one.secrets, one.fault, one.ended is None, one.began > 0)
        for one in recording.calls
    ]
    messages = [message for one in recording.calls for message in (one.request, one.reply)]
    tries = [(one.plan, one.changes, one.request_changes) for one in recording.tries]
    return [*map(show_message, (recording.request, recording.reply, *messages)), calls, tries]


def show_message(message: Message) -> tuple[Any, ...]:
    return message.head, message.chunks, message.kept, message.length


@given(bodies, st.integers(0, 6), st.sampled_from([0, 1_000, 50_000, 400_000]), st.integers(0, 3))
def test_both_recordings_are_the_same(given: Bodies, steps: int, most: int, changes: int) -> None:
    noted, written = ShortRecording(HEAD, most), Recording(HEAD, most, lambda: None)
    write_short(noted, given, create_receipt(changes), steps)
    write_usual(written, given, create_receipt(changes), steps)
    assert show(noted.unfold()) == show(written)


@example(SMALL, 6, "bodies", 2, False)
@example(LARGE, 6, "bodies", 0, False)
@example(LARGE, 6, "heads", 1, False)
@given(bodies, st.integers(0, 6), st.sampled_from(["heads", "bodies"]), st.integers(0, 3), st.booleans())
def test_the_inspector_keeps_and_counts_the_same(
    given: Bodies, steps: int, mode: Any, changes: int, leaves: bool
) -> None:
    """Whether the exchange ends on the short way or leaves it, and whether a limit applies or not."""
    found = []
    for is_short in (True, False):
        inspector = Inspector(mode, 1_200_000, is_used=True)
        record = keep(inspector, given, steps, changes, is_short=is_short, leaves=leaves)
        recording = record.unfold_recording()
        assert recording is not None
        found.append((show(recording), record.kept_bytes, inspector.size))
    assert found[0] == found[1]


def keep(
    inspector: Inspector, given: Bodies, steps: int, changes: int, *, is_short: bool, leaves: bool
) -> ExchangeRecord:
    """An exchange that has ended after so many steps."""
    record = ExchangeRecord("id", "openai", "chat")
    inspector.begin_recording(record, *HEAD, is_short=is_short)
    inspector.begin(record, HEAD[1])
    recording = record.recording
    if isinstance(recording, ShortRecording):
        write_short(recording, given, create_receipt(changes), steps)
    elif recording is not None:
        write_usual(recording, given, create_receipt(changes), steps)
    if leaves:
        assert isinstance(inspector.leave_short_way(record), Recording)
    record.end()
    inspector.end(record)
    assert [*inspector.list_newest()] == [record]
    return record


def test_times_are_those_of_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those of when someone looks."""
    clock = count(1.0)
    for module in (short, usual):
        monkeypatch.setattr(module, "perf_counter", lambda: next(clock))
    noted = ShortRecording(HEAD, 4_000)
    write_short(noted, Bodies(b"1", b"2", b"3", b"4"), Receipt(), 6)
    made = noted.unfold()
    (call,) = made.calls
    messages = (made.request, call.request, call.reply, made.reply)
    assert [one.times for one in messages] == [[1.0], [3.0], [4.0], [5.0]]
    assert (call.began, call.ended) == (2.0, 4.0)


def test_an_exchange_on_the_short_way_that_was_dropped_takes_no_memory() -> None:
    inspector = Inspector("bodies", 300_000, is_used=True)
    record = ExchangeRecord("id", "openai", "chat")
    inspector.begin_recording(record, *HEAD, is_short=True)
    inspector.begin(record, HEAD[1])
    recording = record.recording
    assert isinstance(recording, ShortRecording)
    for number in range(300):
        inspector.begin(ExchangeRecord(f"id-{number}", "openai", "chat"), "/v1/chat/completions")
    assert record not in inspector.list_newest()
    write_short(recording, Bodies(*[b"x" * 20_000] * 4), Receipt(), 6)
    size = inspector.size
    inspector.end(record)
    assert inspector.size == size
    assert record.recording is None


def test_without_bodies_their_memory_is_free_when_the_exchange_has_ended() -> None:
    noted = ShortRecording(HEAD, 0)
    given = Bodies(*[b"x" * 100_000] * 4)
    write_short(noted, given, Receipt(), 6)
    assert set(map(id, given)) & set(map(id, gc.get_referents(noted)))
    assert noted.end() is not None
    assert not set(map(id, given)) & set(map(id, gc.get_referents(noted)))
    assert noted.unfold().reply.length == 100_000


def test_one_text_is_kept_of_equal_bodies() -> None:
    noted = ShortRecording(HEAD, 400_000)
    write_short(noted, Bodies(b"%050000d" % 1, b"%050000d" % 1, b"%050000d" % 2, b"%050000d" % 2), Receipt(), 6)
    assert noted._body is noted._request
    assert noted._answer is noted._reply
