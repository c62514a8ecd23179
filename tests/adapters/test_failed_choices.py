"""Choices that say that they failed: by a finish reason, or by an error beside the text. They are never a success, in
any protocol, under any policy, for any client, whole or streamed."""

from __future__ import annotations

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Policy, Reply, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.sse import encode
from dragoman.adapters.streams import Chunk, End, Output, expand
from dragoman.adapters.translate.bridge import BRIDGES
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.dialects import called, served
from tests.tables import for_each

POLICIES = ("off", "report", "repair", "strict")
PAIRS = [(dialect, protocol) for protocol in ("chat", "completions") for dialect in called(protocol)]
REQUESTS: dict[str, JsonObject] = {
    "chat": {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True},
    "completions": {"model": "m", "prompt": "x", "stream": True},
    "responses": {"model": "m", "input": "x", "stream": True},
}
DIED = {"code": 502, "message": "Provider died"}


def context(protocol: str, policy: str = "repair") -> Context:
    request, target = REQUESTS[protocol], Target("m", policy=Policy(replies=policy))  # type: ignore[arg-type]
    return Context("actual", Call("POST", "/x", request), Receipt(), target, request, clock=lambda: 1.0)


def whole(protocol: str, **choice: JsonValue) -> JsonObject:
    said = {"message": {"role": "assistant", "content": "par"}} if protocol == "chat" else {"text": "par"}
    kind = "chat.completion" if protocol == "chat" else "text_completion"
    return {"id": "c", "object": kind, "created": 1, "model": "m", "choices": [{"index": 0, **said, **choice}]}


def piece(protocol: str, text: str, **choice: JsonValue) -> bytes:
    said = {"delta": {"content": text} if text else {}} if protocol == "chat" else {"text": text}
    kind = "chat.completion.chunk" if protocol == "chat" else "text_completion"
    one = {"index": 0, "finish_reason": None, **said, **choice}
    return encode(orjson.dumps({"id": "c", "object": kind, "created": 1, "model": "m", "choices": [one]}))


def read_whole(dialect: str, protocol: str, body: JsonObject, ctx: Context) -> JsonObject:
    return dialects[dialect].called[protocol].read_reply(Reply(200, body), ctx)


def read(dialect: str, protocol: str, data: bytes, ctx: Context) -> list[Output]:
    reader = dialects[dialect].called[protocol].read_stream(ctx)
    return [*expand([*reader.receive(data), *reader.close()])]


def texts(outputs: list[Output]) -> str:
    choices = [choice for one in outputs if isinstance(one, Chunk) for choice in one.body["choices"]]
    return "".join(choice.get("text") or choice.get("delta", {}).get("content") or "" for choice in choices)


FAILURES = [
    ({"finish_reason": "error"}, "upstream_error", 502, "error"),
    ({"finish_reason": "error", "error": DIED}, "upstream_error", 502, "Provider died"),
    ({"finish_reason": None, "error": DIED}, "upstream_error", 502, "Provider died"),
    ({"finish_reason": "stop", "error": "it died"}, "upstream_error", 502, "it died"),
    ({"finish_reason": "error", "error": {"code": 429, "message": "slow down"}}, "rate_limit", 429, "slow down"),
    ({"finish_reason": "abort"}, "upstream_invalid_response", 502, "abort"),
    ({"finish_reason": "insufficient_system_resource"}, "upstream_unavailable", 503, "insufficient_system_resource"),
    ({"finish_reason": "network_error"}, "upstream_error", 502, "network_error"),
]


@for_each("policy", POLICIES)
@for_each(("choice", "kind", "status", "text"), FAILURES)
@for_each(("dialect", "protocol"), PAIRS)
def test_a_failed_choice_is_a_fault(
    dialect: str, protocol: str, choice: JsonObject, kind: str, status: int, text: str, policy: str
) -> None:
    with pytest.raises(Fault) as caught:
        read_whole(dialect, protocol, whole(protocol, **choice), context(protocol, policy))
    *said, fault = read(dialect, protocol, piece(protocol, "par") + piece(protocol, "", **choice), context(protocol))
    assert isinstance(fault, Fault)
    for one in (caught.value, fault):
        assert (one.kind, one.status, text in one.message) == (kind, status, True)
    assert texts(said) == "par"
    assert all(
        choice["finish_reason"] is None for one in said if isinstance(one, Chunk) for choice in one.body["choices"]
    )


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("protocol", ["chat", "completions"])
def test_a_failed_stream_shows_what_came_before_under_every_policy(protocol: str, policy: str) -> None:
    data = piece(protocol, "par") + piece(protocol, "", finish_reason="error") + b"data: [DONE]\n\n"
    *said, fault = read("openai", protocol, data, context(protocol, policy))
    assert (texts(said), isinstance(fault, Fault)) == ("par", True)


