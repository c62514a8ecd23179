"""Requests and replies that are not in hub form, which a dialect's schema or the policy allows: faults, no defects."""

from __future__ import annotations

import json

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Policy
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import Pipeline
from dragoman.adapters.routes import Route
from dragoman.adapters.samples import load_sample
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.tables import for_each

from .conftest import CreatePlan, ReceiveRequest

SSE = {"content-type": "text/event-stream"}
DONE = b"data: [DONE]\n\n"


def ask(**more: JsonValue) -> JsonObject:
    return {"model": "m", "messages": [{"role": "user", "content": "hi"}], **more}


def event(choice: JsonValue) -> bytes:
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


class Defects(list[str]):
    def report(self, provider: str, error: Exception) -> None:
        self.append(repr(error))


@for_each("client", ["databricks", "azure", "mindie"])
@for_each("replies", ["off", "report"])
@for_each(
    "choice",
    [
        {"index": 0, "delta": {}, "finish_reason": ["stop"]},
        {"index": 0, "delta": "text", "finish_reason": None},
        {"index": 0, "delta": {"tool_calls": "x"}, "finish_reason": None},
        {"index": 0, "delta": {"content": ["x"], "refusal": "no"}, "finish_reason": "stop"},
    ],
)
def test_an_odd_chunk_that_nobody_repairs(
    receive: ReceiveRequest, plan: CreatePlan, client: str, replies: str, choice: JsonObject
) -> None:
    defects = Defects()
    pipeline = receive(f"{client}/chat", ask(stream=True), report=defects.report)
    attempt = pipeline.prepare(plan(policy=Policy(replies=replies)))  # type: ignore[arg-type]
    attempt.start_reply(0, 200, SSE)
    attempt.feed(0, event({"index": 0, "delta": {"content": "a"}, "finish_reason": None}))
    attempt.feed(0, event(choice) + DONE)
    attempt.close(0)
    assert attempt.outcome.state in ("complete", "failed")
    assert defects == []


def test_a_held_chunk_does_not_break_the_fault_after_it(receive: ReceiveRequest, plan: CreatePlan) -> None:
    attempt = receive("azure/chat", ask(stream=True)).prepare(plan(policy=Policy(replies="off")))
    attempt.start_reply(0, 200, SSE)
    attempt.feed(0, event({"index": 0, "delta": {"content": "a"}, "finish_reason": None}))
    attempt.feed(0, event({"index": 0, "delta": {"content": [None], "refusal": "no"}, "finish_reason": "stop"}))
    attempt.fail(Fault("upstream_timeout", "too slow"))
    assert attempt.outcome.state == "failed"


@pytest.mark.parametrize("choice", [{"index": {}, "message": {}}, {"message": []}, {"message": {}}])
def test_an_odd_whole_reply_for_a_stream(receive: ReceiveRequest, plan: CreatePlan, choice: JsonObject) -> None:
    defects = Defects()
    pipeline = receive("azure/chat", ask(stream=True), report=defects.report)
    attempt = pipeline.prepare(plan(policy=Policy(replies="off")))
    attempt.start_reply(0, 200, {"content-type": "application/json"})
    attempt.feed(0, orjson.dumps({"choices": [{**choice, "finish_reason": "stop"}]}))
    attempt.close(0)
    assert attempt.outcome.fault is not None
    assert attempt.outcome.fault.code == "upstream_invalid_response"
    assert defects == []


@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_that_is_nested_too_deeply(receive: ReceiveRequest, plan: CreatePlan, stream: bool) -> None:
    defects = Defects()
    attempt = receive("openai/chat", ask(stream=stream), report=defects.report).prepare(plan("openai", "responses"))
    deep = b'{"type": "response.created", "response": ' + b"[" * 300 + b"]" * 300 + b"}"
    attempt.start_reply(0, 200, SSE if stream else {"content-type": "application/json"})
    attempt.feed(0, b"data: " + deep + b"\n\n" if stream else deep)
    attempt.close(0)
    assert attempt.outcome.fault is not None
    assert attempt.outcome.fault.kind == "upstream_invalid_response"
    assert defects == []


