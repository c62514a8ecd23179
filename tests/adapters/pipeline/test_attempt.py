"""An attempt in every state: what the caller gets, and what the outcome is."""

from __future__ import annotations

import gzip
import json

import orjson
import pytest

from dragoman.adapters.call import JsonObject, Policy
from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import NOTHING, Attempt, Output
from dragoman.adapters.responses.stored import StoredResponse

from .conftest import CreatePlan, ReceiveRequest

ASKED: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
STREAMED: JsonObject = {**ASKED, "stream": True}
KEPT: JsonObject = {"model": "m", "input": "hi"}
JSON = {"content-type": "application/json"}
SSE = {"content-type": "text/event-stream"}
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
TIMEOUT = Fault("upstream_timeout", "openai: it is too slow", code="first_token_timeout")


def reply(text: str = "hello") -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return orjson.dumps(
        {"id": "c", "object": "chat.completion", "created": 1, "model": "up", "choices": [choice], "usage": USAGE}
    )


def event(delta: JsonObject, finish: str | None = None) -> bytes:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "up", "choices": choices}
    return b"data: " + orjson.dumps(body) + b"\n\n"


FIRST, LAST, DONE = event({"role": "assistant", "content": "he"}), event({}, "stop"), b"data: [DONE]\n\n"


def feed_whole(attempt: Attempt, body: bytes, status: int = 200, call: int = 0) -> Output:
    """The output of the last step of a whole reply."""
    assert attempt.start_reply(call, status, JSON) is NOTHING
    assert attempt.feed(call, body) is NOTHING
    return attempt.close(call)


def fault_of(attempt: Attempt) -> Fault:
    assert attempt.outcome.state == "failed"
    assert attempt.outcome.fault is not None
    return attempt.outcome.fault


def test_a_whole_reply_is_written_at_its_end(receive: ReceiveRequest, plan: CreatePlan) -> None:
    attempt = receive("openai/chat", ASKED).prepare(plan())
    assert [call.number for call in attempt.calls] == [0]
    assert attempt.calls[0].call.body["model"] == "upstream"
    assert attempt.outcome.state == "open"
    output = feed_whole(attempt, reply())
    assert json.loads(output.data)["choices"][0]["message"]["content"] == "hello"
    assert (attempt.outcome.state, attempt.answer.status, attempt.answer.usage) == ("complete", 200, USAGE)


def test_a_stream_is_written_as_it_comes(receive: ReceiveRequest, plan: CreatePlan) -> None:
    attempt = receive("openai/chat", STREAMED).prepare(plan())
    assert attempt.calls[0].stream
    attempt.start_reply(0, 200, SSE)
    assert (attempt.feed(0, FIRST).data, attempt.answer.has_begun, attempt.outcome.state) == (FIRST, True, "open")
    assert attempt.headers["Content-Type"] == "text/event-stream"
    assert attempt.feed(0, LAST + DONE).data == LAST + DONE
    assert attempt.outcome.state == "complete"
    assert not attempt.is_reading(0)
    assert attempt.close(0) is NOTHING


def test_a_fault_before_the_first_byte_is_only_reported(receive: ReceiveRequest, plan: CreatePlan) -> None:
    attempt = receive("openai/chat", STREAMED).prepare(plan())
    attempt.start_reply(0, 200, SSE)
    assert attempt.fail(TIMEOUT) is NOTHING
    assert fault_of(attempt) is TIMEOUT
    assert not attempt.answer.has_begun


def test_a_fault_after_the_first_byte_ends_the_stream_with_an_error(receive: ReceiveRequest, plan: CreatePlan) -> None:
    attempt = receive("openai/chat", STREAMED).prepare(plan())
    attempt.start_reply(0, 200, SSE)
    attempt.feed(0, FIRST)
    written = attempt.close(0, TIMEOUT).data
    assert json.loads(written.removeprefix(b"data: "))["error"]["code"] == "first_token_timeout"
    assert fault_of(attempt) is TIMEOUT