@pytest.mark.parametrize(
    ("word", "finish"), [("model_length", "length"), ("SAFETY", "content_filter"), ("eos", "stop")]
)
@pytest.mark.parametrize(("dialect", "protocol"), PAIRS)
def test_the_words_of_all_vendors_are_read_in_every_dialect(
    dialect: str, protocol: str, word: str, finish: str
) -> None:
    ctx = context(protocol)
    [choice] = read_whole(dialect, protocol, whole(protocol, finish_reason=word), ctx)["choices"]
    assert (choice["finish_reason"], choice["native_finish_reason"], ctx.receipt.losses) == (finish, word, [])
    data = piece(protocol, "par") + piece(protocol, "", finish_reason=word)
    *_, last, end = read(dialect, protocol, data, context(protocol))
    assert isinstance(last, Chunk) and isinstance(end, End)
    assert last.body["choices"][0]["finish_reason"] == finish


@pytest.mark.parametrize("dialect", called("chat"))
@pytest.mark.parametrize("policy", ["off", "report"])
def test_an_unknown_word_is_forwarded_and_counted(dialect: str, policy: str) -> None:
    ctx, streamed = context("chat", policy), context("chat", policy)
    [choice] = read_whole(dialect, "chat", whole("chat", finish_reason="tired"), ctx)["choices"]
    *_, last, end = read(dialect, "chat", piece("chat", "a") + piece("chat", "", finish_reason="tired"), streamed)
    assert isinstance(last, Chunk) and isinstance(end, End)
    assert choice["finish_reason"] == last.body["choices"][0]["finish_reason"] == "tired"
    assert ctx.receipt.violations and streamed.receipt.violations


@pytest.mark.parametrize(("dialect", "protocol"), PAIRS)
def test_an_unknown_word_reads_stop_with_a_loss_that_names_it(dialect: str, protocol: str) -> None:
    ctx, streamed = context(protocol), context(protocol)
    [choice] = read_whole(dialect, protocol, whole(protocol, finish_reason="tired"), ctx)["choices"]
    *_, last, _ = read(dialect, protocol, piece(protocol, "a") + piece(protocol, "", finish_reason="tired"), streamed)
    assert isinstance(last, Chunk)
    assert choice["finish_reason"] == last.body["choices"][0]["finish_reason"] == "stop"
    for one in (ctx, streamed):
        assert ["'tired'" in change.reason for change in one.receipt.losses] == [True]


@pytest.mark.parametrize(("dialect", "protocol"), PAIRS)
def test_an_unknown_word_is_a_fault_if_strict(dialect: str, protocol: str) -> None:
    with pytest.raises(Fault) as caught:
        read_whole(dialect, protocol, whole(protocol, finish_reason="tired"), context(protocol, "strict"))
    data = piece(protocol, "a") + piece(protocol, "", finish_reason="tired")
    *_, fault = read(dialect, protocol, data, context(protocol, "strict"))
    assert isinstance(fault, Fault)
    assert caught.value.status == fault.status == 502


@pytest.mark.parametrize("word", ["null", "NULL", ""])
@pytest.mark.parametrize("protocol", ["chat", "completions"])
def test_a_choice_whose_finish_reason_is_the_word_null_goes_on(protocol: str, word: str) -> None:
    data = piece(protocol, "a", finish_reason=word) + piece(protocol, "b", finish_reason=word)
    outputs = read("openai", protocol, data, context(protocol))
    assert isinstance(outputs[-1], Fault) and outputs[-1].code == "upstream_truncated"
    outputs = read("openai", protocol, data + piece(protocol, "", finish_reason="stop"), context(protocol))
    assert (texts(outputs), isinstance(outputs[-1], End)) == ("ab", True)


# What clients get

CLIENTS = [(name, protocol) for protocol in ("chat", "completions", "responses") for name in served(protocol)]


def outputs_for(protocol: str, data: bytes) -> list[Output]:
    """The outputs of a chat provider for a client of this protocol, which a bridge translates."""
    outputs = read("openai", "chat", data, context("chat")._replace(needs_first_choice=protocol != "chat"))
    if protocol == "chat":
        return outputs
    translator = BRIDGES[protocol][0].stream(REQUESTS[protocol], context(protocol))
    return [made for output in outputs for made in translator.feed(output)]


@for_each("choice", [choice for choice, *_ in FAILURES])
@for_each(("client", "protocol"), CLIENTS)
def test_clients_get_the_text_and_then_an_error(client: str, protocol: str, choice: JsonObject) -> None:
    writer = dialects[client].served[protocol].write_stream(context(protocol))
    data = piece("chat", "par") + piece("chat", "", **choice) + b"data: [DONE]\n\n"
    written = b"".join(writer.write(output) for output in outputs_for(protocol, data))
    assert b"par" in written
    assert b"error" in written.lower()
    assert b'"finish_reason":"' not in written
    assert b"response.completed" not in written and b"response.incomplete" not in written
    if protocol == "responses":
        assert b"response.failed" in written


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("protocol", ["chat", "completions"])
def test_text_in_the_chunk_of_a_failure_is_not_lost(protocol: str, policy: str) -> None:
    data = piece(protocol, "par") + piece(protocol, "tial", finish_reason="error", error=DIED)
    *said, fault = read("openai", protocol, data, context(protocol, policy))
    assert (texts(said), isinstance(fault, Fault)) == ("partial", True)
    assert b"Provider died" not in b"".join(one.raw or b"" for one in said if isinstance(one, Chunk))
