"""Annotations of parsed files: clients of OpenRouter send them back, so that a PDF is not parsed and paid for again."""

from __future__ import annotations

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Reply
from dragoman.adapters.sse import encode
from dragoman.adapters.streams import Chunk
from dragoman.adapters.translate.bridge import BRIDGES
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject
from tests.adapters.conftest import MakeContext

PARSED = [{"type": "text", "text": "x"}]
FILE: JsonObject = {"type": "file", "file": {"hash": "ff8e", "name": "a.pdf", "content": PARSED}}
PLACE: JsonObject = {"url": "https://a.example", "title": "A", "start_index": 0, "end_index": 1}
CITED: JsonObject = {"type": "url_citation", "url_citation": PLACE}
MESSAGE: JsonObject = {"role": "assistant", "content": "hi", "refusal": None, "annotations": [FILE, CITED]}


def reply(**more: object) -> JsonObject:
    choice = {"index": 0, "message": {**MESSAGE, **more}, "logprobs": None, "finish_reason": "stop"}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def test_a_chat_client_gets_them_in_a_whole_reply(context: MakeContext) -> None:
    ctx = context()
    hub = dialects["openai"].called["chat"].read_reply(Reply(200, reply()), ctx)
    assert hub["choices"][0]["message"]["annotations"] == [FILE, CITED]
    assert load_validator("hub/chat.reply").accepts(hub) and not ctx.receipt.changes


ODD: list[JsonObject] = [{"type": "file"}, {"type": "file", "file": "a.pdf"}, {"type": "x", "file": {}}]


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_odd_ones_are_left_out(odd: JsonObject, context: MakeContext) -> None:
    hub = dialects["openai"].called["chat"].read_reply(Reply(200, reply(annotations=[odd, FILE])), context())
    assert hub["choices"][0]["message"]["annotations"] == [FILE]


def test_a_chat_client_gets_them_in_a_stream(context: MakeContext) -> None:
    delta = {"role": "assistant", "content": "", "annotations": [FILE]}
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    [chunk] = dialects["openai"].called["chat"].read_stream(context()).receive(encode(orjson.dumps(body)))
    assert isinstance(chunk, Chunk) and chunk.body["choices"][0]["delta"]["annotations"] == [FILE]


def test_a_provider_gets_them_back(context: MakeContext) -> None:
    messages = [{"role": "user", "content": "q"}, MESSAGE, {"role": "user", "content": "more"}]
    body = {"model": "m", "messages": messages}
    request = dialects["openai"].served["chat"].read_request(Call("POST", "/v1/chat/completions", body), context())
    call = dialects["openai"].called["chat"].write_request(request, context(request=request))
    assert call.body["messages"][1]["annotations"] == [FILE, CITED]


@pytest.mark.parametrize("client", ["responses", "messages"])
def test_other_clients_do_not_and_the_receipt_says_so(client: str, context: MakeContext) -> None:
    ctx = context()
    hub = dialects["openai"].called["chat"].read_reply(Reply(200, reply()), ctx)
    whole = BRIDGES[client][0].reply(hub, {"model": "m", "input": "q"}, ctx)
    assert load_validator(f"hub/{client}.reply").accepts(whole) and "ff8e" not in str(whole)
    dropped = [change.before for change in ctx.receipt.changes if change.action == "dropped"]
    assert dropped == [("choices", 0, "message", "annotations")]