def test_a_client_that_knows_no_error_events_has_its_connection_broken(
    receive: ReceiveRequest, plan: CreatePlan
) -> None:
    attempt = receive("azure/chat", STREAMED).prepare(plan())
    attempt.start_reply(0, 200, SSE)
    attempt.feed(0, FIRST)
    attempt.close(0, TIMEOUT)
    assert attempt.answer.breaks_connection


def test_a_torn_stream_is_no_complete_answer(receive: ReceiveRequest, plan: CreatePlan) -> None:
    attempt = receive("openai/chat", STREAMED).prepare(plan())
    attempt.start_reply(0, 200, SSE)
    attempt.feed(0, FIRST)
    assert b"upstream_truncated" in attempt.close(0).data
    assert fault_of(attempt).code == "upstream_truncated"


def test_what_comes_before_a_fault_in_one_read_is_written_first(receive: ReceiveRequest, plan: CreatePlan) -> None:
    attempt = receive("openai/chat", STREAMED).prepare(plan())
    attempt.start_reply(0, 200, SSE)
    written = attempt.feed(0, FIRST + b'data: {"error": {"message": "boom", "code": "e"}}\n\n').data
    assert written.startswith(FIRST)
    assert b"boom" in written[len(FIRST) :]
    assert fault_of(attempt).message == "boom"


def test_nothing_changes_after_the_end(receive: ReceiveRequest, plan: CreatePlan) -> None:
    attempt = receive("openai/chat", ASKED).prepare(plan())
    feed_whole(attempt, reply())
    assert attempt.fail(TIMEOUT) is NOTHING
    assert attempt.confirm_save() is NOTHING
    assert attempt.outcome.state == "complete"


@pytest.mark.parametrize("status", [400, 429, 500, 503])
def test_an_error_reply_fails_the_attempt(status: int, receive: ReceiveRequest, plan: CreatePlan) -> None:
    attempt = receive("openai/chat", STREAMED).prepare(plan())
    assert feed_whole(attempt, b'{"error": {"message": "no", "type": "x", "code": "y"}}', status) is NOTHING
    assert (fault_of(attempt).answered, fault_of(attempt).provider_code) == (status, "y")


def test_an_error_names_the_clients_own_parameter(receive: ReceiveRequest, plan: CreatePlan) -> None:
    request = {"model": "m", "input": "hi", "max_output_tokens": 99_999}
    attempt = receive("openai/responses", request).prepare(plan())
    asked = next(name for name in attempt.calls[0].call.body if name.startswith("max_"))
    error = {"error": {"message": "too many", "type": "invalid_request_error", "param": asked, "code": None}}
    feed_whole(attempt, orjson.dumps(error), 400)
    assert fault_of(attempt).param == "max_output_tokens"


def test_a_redirect_is_not_followed(receive: ReceiveRequest, plan: CreatePlan) -> None:
    attempt = receive("openai/chat", ASKED).prepare(plan())
    attempt.start_reply(0, 302, {"location": "http://127.0.0.1/"})
    assert fault_of(attempt).code == "upstream_redirect"


def test_a_whole_reply_becomes_the_stream_that_the_client_asked_for(receive: ReceiveRequest, plan: CreatePlan) -> None:
    attempt = receive("openai/chat", STREAMED).prepare(plan())
    written = feed_whole(attempt, reply()).data
    assert written.endswith(DONE)
    assert b'"content":"hello"' in written.replace(b": ", b":")
    assert attempt.outcome.state == "complete"


def test_a_compressed_stream_is_given_in_pieces(receive: ReceiveRequest, plan: CreatePlan) -> None:
    attempt = receive("openai/chat", STREAMED).prepare(plan())
    events = [event({"content": "x" * 1000}) for _ in range(2000)]
    raw = b"".join([FIRST, *events, LAST, DONE])
    attempt.start_reply(0, 200, {**SSE, "content-encoding": "gzip"})
    outputs = [attempt.feed(0, gzip.compress(raw))]
    while outputs[-1].more:
        outputs.append(attempt.resume(0))
    assert len(outputs) > 2, "a small read became one huge output"
    assert b"".join(output.data for output in outputs) == raw
    assert attempt.outcome.state == "complete"


