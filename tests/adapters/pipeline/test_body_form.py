"""What a body is, whatever its label says: in every label, cut anywhere, asked for as a stream or not."""

from __future__ import annotations

from typing import Literal

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.call import Policy
from dragoman.adapters.pipeline import Attempt
from dragoman.adapters.pipeline.body_form import BodyForm, detect_form
from tests.tables import for_each

from .conftest import CreatePlan, ReceiveRequest
from .test_attempt import ASKED, DONE, FIRST, LAST, STREAMED, fault_of, reply

LABELS = (
    "text/event-stream",
    "text/event-stream; charset=utf-8",
    "text/plain",
    "application/json",
    "application/octet-stream",
    "application/x-ndjson",
    None,
)
STREAM = FIRST + LAST + DONE


def headers(label: str | None) -> dict[str, str]:
    return {} if label is None else {"content-type": label}


def feed_in_pieces(attempt: Attempt, label: str | None, body: bytes, size: int) -> bytes:
    """The bytes for the client."""
    attempt.start_reply(0, 200, headers(label))
    written = [attempt.feed(0, body[at : at + size]).data for at in range(0, len(body), size) if attempt.is_reading(0)]
    return b"".join([*written, attempt.close(0).data])


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("label", LABELS)
def test_a_stream_is_read_under_every_label(
    receive: ReceiveRequest, plan: CreatePlan, label: str | None, size: int
) -> None:
    attempt = receive("openai/chat", STREAMED).prepare(plan())
    written = feed_in_pieces(attempt, label, STREAM, size)
    assert attempt.outcome.state == "complete"
    assert written.startswith(b'data: {"id":"c"') and written.endswith(b"data: [DONE]\n\n")


@for_each("size", [1, 7, 10_000])
@for_each("asked", [ASKED, STREAMED])
@for_each("label", LABELS)
@for_each("pretty", [False, True])
def test_a_whole_reply_is_read_under_every_label(
    receive: ReceiveRequest, plan: CreatePlan, label: str | None, asked: dict[str, object], size: int, pretty: bool
) -> None:
    body = orjson.dumps(orjson.loads(reply("the whole text")), option=orjson.OPT_INDENT_2 if pretty else None)
    attempt = receive("openai/chat", dict(asked)).prepare(plan())
    written = feed_in_pieces(attempt, label, body, size)
    assert attempt.outcome.state == "complete"
    assert b"the whole text" in written


@pytest.mark.parametrize("label", LABELS)
def test_a_stream_that_was_not_asked_for_becomes_one_reply(
    receive: ReceiveRequest, plan: CreatePlan, label: str | None
) -> None:
    attempt = receive("openai/chat", ASKED).prepare(plan())
    answer = orjson.loads(feed_in_pieces(attempt, label, STREAM, 10))
    assert (answer["object"], answer["choices"][0]["message"]["content"]) == ("chat.completion", "he")
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert any("becomes one reply" in change.reason for change in attempt.receipt.changes)


def test_under_strict_it_is_a_fault(receive: ReceiveRequest, plan: CreatePlan) -> None:
    attempt = receive("openai/chat", ASKED).prepare(plan(policy=Policy(replies="strict")))
    feed_in_pieces(attempt, "text/event-stream", STREAM, 100)
    assert fault_of(attempt).code == "upstream_unexpected_stream"


@pytest.mark.parametrize("label", LABELS)
def test_a_stream_that_was_not_asked_for_and_is_torn_is_no_reply(
    receive: ReceiveRequest, plan: CreatePlan, label: str | None
) -> None:
    attempt = receive("openai/chat", ASKED).prepare(plan())
    assert feed_in_pieces(attempt, label, FIRST, 10) == b""
    assert fault_of(attempt).code == "upstream_truncated"


def test_an_error_in_a_stream_that_was_not_asked_for_is_a_fault(receive: ReceiveRequest, plan: CreatePlan) -> None:
    attempt = receive("openai/chat", ASKED).prepare(plan())
    error = b'data: {"error":{"message":"it broke","type":"server_error"}}\n\n'
    assert feed_in_pieces(attempt, "text/event-stream", FIRST + error, 10) == b""
    assert fault_of(attempt).message == "it broke"


