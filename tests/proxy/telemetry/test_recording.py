"""Recordings: what is kept of bodies, and what is counted only."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Sequence
from threading import Event, Thread

import orjson
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.changes import Receipt
from dragoman.proxy.telemetry.inspector import Inspector
from dragoman.proxy.telemetry.record import ExchangeRecord
from dragoman.proxy.telemetry.recording import REPLY, REQUEST, Recording

CHUNK, COUNTED = 96, 16 * 1024  # bytes, as in `recording.py`
HEAD: tuple[str, str, Sequence[tuple[bytes, bytes]]] = ("POST", "/v1/chat/completions", ())


def test_a_message_is_kept_up_to_a_quarter_of_the_limit() -> None:
    recording = Recording(HEAD, 4_000, lambda: None)
    recording.add(REQUEST, b"a" * 600)
    recording.add(REQUEST, b"b" * 600)
    recording.add(REQUEST, b"c" * 600)
    assert recording.request.chunks == [b"a" * 600, b"b" * 400]
    assert len(recording.request.times) == 2
    assert (recording.request.kept, recording.request.length) == (1_000, 1_800)


def test_all_messages_together_have_a_limit() -> None:
    recording = Recording(HEAD, 1_000, lambda: None)
    for _ in range(10):
        recording.begin_call("p/m", Receipt(), 0).add_reply(b"x" * 250)
    assert sum(call.reply.kept for call in recording.calls) <= 1_000
    assert {call.reply.length for call in recording.calls} == {250}


def keep_at_once(most: int, pieces: Sequence[tuple[int, bytes]]) -> list[tuple[list[bytes], int]]:
    """The long way: each piece is cut to its limits as soon as it comes. The chunks and the length of each message."""
    kept: list[tuple[list[bytes], int]] = [([], 0) for _ in range(4)]
    left = most
    for source, data in pieces:
        chunks, length = kept[source]
        size = min(len(data), left, most // 4 - sum(map(len, chunks)))
        if size > 0:
            chunks.append(data[:size])
            left -= size + CHUNK
        kept[source] = chunks, length + len(data)
    return kept


@given(
    st.sampled_from([0, 1_000, 50_000, 400_000]),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([1, 90, 3_000, 17_000, 120_000]), st.booleans())),
)
def test_what_is_kept_is_what_is_kept_if_each_piece_is_cut_at_once(
    most: int, steps: list[tuple[int, int, bool]]
) -> None:
    """Whenever someone looks. What is counted is what is kept, and what is not counted yet is less than 16 kB."""
    counted: list[int] = []
    recording = Recording(HEAD, most, lambda: counted.append(take_uncounted(recording)))
    call = recording.begin_call("p/m", Receipt(), 0)
    take_uncounted(recording)  # the call itself
    pieces = []
    for source, size, looks in steps:
        data = bytes([len(pieces) % 256]) * size
        pieces.append((source, data))
        call.add_reply(data) if source == 3 else recording.add(source, data)
        if looks:
            assert list_kept(recording) == keep_at_once(most, pieces)
        wanted = keep_at_once(most, pieces)
        assert abs(sum(counted) + recording.uncounted - measure(wanted)) <= COUNTED
    assert sum(counted) + recording.end() == measure(keep_at_once(most, pieces))
    assert list_kept(recording) == keep_at_once(most, pieces)


def list_kept(recording: Recording) -> list[tuple[list[bytes], int]]:
    calls = [message for call in recording.calls for message in (call.request, call.reply)]
    return [(one.chunks, one.length) for one in (recording.request, recording.reply, *calls)]


def take_uncounted(recording: Recording) -> int:
    size, recording.uncounted = recording.uncounted, 0
    return size


def measure(kept: Sequence[tuple[list[bytes], int]]) -> int:
    return sum(len(chunk) + CHUNK for chunks, _ in kept for chunk in chunks)


def measure_stream(recording: Recording, chunks: int) -> int:
    """The bytes of memory that are taken while so many chunks of a reply are recorded, and not given back."""
    tracemalloc.start()
    try:
        for number in range(chunks):
            recording.add(REPLY, b"%500d" % number)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return used


def test_a_stream_is_bounded_while_nobody_looks() -> None:
    for most in (0, 100_000):
        recording = Recording(HEAD, most, lambda: None)
        assert measure_stream(recording, 20_000) < most / 4 * 1.2 + 3 * COUNTED
        assert recording.reply.length == 20_000 * 500


def test_heads_keep_no_bytes_of_a_body() -> None:
    recording = Recording(HEAD, 0, lambda: None)
    recording.add(REQUEST, b"secret")
    recording.end()
    assert not any(b"secret" in one for one in gc.get_referents(recording._log) if isinstance(one, bytes))
    assert (recording.request.chunks, recording.request.length) == ([], 6)


def test_what_comes_after_the_end_of_a_call_is_not_recorded() -> None:
    recording = Recording(HEAD, 4_000, lambda: None)
    call = recording.begin_call("p/m", Receipt(), 0)
    call.add_reply(b"one")
    call.end(None)
    call.add_reply(b"two")
    (call,) = recording.calls
    assert (call.reply.chunks, call.reply.length) == ([b"one"], 3)


def test_what_comes_after_the_end_of_the_exchange_is_not_recorded() -> None:
    recording = Recording(HEAD, 4_000, lambda: None)
    recording.add(REPLY, b"in time")
    recording.end()
    recording.add(REPLY, b"late")
    assert (recording.reply.chunks, recording.reply.length) == ([b"in time"], 7)


def test_a_dropped_exchange_that_runs_takes_no_memory() -> None:
    inspector = Inspector("bodies", 300_000, is_used=True)
    record = ExchangeRecord("id", "openai", "chat")
    inspector.begin_recording(record, "POST", "/v1/chat/completions", ())
    inspector.begin(record, "/v1/chat/completions")
    recording = record.recording
    assert recording is not None
    recording.add(REQUEST, b"x" * 100_000)
    for number in range(300):
        inspector.begin(ExchangeRecord(f"id-{number}", "openai", "chat"), "/v1/chat/completions")
    assert measure_stream(recording, 1_000) < COUNTED
    size = inspector.size
    inspector.end(record)
    assert inspector.size == size <= 300_000


def test_nothing_is_kept_when_the_exchange_has_been_released() -> None:
    recording = Recording(HEAD, 4_000, lambda: None)
    recording.add(REPLY, b"before")
    recording.release()
    recording.add(REPLY, b"late")
    assert (recording.reply.chunks, recording.reply.length) == ([], 0)


def test_a_chunk_takes_the_memory_of_its_length() -> None:
    """What orjson writes may take eight times as much."""
    recording = Recording(HEAD, 10**9, lambda: None)
    tracemalloc.start()
    try:
        for number in range(1_000):
            recording.add_copy(REPLY, orjson.dumps({"text": "x" * 2_000, "number": number}))
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 1.2 * recording.reply.length


def test_a_request_that_is_sent_as_it_came_is_kept_once() -> None:
    recording = Recording(HEAD, 10**9, lambda: None)
    tracemalloc.start()
    try:
        recording.add(REQUEST, b"%050000d" % 7)
        call = recording.begin_call("p/m", Receipt(), 0)
        call.record_request((b"", b"", b""), b"%050000d" % 7)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 60_000
    (call,) = recording.calls
    assert call.request.chunks == recording.request.chunks == [b"%050000d" % 7]


def test_a_request_that_is_sent_in_another_way_is_kept_as_it_was_sent() -> None:
    recording = Recording(HEAD, 10**9, lambda: None)
    recording.add(REQUEST, b'{"model":"one"}')
    recording.begin_call("p/m", Receipt(), 0).record_request((b"", b"", b""), b'{"model":"two"}')
    assert [call.request.chunks for call in recording.calls] == [[b'{"model":"two"}']]
    assert recording.request.chunks == [b'{"model":"one"}']


def test_a_call_that_is_sent_once_more_is_kept_once_with_its_last_head() -> None:
    recording = Recording(HEAD, 10**9, lambda: None)
    call = recording.begin_call("p/m", Receipt(), 0)
    call.record_request((b"start", b"refused", b"rest"), b'{"model":"one"}')
    call.record_request((b"start", b"taken", b"rest"), b'{"model":"one"}')
    (call,) = recording.calls
    assert call.request.chunks == [b'{"model":"one"}']
    assert call.request.length == len(b'{"model":"one"}')
    assert call.request.head == (b"start", b"taken", b"rest")


def test_nothing_is_lost_while_another_thread_looks() -> None:
    """As the page does: it renders an exchange that runs in a thread. A limit may apply soon, so both sort the log."""
    pieces = [b"%0200d" % number for number in range(10_000)]
    recording = Recording(HEAD, 9_000_000, lambda: None)
    call = recording.begin_call("p/m", Receipt(), 0)
    stop = Event()

    def look() -> None:
        while not stop.is_set():
            assert recording.reply.chunks is not None

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = Thread(target=look)
    thread.start()
    try:
        for piece in pieces:
            call.add_reply(piece)
            recording.add(REPLY, piece)
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(usual)
    (call,) = recording.calls
    assert recording.reply.chunks == call.reply.chunks == pieces


def test_a_copy_is_kept_if_another_thread_empties_the_log_meanwhile() -> None:
    recording = Recording(HEAD, 1_000_000, lambda: None)

    class Looked(bytes):
        """Bytes that are compared with those of the log when the page looks."""

        __hash__ = bytes.__hash__

        def __eq__(self, other: object) -> bool:
            assert recording.request.chunks == [b"abc"]
            return super().__eq__(other)

    recording.add(REQUEST, b"abc")
    recording.add_copy(REPLY, Looked(b"abc"))
    assert recording.reply.chunks == [b"abc"]
