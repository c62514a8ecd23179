from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from dragoman.adapters.faults import Fault, Kind
from dragoman.adapters.openai.faults import error_body
from dragoman.adapters.responses.events import OUTPUT_TEXT, item_added, lifecycle_event, text_delta
from dragoman.adapters.responses.response_object import new_response
from dragoman.adapters.responses.writer import ResponsesStreamWriter
from dragoman.adapters.sse import Event, Framer
from dragoman.adapters.streams import Chunk, DeltaRun, End, Output, expand
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject

ORACLE: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
BASE = new_response({"model": "m"}, "resp_1", "m", 1)
MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "content": [], "status": "in_progress"}
BEGUN = [
    Chunk(lifecycle_event("created", BASE)),
    Chunk(item_added(0, MESSAGE)),
    Chunk(text_delta(OUTPUT_TEXT, "msg_1", 0, 0, "Hel")),
    Chunk(text_delta(OUTPUT_TEXT, "msg_1", 0, 0, "lo")),
]
COMPLETED = Chunk(lifecycle_event("completed", {**BASE, "status": "completed"}))
BROKEN = Fault("upstream_invalid_response", "It broke.", code="upstream_truncated")


def written(*outputs: Output) -> tuple[ResponsesStreamWriter, bytes]:
    writer = ResponsesStreamWriter(error_body)
    return writer, b"".join(writer.write(output) for output in outputs)


def events(raw: bytes) -> list[JsonObject]:
    """The events, each under its own name and valid; `[DONE]` comes last."""
    *items, done = Framer().feed(raw)
    assert done == Event(b"[DONE]")
    found = []
    for number, item in enumerate(items):
        assert isinstance(item, Event)
        body = orjson.loads(item.data)
        assert body["type"] == item.event.decode()
        assert body["sequence_number"] == number
        ORACLE.validate_python(body)
        assert [one.message for one in load_validator("hub/responses.event").violations(body)] == []
        found.append(body)
    return found


@pytest.mark.parametrize("again", [BASE, {**BASE}, {**BASE, "status": "queued"}])
@pytest.mark.parametrize("between", [[], [item_added(0, MESSAGE)]])
def test_the_first_events_have_their_own_response(again: JsonObject, between: list[JsonObject]) -> None:
    shown = [lifecycle_event("created", BASE), *between, lifecycle_event("in_progress", again)]
    shown.append(lifecycle_event("in_progress", {**again, "id": "resp_2"}))
    _, raw = written(*map(Chunk, shown))
    items = [item for item in Framer().feed(raw) if isinstance(item, Event)]
    expected = [{**event, "sequence_number": number} for number, event in enumerate(shown)]
    assert [item.data for item in items] == [*map(orjson.dumps, expected)]


def test_events_are_numbered_and_named_and_done_follows_the_last() -> None:
    writer, raw = written(*BEGUN, COMPLETED, End())
    assert [event["type"] for event in events(raw)][-1] == "response.completed"
    assert (writer.content_type, writer.dropped, writer.aborts) == ("text/event-stream", 0, False)


def test_bytes_go_through_where_their_number_is_right() -> None:
    raw = b'{"type": "response.created",  "sequence_number": 0}'
    chunk = Chunk(orjson.loads(raw), raw)
    assert written(chunk)[1] == b"event: response.created\ndata: " + raw + b"\n\n"
    second = written(*BEGUN[:1], chunk)[1].split(b"\n\n")[1]
    assert second == b'event: response.created\ndata: {"type":"response.created","sequence_number":1}'