def test_the_end_of_such_a_stream_does_not_wait_for_the_end_of_the_bytes(
    receive: ReceiveRequest, plan: CreatePlan
) -> None:
    attempt = receive("openai/chat", ASKED).prepare(plan())
    attempt.start_reply(0, 200, headers("text/event-stream"))
    assert attempt.feed(0, STREAM).data
    assert attempt.outcome.state == "complete"


@pytest.mark.parametrize(
    ("label", "body", "shown"),
    [
        ("text/html", b"<html>Sign in</html>", "its type is text/html, and it has 20 bytes without text"),
        ("text/html", b"<title>Sign in</title>", "its type is text/html, and it begins with 'Sign in'"),
        (None, b"upstream says no", "it has no type, and it begins with 'upstream says no'"),
        ("application/json", b"", "its type is application/json, and it has 0 bytes without text"),
        ("application/json", b"[1]", "its type is application/json, and it begins with '[1]'"),
    ],
)
def test_a_body_that_is_no_json_is_described(
    receive: ReceiveRequest, plan: CreatePlan, label: str | None, body: bytes, shown: str
) -> None:
    attempt = receive("openai/chat", ASKED).prepare(plan())
    feed_in_pieces(attempt, label, body, 5)
    assert fault_of(attempt).message.endswith(f"its reply is not a JSON object: {shown}")


def test_a_whole_reply_as_the_only_event_of_a_stream_keeps_its_text(receive: ReceiveRequest, plan: CreatePlan) -> None:
    for body in (b"data: " + reply("all of it") + b"\n\ndata: [DONE]\n\n", reply("all of it") + b"\n"):
        attempt = receive("openai/chat", STREAMED).prepare(plan())
        assert b"all of it" in feed_in_pieces(attempt, "text/event-stream", body, 20)
        assert attempt.outcome.state == "complete"


@pytest.mark.parametrize("client", ["openai/chat", "databricks/chat"])
@pytest.mark.parametrize("replies", ["off", "report", "repair", "strict"])
@pytest.mark.parametrize("size", [1, 10_000])
def test_a_message_that_is_no_object_is_no_answer(
    receive: ReceiveRequest,
    plan: CreatePlan,
    size: int,
    replies: Literal["off", "report", "repair", "strict"],
    client: str,
) -> None:
    body = b'{"choices":[{"message":[{"content":"lost"}],"finish_reason":"stop"}]}'
    for asked in (ASKED, STREAMED) if replies in ("repair", "strict") else (ASKED,):
        attempt = receive(client, asked).prepare(plan(policy=Policy(replies=replies)))
        feed_in_pieces(attempt, "text/event-stream", body, size)
        assert fault_of(attempt).kind == "upstream_invalid_response"


@pytest.mark.parametrize(
    ("data", "labelled", "form"),
    [
        (b"", True, "events"),
        (b"", False, "json"),
        (b": ping\n\n", False, "events"),
        (b"event: message\n", False, "events"),
        (b"retry: 10\n", False, "events"),
        (b"\xef\xbb\xbf\r\n\r\ndata: {}\n\n", False, "events"),
        (b"data", False, "json"),
        (b"datum", False, "json"),
        (b"database is down", False, "json"),
        (b"Engine callback timeout.", True, "events"),
        (b'{"error":"x"}\n', True, "events"),
        (b'{\n "error":"x"}\n', True, "json"),
        (b"null", False, "json"),
    ],
)
def test_the_form_of_a_body(data: bytes, labelled: bool, form: BodyForm) -> None:
    assert detect_form(data, labelled_events=labelled, ended=True) == form


@given(st.sampled_from([STREAM, reply(), b"error: no", b"data", b"\n\n: c\n\n"]), st.booleans())
def test_the_form_does_not_depend_on_how_the_body_is_cut(body: bytes, labelled: bool) -> None:
    decided = {detect_form(body[:size], labelled_events=labelled) for size in range(len(body))}
    assert decided - {None} <= {detect_form(body, labelled_events=labelled, ended=True)}
