"""What providers get of an answer that was spoken in an earlier turn."""

from __future__ import annotations

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Context
from dragoman.adapters.faults import Fault
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
    assert [change.reason for change in ctx.receipt.losses] == ["it has neither an id nor a transcript"]


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