@pytest.mark.parametrize(
    ("levels", "outcome"), [(120, "response.completed"), (254, "response.failed"), (900, "response.failed")]
)
def test_a_kept_stream_with_a_nested_item(receive: ReceiveRequest, plan: CreatePlan, levels: int, outcome: str) -> None:
    """What can be read can be written and stored, although an item is deeper in the response than in its event."""
    defects = Defects()
    item = b'{"type":"new_call","id":"n_1","status":"completed","data":' + b"[" * levels + b"]" * levels + b"}"
    response = b'{"id":"r","object":"response","created_at":1,"status":"%s","model":"m","output":[%s]}'
    body = {"model": "m", "input": "hi", "stream": True}
    pipeline = receive("openai/responses", body, has_store=True, report=defects.report)
    assert pipeline.start_conversation() is None
    attempt = pipeline.prepare(plan("openai", "responses"))
    attempt.start_reply(0, 200, SSE)
    written = attempt.feed(
        0, b'data: {"type":"response.created","response":%s}\n\n' % (response % (b"in_progress", b""))
    )
    ended = attempt.feed(
        0,
        b'data: {"type":"response.output_item.done","output_index":0,"item":%s}\n\n' % item
        + b'data: {"type":"response.completed","response":%s}\n\n' % (response % (b"completed", item)),
    )
    assert ended.record is not None
    saved = attempt.confirm_save()
    text = b"".join((written.data, ended.data, saved.data))
    last = json.loads(text.split(b"data: ")[-2])
    assert (last["type"], ended.record.response["status"]) == (outcome, outcome.removeprefix("response."))
    assert orjson.dumps(ended.record.response)
    assert defects == []


@pytest.mark.parametrize("stream", [False, True])
def test_what_a_provider_names_must_be_in_the_request(receive: ReceiveRequest, plan: CreatePlan, stream: bool) -> None:
    """Or be a parameter of the protocol that both speak. vLLM names `input_tokens` if a prompt is too long."""
    named = {
        "input_tokens": None,
        "messages[0].content": "messages[0].content",
        "messages[3]": "messages",
        "top_p": "top_p",
    }
    for param, shown in named.items():
        error = orjson.dumps({"error": {"message": "no", "type": "invalid_request_error", "param": param}})
        attempt = receive("openai/chat", ask(stream=stream)).prepare(plan())
        attempt.start_reply(0, 200 if stream else 400, SSE if stream else {})
        attempt.feed(0, b"data: " + error + b"\n\n" if stream else error)
        attempt.close(0)
        assert attempt.outcome.fault is not None
        assert attempt.outcome.fault.param == shown


@pytest.mark.parametrize("call", [{"function": {}}, {"function": []}, "x"])
def test_a_call_of_a_loose_dialect_is_refused_by_name(plan: CreatePlan, call: JsonValue) -> None:
    """MindIE's documented schema does not say what a call is."""
    messages = [{"role": "assistant", "content": "x", "tool_calls": [call]}]
    mindie = dialects["mindie"]
    pipeline = Pipeline(Route(mindie, "chat", mindie.served["chat"], "documented"), Call("POST", "/", {}))
    pipeline.receive(orjson.dumps(ask(messages=messages)))
    with pytest.raises(Fault, match=r"messages\[0\].tool_calls\[0\]") as raised:
        pipeline.prepare(plan("openai", "responses"))
    assert raised.value.owner == "client"


def test_an_image_whose_address_is_a_text(receive: ReceiveRequest, plan: CreatePlan) -> None:
    part = {"type": "image_url", "image_url": "https://example.com/a.png"}
    pipeline = receive("mindie/chat", ask(messages=[{"role": "user", "content": [part]}]))
    (call,) = pipeline.prepare(plan("openai", "responses")).calls
    (sent,) = call.call.body["input"][0]["content"]
    assert sent == {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "auto"}


def test_a_result_without_the_id_of_its_call(receive: ReceiveRequest) -> None:
    with pytest.raises(Fault) as raised:
        receive("mindie/chat", ask(messages=[{"role": "tool", "content": "x"}]))
    assert (raised.value.param, raised.value.code) == ("messages[0].tool_call_id", "missing_required_parameter")