def test_an_unexpected_error_is_reported_and_fails_the_attempt(
    receive: ReceiveRequest, plan: CreatePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[tuple[str, Exception]] = []
    attempt = receive("openai/chat", ASKED, report=lambda *defect: reported.append(defect)).prepare(plan())
    error = ZeroDivisionError("a defect")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("dragoman.adapters.pipeline.reply_reader.ReplyReader.close", fail)
    assert feed_whole(attempt, reply()) is NOTHING
    assert reported == [("openai", error)]
    assert (fault_of(attempt).kind, fault_of(attempt).message) == (
        "upstream_invalid_response",
        "openai: its reply cannot be read",
    )


# Several calls


def prepare_prompts(receive: ReceiveRequest, plan: CreatePlan) -> Attempt:
    pipeline = receive("openai/completions", {"model": "m", "prompt": ["a", "b"], "max_tokens": 5})
    return pipeline.prepare(plan(policy=Policy(emulate_completions=True)))


def test_several_replies_become_one_answer_when_the_last_is_there(receive: ReceiveRequest, plan: CreatePlan) -> None:
    attempt = prepare_prompts(receive, plan)
    assert [call.number for call in attempt.calls] == [0, 1]
    assert feed_whole(attempt, reply("second"), call=1) is NOTHING
    assert attempt.outcome.state == "open"
    answer = json.loads(feed_whole(attempt, reply("first"), call=0).data)
    assert [choice["text"] for choice in answer["choices"]] == ["first", "second"]
    assert answer["usage"]["total_tokens"] == 2 * USAGE["total_tokens"]


def test_the_first_failure_of_several_calls_fails_the_attempt(receive: ReceiveRequest, plan: CreatePlan) -> None:
    attempt = prepare_prompts(receive, plan)
    feed_whole(attempt, reply(), call=0)
    feed_whole(attempt, b'{"error": {"message": "busy"}}', 503, call=1)
    assert fault_of(attempt).answered == 503
    assert not attempt.is_reading(0)
    assert not attempt.is_reading(1)


# Kept responses


def test_a_whole_response_is_saved_before_the_client_gets_it(receive: ReceiveRequest, plan: CreatePlan) -> None:
    pipeline = receive("openai/responses", KEPT, has_store=True)
    assert pipeline.start_conversation() is None
    attempt = pipeline.prepare(plan())
    held = feed_whole(attempt, reply())
    assert held.data == b""
    assert held.record is not None
    assert attempt.outcome.state == "open"
    shown = json.loads(attempt.confirm_save().data)
    assert shown["id"] == held.record.response["id"]
    assert (shown["store"], attempt.outcome.state) == (True, "complete")


def test_the_end_of_a_stream_is_saved_before_the_client_gets_it(receive: ReceiveRequest, plan: CreatePlan) -> None:
    pipeline = receive("openai/responses", {**KEPT, "stream": True}, has_store=True)
    pipeline.start_conversation()
    attempt = pipeline.prepare(plan())
    attempt.start_reply(0, 200, SSE)
    attempt.feed(0, FIRST)
    attempt.feed(0, LAST)
    held = attempt.feed(0, DONE)
    assert held.record is not None
    assert b"response.completed" not in held.data
    assert b"response.completed" in attempt.confirm_save().data
    assert attempt.outcome.state == "complete"


@pytest.mark.parametrize("reads", [1, 2, 3])
def test_the_record_has_the_text_that_the_client_gets(reads: int, receive: ReceiveRequest, plan: CreatePlan) -> None:
    """The text is made once. It is the one that the event has if its response is written with it."""

    def answer(may_share: bool) -> tuple[Output, bytes]:
        pipeline = receive("openai/responses", {**KEPT, "stream": True}, has_store=True)
        pipeline.start_conversation()
        attempt = pipeline.prepare(plan())
        if not may_share:
            attempt.answer.encode_response = lambda response: None  # type: ignore[method-assign]
        attempt.start_reply(0, 200, SSE)
        pieces = [FIRST, LAST, DONE]
        before = [attempt.feed(0, piece) for piece in [*pieces[: reads - 1], b"".join(pieces[reads - 1 :])]]
        return before[-1], b"".join(output.data for output in before) + attempt.confirm_save().data

    shared, data = answer(may_share=True)
    alone, expected = answer(may_share=False)
    assert shared.record is not None and alone.record is not None
    assert (alone.record.written, shared.record.written) == (None, orjson.dumps(shared.record.response))
    assert shared.record.written in data
    assert without_ids(data, shared.record) == without_ids(expected, alone.record)


def without_ids(data: bytes, record: StoredResponse) -> bytes:
    return data.replace(record.id.removeprefix("resp_").encode(), b"")


def test_an_answer_that_cannot_be_saved_has_failed(receive: ReceiveRequest, plan: CreatePlan) -> None:
    broken = Fault("internal", "the store is full", code="store_unavailable")
    for stream in (False, True):
        pipeline = receive("openai/responses", {**KEPT, "stream": stream}, has_store=True)
        pipeline.start_conversation()
        attempt = pipeline.prepare(plan())
        feed_whole(attempt, reply())
        output = attempt.reject_save(broken)
        assert fault_of(attempt) is broken
        assert b"completed" not in output.data
        assert output.record is None


def test_a_response_that_fails_after_it_has_begun_is_kept_as_failed(receive: ReceiveRequest, plan: CreatePlan) -> None:
    pipeline = receive("openai/responses", {**KEPT, "stream": True}, has_store=True)
    pipeline.start_conversation()
    attempt = pipeline.prepare(plan())
    attempt.start_reply(0, 200, SSE)
    attempt.feed(0, FIRST)
    output = attempt.close(0, TIMEOUT)
    assert b"response.failed" in output.data
    assert output.record is not None
    assert output.record.response["status"] == "failed"


def prepare_continued(receive: ReceiveRequest, plan: CreatePlan) -> Attempt:
    """A request that continues a response which the provider has kept too."""
    response: JsonObject = {"id": "resp_ours", "model": "m", "status": "completed", "output": []}
    earlier = StoredResponse("resp_ours", None, 1.0, "m", [], response, "openai", "resp_theirs")
    pipeline = receive("openai/responses", {**KEPT, "previous_response_id": "resp_ours"}, has_store=True)
    recall = pipeline.start_conversation()
    assert recall is not None
    assert recall.previous_id == "resp_ours"
    pipeline.supply([earlier], [])
    return pipeline.prepare(plan("openai", "responses"))


NOT_FOUND = b'{"error": {"message": "gone", "code": "previous_response_not_found", "param": "previous_response_id"}}'


def test_a_call_is_repeated_if_the_provider_has_lost_the_response(receive: ReceiveRequest, plan: CreatePlan) -> None:
    attempt = prepare_continued(receive, plan)
    assert attempt.calls[0].call.body["previous_response_id"] == "resp_theirs"
    output = feed_whole(attempt, NOT_FOUND, 404)
    assert attempt.outcome.state == "open"
    (again,) = output.calls
    assert again.number == 1
    assert "previous_response_id" not in again.call.body
    feed_whole(attempt, NOT_FOUND, 404, call=1)
    assert fault_of(attempt).code == "previous_response_not_found"


def test_the_outcome_of_a_repeated_call_counts(receive: ReceiveRequest, plan: CreatePlan) -> None:
    attempt = prepare_continued(receive, plan)
    feed_whole(attempt, NOT_FOUND, 404)
    feed_whole(attempt, b"no JSON", 200, call=1)
    assert fault_of(attempt).kind == "upstream_invalid_response"
