"""What stands between the chunks of a stream: heartbeats say nothing, error objects of any shape are faults."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Chunk, End, Output, expand
from dragoman.contract.json_types import JsonObject
from tests.tables import for_each

POLICIES = ("off", "report", "repair", "strict")
FOLDER = Path(__file__).parent
STREAMS = {
    "chat": FOLDER / "chat/fixtures/streams/openai_text.sse",
    "completions": FOLDER / "completions/fixtures/streams/openai_text.sse",
    "responses": FOLDER / "responses/fixtures/streams/openai_text.sse",
}
REQUESTS: dict[str, JsonObject] = {
    "chat": {"model": "m", "messages": [], "stream": True, "stream_options": {"include_usage": True}},
    "completions": {"model": "m", "prompt": "x", "stream": True, "stream_options": {"include_usage": True}},
    "responses": {"model": "m", "input": "x", "stream": True},
}


def context(protocol: str, policy: str = "repair") -> Context:
    request, target = REQUESTS[protocol], Target("m", policy=Policy(replies=policy))  # type: ignore[arg-type]
    return Context("actual", Call("POST", "/x", request), Receipt(), target, request, clock=lambda: 1.0)


def read(protocol: str, data: bytes, ctx: Context, size: int = 0) -> list[Output]:
    reader = dialects["openai"].called[protocol].read_stream(ctx)
    parts = [data[at : at + size] for at in range(0, len(data), size)] if size else [data]
    return [*expand([output for part in parts for output in reader.receive(part)]), *reader.close()]


def bodies(outputs: list[Output]) -> list[JsonObject]:
    return [output.body for output in outputs if isinstance(output, Chunk)]


HEARTBEATS = [
    b"data:\n\n", b"data: \n\n", b"data: {}\n\n", b"data: null\n\n", b"data: []\n\n", b": ping\n\n", b":\n\n",
    b'event: ping\ndata: {"type":"ping"}\n\n', b'data: {"type":"ping"}\n\n', b"event: ping\ndata: {}\n\n",
    b"event: keepalive\ndata: {}\n\n", b"event: heartbeat\ndata: 17\n\n", b"event: ping\ndata: 2026-01-01 00:00\n\n",
    b'event: keepalive\ndata: {"time":1}\n\n', b'data: {"type":"keepalive","sequence_number":3}\n\n',
]  # fmt: skip


@for_each("policy", POLICIES)
@for_each("heartbeat", HEARTBEATS)
@for_each("protocol", STREAMS)
def test_heartbeats_change_nothing(protocol: str, heartbeat: bytes, policy: str) -> None:
    data = STREAMS[protocol].read_bytes()
    calm, ctx = read(protocol, data, context(protocol, policy)), context(protocol, policy)
    noisy = heartbeat + data.replace(b"\n\n", b"\n\n" + heartbeat)
    for size in (0, 7):
        outputs = read(protocol, noisy, ctx, size)
        assert isinstance(outputs[-1], End)
        assert bodies(outputs) == bodies(calm)
    assert (ctx.receipt.losses, ctx.receipt.violations) == ([], 0)


@pytest.mark.parametrize("end", [b"[DONE] ", b'"[DONE]"', b"[done]"])
@pytest.mark.parametrize("protocol", STREAMS)
def test_other_ways_to_say_that_a_stream_is_done(protocol: str, end: bytes) -> None:
    data = STREAMS[protocol].read_bytes().replace(b"data: [DONE]", b"data: " + end)
    assert isinstance(read(protocol, data, context(protocol))[-1], End)


ERRORS: list[tuple[bytes, str, str]] = [
    (b'data: {"error":{"message":"slow down","code":429}}', "rate_limit", "slow down"),
    (b'data: {"object":"error","message":"no room","type":"BadRequestError","code":400}', "invalid_request", "no room"),
    (b'data: {"object":"error","message":"out of memory","code":500}', "upstream_error", "out of memory"),
    (b'data: {"code":"rate_limit_exceeded","message":"slow down"}', "rate_limit", "slow down"),
    (b'data: {"message":"slow down","status_code":429}', "rate_limit", "slow down"),
    (b'data: [{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}]', "upstream_unavailable", "busy"),
    (b'data: {"error":"it broke"}', "upstream_error", "it broke"),
    (b'data: {"detail":"it broke"}', "upstream_error", "it broke"),
    (
        b'data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
        "upstream_unavailable",
        "Overloaded",
    ),
    (b'data: {"type":"error","error":{}}', "upstream_error", ""),
    (b'event: error\ndata: {"message":"it broke"}', "upstream_error", "it broke"),
    (b'event: error\ndata: {"anything":1}', "upstream_error", ""),
    (b"event: error\ndata: it broke", "upstream_error", "it broke"),
    (b'event: error\ndata: "it broke"', "upstream_error", "it broke"),
    (b"event: error\ndata:", "upstream_error", ""),
    (b'data: {"error_code":"RATE_LIMIT_EXCEEDED","message":"slow down"}', "rate_limit", "slow down"),
    (b'data: {"message":"it broke"}', "upstream_error", "it broke"),
    (b'data: {"status":"error","message":"it broke"}', "upstream_error", "it broke"),
    (b'{"error":{"message":"slow down","code":429}}', "rate_limit", "slow down"),
]


@for_each("policy", POLICIES)
@for_each(("error", "kind", "text"), ERRORS)
@for_each("protocol", STREAMS)
def test_an_error_object_of_any_shape_is_a_fault_of_its_kind(
    protocol: str, error: bytes, kind: str, text: str, policy: str
) -> None:
    first = STREAMS[protocol].read_bytes().partition(b"\n\n")[0] + b"\n\n"
    for before in (first, b""):
        *said, fault = read(protocol, before + error + b"\n\ndata: [DONE]\n\n", context(protocol, policy))
        assert isinstance(fault, Fault) and not any(isinstance(one, End) for one in said)
        assert (fault.kind, text in fault.message) == (kind, True)
        assert len(bodies(said)) == bool(before)


@pytest.mark.parametrize("policy", POLICIES)
def test_text_beside_an_error_in_one_chunk_goes_out_before_the_fault(policy: str) -> None:
    choice = b'{"index":0,"delta":{"role":"assistant","content":"par"},"finish_reason":"error"}'
    chunk = b'{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[' + choice + b"]"
    data = b"data: " + chunk + b',"error":{"code":502,"message":"Provider died"}}\n\n'
    chunk_out, fault = read("chat", data, context("chat", policy))
    assert isinstance(chunk_out, Chunk) and isinstance(fault, Fault)
    assert (fault.message, fault.status) == ("Provider died", 502)
    assert chunk_out.body["choices"][0]["delta"]["content"] == "par"
    assert "error" not in chunk_out.body and chunk_out.body["choices"][0]["finish_reason"] is None


@pytest.mark.parametrize("protocol", ["chat", "completions"])
def test_a_chunk_without_choices_ends_no_stream(protocol: str) -> None:
    data = STREAMS[protocol].read_bytes()
    note = b'data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","x_seconds":3}\n\n'
    assert isinstance(read(protocol, data.replace(b"data: [DONE]", note + b"data: [DONE]"), context(protocol))[-1], End)


# JSON that is broken in the ways of model servers

HALF, STRAY = b'"h\\ud83d\\"i"', b'"h\xf0\x9f\\"i"'


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("text", [HALF, STRAY])
@pytest.mark.parametrize("protocol", ["chat", "completions"])
def test_half_a_character_becomes_a_replacement_character(protocol: str, text: bytes, policy: str) -> None:
    said = b'"text":' + text if protocol == "completions" else b'"delta":{"content":' + text + b"}"
    kind = "text_completion" if protocol == "completions" else "chat.completion.chunk"
    head = b'data: {"id":"c","object":"' + kind.encode() + b'","created":1,"model":"m","choices":[{"index":0,'
    data = head + said + b',"logprobs":null,"finish_reason":null}]}\n\n'
    end = head + (b'"text":""' if protocol == "completions" else b'"delta":{}')
    data += end + b',"logprobs":null,"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    ctx = context(protocol, policy)
    chunk, *_, last = read(protocol, data, ctx)
    assert isinstance(chunk, Chunk) and isinstance(last, End)
    choice = chunk.body["choices"][0]
    assert (choice.get("text") or choice["delta"]["content"]).replace("��", "�") == 'h�"i'
    assert chunk.raw is None and orjson.dumps(chunk.body)
    assert [change.weight for change in ctx.receipt.losses] == ["loss"]


def test_half_a_character_in_a_responses_stream() -> None:
    data = STREAMS["responses"].read_bytes()
    delta = orjson.loads(
        next(line for line in data.split(b"\n") if b"output_text.delta" in line and b"data" in line)[6:]
    )
    text = orjson.dumps(delta["delta"])
    ctx = context("responses")
    outputs = read("responses", data.replace(b'"delta":' + text, b'"delta":"\\ude00"', 1), ctx)
    assert isinstance(outputs[-1], End)
    assert any(body.get("delta") == "�" for body in bodies(outputs))
    assert ctx.receipt.losses


@pytest.mark.parametrize(("literal", "read_as"), [(b"-Infinity", -9999.0), (b"NaN", -9999.0), (b"-1e999", -9999.0)])
@pytest.mark.parametrize("policy", POLICIES)
def test_log_probabilities_that_are_no_numbers(literal: bytes, read_as: float, policy: str) -> None:
    head = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
    token = b'{"token":"a","bytes":[97],"logprob":' + literal + b',"top_logprobs":[]}'
    data = head + b'{"role":"assistant","content":"NaN"},"logprobs":{"content":[' + token
    data += b'],"refusal":null},"finish_reason":null}]}\n\n'
    data += head + b'{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    ctx = context("chat", policy)
    chunk, *_, last = read("chat", data, ctx)
    assert isinstance(chunk, Chunk) and isinstance(last, End)
    choice = chunk.body["choices"][0]
    assert (choice["delta"]["content"], choice["logprobs"]["content"][0]["logprob"]) == ("NaN", read_as)
    assert ctx.receipt.losses
