"""Streams as Anthropic's API sends them: they go through byte for byte, and each way of reading them agrees."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.adapters.faults import Fault
from dragoman.adapters.messages.accumulator import assemble_message
from dragoman.adapters.messages.restream import restream_message
from dragoman.adapters.streams import Chunk, DeltaRun, End, expand
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject
from tests.adapters.translate.message_oracles import accumulate_message, check_events, list_bodies

from .streaming import (
    START,
    Replies,
    block,
    encode,
    ending,
    events_of,
    make_context,
    message,
    piece,
    read,
    relay,
    stop,
    write,
)

STREAMS = sorted((Path(__file__).parent / "fixtures" / "streams").glob("*.sse"))
"""The shapes are those of Anthropic's guides to streaming, thinking, web search and refusals; the texts are not."""
WHOLE = [path for path in STREAMS if path.stem != "anthropic_overloaded"]
PING = encode({"type": "ping"}).replace(b": ", b":").replace(b"event:", b"event: ").replace(b"data:", b"data: ")

every_whole = pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)


@every_whole
@pytest.mark.parametrize("replies", ["off", "report", "repair", "strict"])
def test_a_whole_stream_goes_through_byte_for_byte_but_for_pings(path: Path, replies: Replies) -> None:
    raw, ctx = path.read_bytes(), make_context(replies)
    assert relay(raw, ctx=ctx) == raw.replace(PING, b"")
    assert ctx.receipt.changes == [] and ctx.receipt.violations == 0


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
@pytest.mark.parametrize("replies", ["off", "repair", "strict"])
@settings(max_examples=20)
@given(data=st.data())
def test_any_split_of_the_bytes_gives_the_same_bytes(path: Path, replies: Replies, data: st.DataObject) -> None:
    raw = path.read_bytes()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=12)))
    reads = [raw[a:b] for a, b in pairwise([0, *cuts, len(raw)])]
    assert write(read(reads, make_context(replies))) == relay(raw, replies)


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
@given(data=st.data())
def test_however_it_is_cut_off_a_stream_ends_in_exactly_one_terminal(path: Path, data: st.DataObject) -> None:
    raw = path.read_bytes()
    at = data.draw(st.integers(0, len(raw) - 1))
    outputs = read([raw[:at]], make_context())
    check_events(outputs)
    has_reason = b'stop_reason":"' in raw[:at].rpartition(b"\n\n")[0]
    is_torn = not raw[:at].endswith(b"\n\n")
    assert is_torn or isinstance(outputs[-1], End) == has_reason
    last = events_of(write(outputs))[-1]["type"]
    assert last == ("message_stop" if isinstance(outputs[-1], End) else "error")


@every_whole
def test_the_message_of_a_stream_is_the_one_that_the_anthropic_package_makes(path: Path) -> None:
    events = list_bodies(read([path.read_bytes()], make_context()))
    ours, theirs = assemble_message(events), accumulate_message(events)
    assert {"stop_details": None, **ours} == theirs
    assert load_validator("hub/messages.reply").accepts(ours)
    again = restream_message(ours)
    check_events([*map(Chunk, again), End()])
    assert assemble_message(again) == ours


@every_whole
def test_texts_come_in_runs(path: Path) -> None:
    """Each event is a read of its own, as on the wire."""
    events = [one + b"\n\n" for one in path.read_bytes().split(b"\n\n")[:-1]]
    outputs = read(events, make_context())
    pieces = sum(isinstance(one, DeltaRun) for one in outputs)
    texts = sum("delta" in getattr(one, "body", {}) and "index" in one.body for one in expand(outputs))  # type: ignore[union-attr]
    blocks = path.read_bytes().count(b"event: content_block_start")
    assert pieces >= texts - 3 * blocks


def test_an_error_event_keeps_its_meaning() -> None:
    path = next(path for path in STREAMS if path not in WHOLE)
    *_, last = read([path.read_bytes()], make_context())
    assert (last.message, last.kind) == ("Overloaded", "upstream_unavailable")  # type: ignore[union-attr]


OTHER = {"type": "message_start", "message": message(id="msg_2")}
BEGUN = [START, block(0, "tool_use"), piece(0, partial_json='{"path":"/et')]
AGAIN = [OTHER, block(0, "tool_use", id="toolu_b"), piece(0, partial_json='{"path":"/etc"}'), stop(0)]


@pytest.mark.parametrize("replies", ["off", "report", "repair", "strict"])
def test_another_message_before_the_end_of_the_first_is_a_cut(replies: Replies) -> None:
    outputs = read([encode(*BEGUN, *AGAIN, *ending("tool_use"))], make_context(replies))
    assert isinstance(outputs[-1], Fault) and outputs[-1].code == "upstream_truncated"
    assert "toolu_b" not in write(outputs).decode()


@pytest.mark.parametrize(
    "events",
    [
        [START, START, *AGAIN[1:], *ending("tool_use")],
        [START, *AGAIN, *ending("tool_use")],
        [START, *AGAIN[1:], {**START, "message": {}}, *ending("tool_use")],
        [*AGAIN[1:], OTHER, *ending("tool_use")],
        [START, *AGAIN[1:], ending("tool_use")[0], OTHER, ending()[1]],
    ],
)
def test_a_beginning_that_cuts_no_answer_off_is_left_out(events: list[JsonObject]) -> None:
    outputs = read([encode(*events)], make_context())
    assert isinstance(outputs[-1], End), outputs[-1]
    made = accumulate_message(events_of(write(outputs)))
    assert made["content"][0]["input"] == {"path": "/etc"}
