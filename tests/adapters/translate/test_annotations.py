"""Annotations that are whole are told in the other protocol; of any other the answer goes without, and the receipt
tells."""

from __future__ import annotations

from copy import deepcopy
from itertools import count

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Reply, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.sse import Event, Framer, encode
from dragoman.adapters.streams import Chunk, End, Output
from dragoman.adapters.translate.bridge import BRIDGES
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue

PLACED = {"url": "https://a.example", "title": "A", "start_index": 0, "end_index": 2}
FLAT = {"type": "url_citation", **PLACED}
NESTED = {"type": "url_citation", "url_citation": PLACED}
FILE = {"type": "file_citation", "file_id": "f1", "filename": "a.txt", "index": 0}
ODD: list[JsonValue] = [
    {"type": "file", "file": {"hash": "x", "content": []}},  # which chat clients get
    {"type": "url_citation", "url_citation": {"url": "https://a.example", "title": "A"}},
    {"type": "url_citation", "url_citation": {**PLACED, "start_index": None}},
    {"type": "url_citation", "url_citation": 3},
    {"type": []},
    {},
    None,
    "x",
]
ENVELOPE = {"id": "c", "created": 1, "model": "m"}
REQUEST = {"model": "m", "input": "x", "messages": [], "stream": True}


def context() -> Context:
    numbers, call = count(1), Call("POST", "/", REQUEST)
    return Context("actual", call, Receipt(), Target("m"), REQUEST, lambda: 1.7e9, lambda p: f"{p}_{next(numbers)}")


def chat_stream(annotations: JsonValue) -> list[JsonObject]:
    deltas = [{"role": "assistant", "content": "Hi"}, {"annotations": annotations}, {}]
    return [
        {**ENVELOPE, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
        for delta, end in zip(deltas, [None, None, "stop"], strict=True)
    ]


def chat_whole(annotations: JsonValue) -> JsonObject:
    message = {"role": "assistant", "content": "Hi", "annotations": annotations}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return {**ENVELOPE, "object": "chat.completion", "choices": choices}


def told_in_responses(annotations: JsonValue, ctx: Context) -> list[JsonValue]:
    """The annotations of the last event, which are those of the whole reply too."""
    reader, translator = (
        dialects["openai"].called["chat"].read_stream(ctx),
        BRIDGES["responses"][0].stream(REQUEST, ctx),
    )
    writer = dialects["openai"].served["responses"].write_stream(ctx)
    read = [one for body in chat_stream(annotations) for one in reader.receive(encode(orjson.dumps(body)))]
    raw = b"".join(writer.write(made) for one in [*read, *reader.close()] for made in translator.feed(one))
    events = [orjson.loads(item.data) for item in Framer().feed(raw)[:-1] if isinstance(item, Event)]
    assert all(map(load_validator("hub/responses.event").accepts, events))
    assert events[-1]["type"] == "response.completed"
    hub = dialects["openai"].called["chat"].read_reply(Reply(200, chat_whole(annotations)), ctx)
    whole = BRIDGES["responses"][0].reply(hub, REQUEST, ctx)
    assert load_validator("hub/responses.reply").accepts(whole)
    found: list[JsonValue] = events[-1]["response"]["output"][0]["content"][0]["annotations"]
    assert whole["output"][0]["content"][0]["annotations"] == found
    return found


def test_a_citation_is_flat_in_responses() -> None:
    ctx = context()
    assert told_in_responses([deepcopy(NESTED)], ctx) == [FLAT]
    assert not [change for change in ctx.receipt.changes if change.action == "dropped"]


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_an_odd_one_beside_it_is_left_out(odd: JsonValue) -> None:
    ctx = context()
    assert told_in_responses([deepcopy(odd), deepcopy(NESTED)], ctx) == [FLAT]
    dropped = [change.before for change in ctx.receipt.changes if change.action == "dropped"]
    assert dropped == [("choices", 0, "delta", "annotations"), ("choices", 0, "message", "annotations")]


@pytest.mark.parametrize("odd", [3, "x", {}, {"a": 1}])
def test_what_is_no_list_is_no_annotation(odd: JsonValue) -> None:
    assert told_in_responses(odd, context()) == []


@pytest.mark.parametrize("odd", ODD[1:], ids=str)
def test_a_chat_client_gets_the_answer_without_it(odd: JsonValue) -> None:
    ctx = context()
    hub = dialects["openai"].called["chat"].read_reply(Reply(200, chat_whole([deepcopy(odd), NESTED])), ctx)
    assert load_validator("hub/chat.reply").accepts(hub)
    assert hub["choices"][0]["message"]["annotations"] == [NESTED]
    assert [change.weight for change in ctx.receipt.changes if change.action == "dropped"] == ["loss"]


def test_chat_has_citations_of_addresses_only() -> None:
    ctx = context()
    request = {"model": "m", "messages": []}
    [message] = BRIDGES["responses"][0].reply(
        dialects["openai"].called["chat"].read_reply(Reply(200, chat_whole([])), ctx), REQUEST, ctx
    )["output"]
    message["content"][0]["annotations"] = [FLAT, FILE]
    response = {**ENVELOPE, "status": "completed", "created_at": 1, "output": [message]}
    reply = BRIDGES["chat"][0].reply(response, request, ctx)
    assert load_validator("hub/chat.reply").accepts(reply)
    assert reply["choices"][0]["message"]["annotations"] == [NESTED]
    translator = BRIDGES["chat"][0].stream(request, ctx)
    done = {"type": "response.output_item.done", "output_index": 0, "item": message}
    last = {"type": "response.completed", "response": response}
    read: list[Output] = [Chunk(done), Chunk(last), End()]
    chunks = [made.body for one in read for made in translator.feed(one) if isinstance(made, Chunk)]
    found = [chunk["choices"][0]["delta"].get("annotations") for chunk in chunks]
    assert [one for one in found if one] == [[{**NESTED, "index": 0}]]
    assert [change.before for change in ctx.receipt.changes if change.before[:1] == ("output",) != change.before] == [
        ("output", 0, "content", 0, "annotations"),
        ("output", 0),
    ]