@given(
    st.lists(st.lists(st.sampled_from([b"a", b"%d", b"\\n", b"\\u00e9", b""]), min_size=1), max_size=3), st.booleans()
)
def test_coalesced_deltas_are_written_as_single_ones(runs: list[list[bytes]], late: bool) -> None:
    item = {**MESSAGE, "id": "100%d"}
    delta = text_delta(OUTPUT_TEXT, "100%d", 0, 0, "")
    made: list[Output] = [DeltaRun(delta, ("delta",), texts) for texts in runs]
    before = [Chunk(lifecycle_event("created", BASE)), Chunk(item_added(0, item))]
    before += [Chunk(lifecycle_event("in_progress", BASE))] * (996 if late else 0)  # numbers with four digits follow
    assert written(*before, *made)[1] == written(*before, *expand(made))[1]


def test_a_fault_is_told_twice_and_shows_what_there_was() -> None:
    writer, raw = written(*BEGUN, BROKEN)
    error, failed = events(raw)[-2:]
    told = {"code": "upstream_truncated", "message": "It broke.", "param": None}
    assert error == {"type": "error", **told, "error": {**told, "type": "server_error"}, "sequence_number": 4}
    assert failed["response"]["status"] == "failed"
    assert failed["response"]["error"] == {"code": "server_error", "message": "It broke."}
    [item] = failed["response"]["output"]
    assert item["status"] == "incomplete" and item["content"][0]["text"] == "Hello"
    assert failed["response"].keys() == BASE.keys()
    assert writer.dropped == 0


def test_before_the_first_event_there_is_no_response_to_fail() -> None:
    _, raw = written(BROKEN)
    assert [event["type"] for event in events(raw)] == ["error"]


@pytest.mark.parametrize(
    ("kind", "code"),
    [("rate_limit", "rate_limit_exceeded"), ("content_filter", "invalid_prompt"), ("overloaded", "server_error")],
)
def test_failed_responses_have_words_of_their_own(kind: Kind, code: str) -> None:
    assert events(written(*BEGUN, Fault(kind, "m"))[1])[-1]["response"]["error"]["code"] == code


@pytest.mark.parametrize("code", ["context_length_exceeded", "insufficient_quota", "server_is_overloaded"])
def test_a_failed_response_shows_the_code_that_agents_look_for(code: str) -> None:
    raw = written(*BEGUN, Fault("invalid_request", "m", code=code))[1]  # OpenAI sends them, its SDK's types lack them
    error, failed = (orjson.loads(event.partition(b"data: ")[2]) for event in raw.split(b"\n\n")[-4:-2])
    assert (error["code"], error["error"]["code"], failed["response"]["error"]["code"]) == (code, code, code)


@pytest.mark.parametrize(
    ("message", "seconds", "said"),
    [
        ("Slow down", 7.66, "Slow down. Please try again in 7.660s."),
        ("Please try again in 2s.", 2.0, "Please try again in 2s."),
        ("Slow down", None, "Slow down"),
    ],
)
def test_a_failed_response_says_how_long_to_wait(message: str, seconds: float | None, said: str) -> None:
    failed = events(written(*BEGUN, Fault("rate_limit", message, retry_after=seconds))[1])[-1]
    assert failed["response"]["error"] == {"code": "rate_limit_exceeded", "message": said}


@pytest.mark.parametrize("terminal", [End(), BROKEN])
def test_the_first_terminal_closes_the_writer(terminal: Output) -> None:
    writer, raw = written(*BEGUN, terminal)
    late: list[Output] = [BEGUN[3], End(), BROKEN]
    assert [writer.write(output) for output in late] == [b"", b"", b""]
    assert writer.dropped == 1
    assert raw.count(b"data: [DONE]") == 1


def test_an_error_body_of_another_form_still_makes_an_error_event() -> None:
    writer = ResponsesStreamWriter(lambda fault: {"error_code": "X", "message": "told"})
    [error] = events(writer.write(BROKEN))
    assert error["message"] == "It broke." and error["error"]["error_code"] == "X"


def test_a_name_is_one_word() -> None:
    chunk = Chunk({"type": "response.x\n\ndata: [DONE]"})
    lines = written(chunk)[1].split(b"\n")
    assert lines[0] == b"event: response.xdata:[DONE]" and lines[1].startswith(b"data: {")