def test_a_response_that_is_not_what_was_asked_for_never_completes(receive: ReceiveRequest, plan: CreatePlan) -> None:
    """Under `strict`: the provider's last event is not sent before the fault."""
    request: JsonObject = {"model": "m", "input": "x", "stream": True, "text": {"format": {"type": "json_object"}}}
    attempt = receive("openai/responses", request).prepare(plan("openai", "responses", policy=Policy(replies="strict")))
    sample = load_sample("openai", "responses")
    data = b"".join(b"data: " + orjson.dumps(event) + b"\n\n" for event in sample["events"])
    attempt.start_reply(0, 200, SSE)
    written = attempt.feed(0, data).data + attempt.close(0).data
    assert attempt.outcome.fault is not None
    assert attempt.outcome.fault.code == "upstream_mismatch"
    assert b"event: response.completed" not in written
    assert b"event: response.failed" in written


def test_a_text_that_is_also_between_a_key_and_its_value(receive: ReceiveRequest, plan: CreatePlan) -> None:
    """The text `: ` is found in `"model": "m"` too, so its chunk is no template."""
    defects = Defects()
    attempt = receive("openai/chat", ask(stream=True), report=defects.report).prepare(plan())
    attempt.start_reply(0, 200, SSE)
    chunk: JsonObject = {"choices": [{"index": 0, "delta": {"content": ": "}, "finish_reason": None}], "model": "m"}
    data = b"data: " + json.dumps(chunk).encode() + b"\n\n"
    end = event({"index": 0, "delta": {}, "finish_reason": "stop"})
    written = attempt.feed(0, data + data + end + DONE).data
    assert attempt.outcome.state == "complete"
    assert written.count(b'"content":": "') + written.count(b'"content": ": "') == 2
    assert defects == []


@pytest.mark.parametrize("replies", ["off", "report"])
def test_counts_in_the_last_chunk_are_written_where_nobody_repairs(
    receive: ReceiveRequest, plan: CreatePlan, replies: str
) -> None:
    attempt = receive("mindie/chat", ask(stream=True)).prepare(plan(policy=Policy(replies=replies)))  # type: ignore[arg-type]
    counts = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    choice = {"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}
    attempt.start_reply(0, 200, SSE)
    written = attempt.feed(0, b"data: " + json.dumps({"choices": [choice], "usage": counts}).encode() + b"\n\n" + DONE)
    assert b'"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}' in written.data


def list_losses(receipt: Receipt) -> list[str | int]:
    return [change.before[0] for change in receipt.losses if change.before]


def test_counts_that_cannot_be_read_are_recorded_as_lost(receive: ReceiveRequest, plan: CreatePlan) -> None:
    """Of a stream and of a response; of a whole chat reply they were before."""
    stream = receive("openai/chat", ask(stream=True)).prepare(plan())
    end = event({"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"})
    stream.start_reply(0, 200, SSE)
    stream.feed(0, b'data: {"choices": [], "usage": {"completion_tokens": 4}}\n\n' + end + DONE)
    whole = receive("openai/responses", {"model": "m", "input": "x"}).prepare(plan("openai", "responses"))
    whole.start_reply(0, 200, {})
    whole.feed(0, b'{"status": "completed", "output": [], "usage": {"output_tokens": 21}}')
    whole.close(0)
    for attempt in (stream, whole):
        assert attempt.outcome.state == "complete"
        assert "usage" in list_losses(attempt.receipt)


def test_an_earlier_value_of_a_key_is_recorded_as_lost(receive: ReceiveRequest, plan: CreatePlan) -> None:
    attempt = receive("openai/chat", ask(stream=True)).prepare(plan())
    choice = {"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}
    attempt.start_reply(0, 200, SSE)
    attempt.feed(0, b'data: {"choices": [], "service_tier": "flex"}\n\n')
    attempt.feed(0, b"data: " + json.dumps({"choices": [choice], "service_tier": "default"}).encode() + b"\n\n" + DONE)
    assert attempt.outcome.state == "complete"
    assert "service_tier" in list_losses(attempt.receipt)
