"""What providers get of an answer that was spoken in an earlier turn, and clients of other protocols of a new one."""

from __future__ import annotations

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Context
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Chunk, End
from dragoman.adapters.translate.bridge import BRIDGES, Bridge
from dragoman.adapters.translate.message_requests import to_messages_request
from dragoman.adapters.translate.requests import to_responses_request
from dragoman.contract.json_types import JsonObject
from tests.adapters.conftest import MakeContext

ASK = {"role": "user", "content": "go on"}
SPOKEN = {"id": "audio_1", "data": "aGk=", "expires_at": 1, "transcript": "hi there"}
WITHOUT_ID = {key: value for key, value in SPOKEN.items() if key != "id"}
WITHOUT_TEXT = {"data": "aGk="}


def send(context: MakeContext, message: JsonObject, dialect: str) -> tuple[JsonObject, Context]:
    request = {"model": "m", "messages": [ASK, {"role": "assistant", **message}, ASK]}
    ctx = context(request=request)
    return dialects[dialect].called["chat"].write_request(request, ctx).body["messages"][1], ctx


@pytest.mark.parametrize("dialect", ["openai", "azure"])
def test_a_provider_that_stores_audio_finds_it_by_its_id(context: MakeContext, dialect: str) -> None:
    sent, ctx = send(context, {"content": None, "audio": SPOKEN}, dialect)
    assert sent["audio"] == {"id": "audio_1"}
    assert not ctx.receipt.losses


@pytest.mark.parametrize("dialect", ["openai", "azure", "databricks", "mindie"])
def test_audio_without_an_id_becomes_what_was_said(context: MakeContext, dialect: str) -> None:
    sent, ctx = send(context, {"content": None, "audio": WITHOUT_ID}, dialect)
    assert sent == {"role": "assistant", "content": "hi there"}
    assert [change.before for change in ctx.receipt.losses] == [("messages", 1, "audio")]
    assert ctx.receipt.unmap(("messages", 1, "content")) == ("messages", 1, "audio")


@pytest.mark.parametrize("dialect", ["databricks", "mindie"])
def test_a_provider_without_audio_gets_what_was_said(context: MakeContext, dialect: str) -> None:
    sent, _ = send(context, {"content": None, "audio": SPOKEN}, dialect)
    assert sent == {"role": "assistant", "content": "hi there"}


def test_a_text_beside_the_audio_stays(context: MakeContext) -> None:
    sent, ctx = send(context, {"content": "hi", "audio": WITHOUT_ID}, "openai")
    assert sent == {"role": "assistant", "content": "hi"}
    assert [change.before for change in ctx.receipt.losses] == [("messages", 1, "audio")]


def test_audio_with_neither_an_id_nor_a_transcript_is_left_out(context: MakeContext) -> None:
    sent, ctx = send(context, {"content": "hi", "audio": WITHOUT_TEXT}, "openai")
    assert sent == {"role": "assistant", "content": "hi"}
    assert [change.reason for change in ctx.receipt.losses] == ["it has no transcript"]


def test_stored_audio_without_a_transcript_is_refused_where_there_is_no_audio(context: MakeContext) -> None:
    with pytest.raises(Fault) as caught:
        send(context, {"content": "hi", "audio": {"id": "audio_1"}}, "databricks")
    assert caught.value.param == "messages[1].audio"


@pytest.mark.parametrize("audio", [SPOKEN, WITHOUT_ID])
def test_other_protocols_get_what_was_said(context: MakeContext, audio: JsonObject) -> None:
    request: JsonObject = {"model": "m", "messages": [ASK, {"role": "assistant", "content": None, "audio": audio}, ASK]}
    items = to_responses_request(request, context(request=request))["input"]
    assert items[1]["content"][0]["text"] == "hi there"
    turns = to_messages_request({**request, "max_tokens": 9}, context(request=request))["messages"]
    assert turns[1] == {"role": "assistant", "content": "hi there"}


# New answers

PIECES: list[JsonObject] = [
    {"role": "assistant", "content": None, "refusal": None, "audio": {"id": "audio_1", "transcript": ""}},
    {"audio": {"transcript": "hi "}},
    {"audio": {"data": "aGk="}},
    {"audio": {"transcript": "there", "data": "aGk="}},
    {"audio": {"expires_at": 1}},
    {},
]
ENVELOPE: JsonObject = {"id": "c", "created": 1, "model": "m"}


def answer(message: JsonObject, protocol: str, ctx: Context) -> str:
    whole = {"role": "assistant", "content": None, "refusal": None, **message}
    choice = {"index": 0, "message": whole, "logprobs": None, "finish_reason": "stop"}
    reply = {**ENVELOPE, "object": "chat.completion", "choices": [choice]}
    made = find_bridge(protocol).reply(reply, ctx.request, ctx)
    return "".join(
        part["text"] for part in (made["content"] if protocol == "messages" else made["output"][0]["content"])
    )


def stream(deltas: list[JsonObject], protocol: str, ctx: Context) -> str:
    translator = find_bridge(protocol).stream(ctx.request, ctx)
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices[-1]["finish_reason"] = "stop"
    chunks = [Chunk({**ENVELOPE, "object": "chat.completion.chunk", "choices": [choice]}) for choice in choices]
    outputs = [output for chunk in [*chunks, End()] for output in translator.feed(chunk)]
    events = [output.body for output in outputs if isinstance(output, Chunk)]
    texts = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    texts += [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]
    return "".join(texts)


def find_bridge(protocol: str) -> Bridge:
    return next(bridge for bridge in BRIDGES[protocol] if bridge.called == "chat")


@pytest.fixture(params=["responses", "messages"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_clients_of_other_protocols_get_what_is_said(context: MakeContext, protocol: str) -> None:
    ctx = context(request={"model": "m"})
    assert answer({"audio": SPOKEN}, protocol, ctx) == "hi there"
    assert [change.before for change in ctx.receipt.losses] == [("choices", 0, "message", "audio")]


def test_clients_of_other_protocols_get_what_is_said_in_a_stream(context: MakeContext, protocol: str) -> None:
    ctx = context(request={"model": "m", "stream": True})
    assert stream(PIECES, protocol, ctx) == "hi there"
    assert {change.before for change in ctx.receipt.losses} == {("choices", 0, "delta", "audio")}


def test_what_is_said_is_not_said_twice(context: MakeContext, protocol: str) -> None:
    ctx = context(request={"model": "m", "stream": True})
    assert answer({"content": "hi there", "audio": SPOKEN}, protocol, ctx) == "hi there"
    twice = [{"content": "hi"}, *PIECES, {"content": " there", "audio": {"transcript": "there"}}]
    assert stream(twice, protocol, ctx) == "hi there"
    assert ctx.receipt.losses
