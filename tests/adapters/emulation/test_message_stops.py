"""`stop_sequences` of Messages by cutting: whole messages and streams."""

from __future__ import annotations

import pytest

from dragoman.adapters.call import JsonObject
from dragoman.adapters.emulation.interface import StreamMerger
from dragoman.adapters.emulation.message_stops import MESSAGE_STOPS
from dragoman.adapters.faults import Fault
from dragoman.adapters.messages.events import TEXT, block_delta, block_stop, message_delta, message_stop
from dragoman.adapters.streams import Chunk, End, Output

from .made import make_context

USAGE = {"input_tokens": 3, "output_tokens": 0}
START: JsonObject = {"type": "message_start", "message": {"role": "assistant", "content": [], "usage": USAGE}}
BLOCK: JsonObject = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
BROKEN = Fault("upstream_invalid_response", "it broke off", code="upstream_truncated")


@pytest.fixture
def merger() -> StreamMerger:
    assert MESSAGE_STOPS.merge is not None
    return MESSAGE_STOPS.merge(make_context(stop_sequences=["END"]), 1)


def feed(merger: StreamMerger, *events: JsonObject) -> list[Output]:
    return [made for event in (START, BLOCK, *events) for made in merger.feed(0, [Chunk(event)])]


def read_text(outputs: list[Output]) -> str:
    bodies = [output.body for output in outputs if isinstance(output, Chunk)]
    return "".join(body["delta"]["text"] for body in bodies if body["type"] == "content_block_delta")


def test_a_message_ends_before_the_stop_sequence() -> None:
    reply = {"content": [{"type": "text", "text": "one END two"}, {"type": "text", "text": "three"}]}
    said = MESSAGE_STOPS.join([reply], make_context(stop_sequences=["END"]))
    assert said["content"] == [{"type": "text", "text": "one "}]
    assert (said["stop_reason"], said["stop_sequence"]) == ("stop_sequence", "END")


def test_a_stream_ends_before_the_stop_sequence(merger: StreamMerger) -> None:
    *_, ending, stop, end = made = feed(merger, block_delta(0, TEXT, "one EN"), block_delta(0, TEXT, "D two"))
    assert read_text(made) == "one "
    assert isinstance(ending, Chunk)
    assert ending.body["delta"] == {"stop_reason": "stop_sequence", "stop_sequence": "END"}
    assert (stop, end) == (Chunk(message_stop()), End())
    assert merger.feed(0, [Chunk(block_delta(0, TEXT, "more"))]) == []


def test_what_was_held_back_comes_at_the_end_of_its_block(merger: StreamMerger) -> None:
    closing = (block_stop(0), message_delta("end_turn", None, USAGE), message_stop())
    made = feed(merger, block_delta(0, TEXT, "one EN"), *closing)
    assert read_text(made) == "one EN"


def test_what_was_held_back_is_not_lost_if_the_stream_breaks_off(merger: StreamMerger) -> None:
    made = feed(merger, block_delta(0, TEXT, "one EN"))
    assert read_text(made) == "one "
    assert merger.feed(0, [BROKEN]) == [Chunk(block_delta(0, TEXT, "EN")), BROKEN]
