"""Recordings: what is kept of bodies, and what is counted only."""

from __future__ import annotations

import tracemalloc

import orjson

from dragoman.adapters.changes import Receipt
from dragoman.proxy.telemetry.recording import Recording, RequestHead

HEAD = RequestHead("POST", "/v1/chat/completions", ())


def test_a_message_is_kept_up_to_a_quarter_of_the_limit() -> None:
    recording = Recording(HEAD, 4_000, lambda: None)
    recording.add(recording.request, b"a" * 600)
    recording.add(recording.request, b"b" * 600)
    recording.add(recording.request, b"c" * 600)
    assert recording.request.chunks == [b"a" * 600, b"b" * 400]
    assert len(recording.request.times) == 2
    assert (recording.request.kept, recording.request.length) == (1_000, 1_800)


def test_all_messages_together_have_a_limit() -> None:
    recording = Recording(HEAD, 1_000, lambda: None)
    for _ in range(10):
        call = recording.begin_call("p/m", Receipt(), 0)
        call.add_reply(b"x" * 250)
    assert sum(call.reply.kept for call in recording.calls) <= 1_000
    assert {call.reply.length for call in recording.calls} == {250}


def test_what_comes_after_the_end_of_a_call_is_not_recorded() -> None:
    recording = Recording(HEAD, 4_000, lambda: None)
    call = recording.begin_call("p/m", Receipt(), 0)
    call.add_reply(b"one")
    call.end(None)
    call.add_reply(b"two")
    assert (call.reply.chunks, call.reply.length) == ([b"one"], 3)


def test_nothing_is_kept_when_the_exchange_has_been_released() -> None:
    recording = Recording(HEAD, 4_000, lambda: None)
    recording.release()
    recording.add(recording.reply, b"late")
    assert (recording.reply.chunks, recording.reply.length) == ([], 4)


def test_a_chunk_takes_the_memory_of_its_length() -> None:
    """What orjson writes may take eight times as much."""
    recording = Recording(HEAD, 10**9, lambda: None)
    tracemalloc.start()
    try:
        for number in range(1_000):
            recording.add_copy(recording.reply, orjson.dumps({"text": "x" * 2_000, "number": number}))
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 1.2 * recording.reply.length
