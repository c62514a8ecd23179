"""However a provider's bytes are cut into reads, the client gets the same bytes; wherever they end, one terminal."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.faults import Fault
from dragoman.adapters.messages.accumulator import Accumulator, assemble_message
from dragoman.adapters.messages.restream import restream_message
from dragoman.adapters.streams import Chunk, DeltaRun, End, expand
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject
from tests.adapters.translate.message_oracles import EVENT, accumulate_message, check_events, list_bodies

from .streaming import (
    KEYS,
    START,
    VALUES,
    Replies,
    block,
    encode,
    ending,
    events_of,
    make_context,
    piece,
    read,
    stop,
    write,
)

INDEXES = st.sampled_from([0, 0, 1, 2, None])
TEXTS = st.text(st.characters(codec="utf-8"), max_size=3)
KINDS = st.sampled_from(["text", "thinking", "tool_use"])


@st.composite
def any_event(draw: st.DrawFn) -> JsonObject:
    """One event of a stream, at any place, which may contradict the others."""
    index = draw(INDEXES)
    made = draw(
        st.one_of(
            KINDS.map(lambda kind: block(0, kind)),
            st.builds(lambda given: block(0, "tool_use", input=given, id=None), st.sampled_from([{"a": 1}, {}, "{}"])),
            TEXTS.map(lambda text: piece(0, text=text)),
            TEXTS.map(lambda text: piece(0, thinking=text)),
            TEXTS.map(lambda text: piece(0, partial_json=text)),
            st.just(piece(0, type="signature_delta", signature="s")),
            st.just(stop(0)),
            st.sampled_from([START, {"type": "ping"}, ending(None)[0], ending("max_tokens")[0]]),
        )
    )
    return {**made, "index": index} if "index" in made else made


STREAMS = st.builds(
    lambda events, padding: encode(START, *events, *ending("stop")).replace(b"}\n\n", padding + b"}\n\n"),
    st.lists(any_event(), max_size=12),
    st.sampled_from([b"", b"  "]),
)


@st.composite
def cut_reads(draw: st.DrawFn, streams: st.SearchStrategy[bytes] = STREAMS) -> tuple[bytes, list[bytes]]:
    raw = draw(streams)
    cuts = sorted(draw(st.lists(st.integers(0, len(raw)), max_size=10)))
    return raw, [raw[a:b] for a, b in pairwise([0, *cuts, len(raw)])]


@pytest.mark.parametrize("replies", ["repair", "off", "strict"])
@given(found=cut_reads())
def test_any_split_of_the_bytes_gives_the_same_bytes(replies: Replies, found: tuple[bytes, list[bytes]]) -> None:
    raw, reads = found
    assert write(read(reads, make_context(replies))) == write(read([raw], make_context(replies)))


@given(found=cut_reads())
def test_any_split_records_the_same_changes(found: tuple[bytes, list[bytes]]) -> None:
    raw, reads = found
    one, other = make_context(), make_context()
    read([raw], one)
    read(reads, other)
    assert one.receipt.changes == other.receipt.changes


@given(raw=STREAMS)
def test_every_event_is_valid_for_the_anthropic_package_in_order_and_nested(raw: bytes) -> None:
    outputs = read([raw], make_context())
    kept = [one for one in expand(outputs) if not _is_count_under_way(one)]
    events = check_events(kept)
    assert [event for event in events_of(write(outputs)) if event["type"] != "error"] == [
        event.body for event in expand(outputs) if hasattr(event, "body")
    ]
    assert events


def _is_count_under_way(output: Any) -> bool:
    body = getattr(output, "body", {})
    return body.get("type") == "message_delta" and body["delta"]["stop_reason"] is None


@given(raw=STREAMS, at=st.integers(0, 2000))
def test_however_it_is_cut_off_a_stream_ends_in_exactly_one_terminal(raw: bytes, at: int) -> None:
    outputs = read([raw[:at]], make_context())
    events = events_of(write(outputs))
    last = [event["type"] for event in events if event["type"] in ("message_stop", "error")]
    assert last == [events[-1]["type"]] and last[0] in ("message_stop", "error")
    for event in events[:-1]:
        EVENT.validate_python(event)


@pytest.mark.filterwarnings("ignore:Pydantic serializer")  # of an input that is no object
@given(raw=STREAMS)
def test_what_is_accumulated_is_what_the_anthropic_package_accumulates(raw: bytes) -> None:
    events = list_bodies(read([raw], make_context()))
    ours = accumulate(events)
    try:
        theirs = accumulate_message(events)
    except ValueError:
        return  # the generated pieces of an input are no JSON
    for one, other in zip(ours["content"], theirs["content"], strict=True):
        if one["type"] != "tool_use" or _is_whole(events, one["id"]):
            assert one == other
    assert {**ours, "content": [], "stop_details": None} == {**theirs, "content": []}


def accumulate(events: list[JsonObject]) -> JsonObject:
    """The message, although an input may be broken."""
    accumulator = Accumulator()
    for event in events:
        accumulator.add(event)
    return accumulator.build()


def _is_whole(events: list[JsonObject], call_id: str) -> bool:
    index = next(event["index"] for event in events if event.get("content_block", {}).get("id") == call_id)
    pieces = [event["delta"]["partial_json"] for event in events if "delta" in event and event.get("index") == index]
    try:
        return isinstance(json.loads("".join(pieces) or "{}"), dict)
    except ValueError:
        return False


@pytest.mark.parametrize("replies", ["repair", "off", "strict"])
@given(
    events=st.lists(
        st.tuples(
            st.sampled_from([event["type"] for event in [START, block(0), piece(0, text=""), stop(0), *ending()]]),
            st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5),
        ),
        max_size=6,
    )
)
def test_whatever_the_values_are_nothing_but_a_terminal_comes_of_it(
    replies: Replies, events: list[tuple[str, JsonObject]]
) -> None:
    outputs = read([encode(*({**keys, "type": kind} for kind, keys in events))], make_context(replies))
    *others, last = outputs
    assert isinstance(last, End | Fault) and not any(isinstance(one, End | Fault) for one in others)
    if replies == "repair":
        for chunk in expand(others):
            assert isinstance(chunk, Chunk)
            assert [*load_validator("hub/messages.event").violations(chunk.body)] == []


def test_runs_are_read_wherever_the_reads_are_cut() -> None:
    texts = ["x", "\\", '"', "\u2028", "é", "", "data: ", "\n\n"]
    raw = encode(START, block(0), *(piece(0, text=text) for text in texts * 4), stop(0), *ending())
    whole = write(read([raw], make_context()))
    runs = 0
    for size in (1, 3, 17, 150, 400):
        outputs = read([raw[at : at + size] for at in range(0, len(raw), size)], make_context())
        runs += sum(isinstance(one, DeltaRun) for one in outputs)
        assert write(outputs) == whole == raw
    assert runs > 2


@given(raw=STREAMS)
def test_a_message_becomes_the_events_that_it_was_accumulated_from(raw: bytes) -> None:
    message = accumulate(list_bodies(read([raw], make_context())))
    again = restream_message(message)
    assert assemble_message(again) == message
    for event in again:
        EVENT.validate_python(event, strict=True)
