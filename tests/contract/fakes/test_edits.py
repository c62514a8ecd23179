"""Edits of the JSON of replies."""

from __future__ import annotations

import json

import pytest

from dragoman.contract.fakes.answers import SENTENCE
from dragoman.contract.fakes.forms import CREATED
from dragoman.contract.json_types import JsonObject
from tests.dialects import called

from .client import ChatClient
from .tools import BOOK_TOOL, BOOKING


async def test_edit_changes_every_delta(client: ChatClient) -> None:
    _, stream = await client.send_both("role-every-delta")
    assert all(delta["role"] == "assistant" for delta in stream.deltas)
    whole, stream = await client.send_both("empty-tool-calls")
    assert whole.message["tool_calls"] == []
    assert all(delta["tool_calls"] == [] for delta in stream.deltas)
    whole, stream = await client.send_both("list-content")
    assert whole.message["content"] == [{"type": "text", "text": SENTENCE}]
    assert "".join(delta["content"][0]["text"] for delta in stream.deltas if "content" in delta) == SENTENCE


async def test_edit_changes_tool_calls(client: ChatClient) -> None:
    async def calls(name: str) -> list[JsonObject]:
        _, stream = await client.send_both(name, tools=[BOOK_TOOL])
        return stream.calls

    assert not any("index" in call for call in await calls("no-index"))
    assert {call["index"] for call in await calls("index-from-one")} == {1, 3}
    assert {(call["id"] != "", call["function"]["name"]) for call in await calls("repeated-ids")} == {(True, "book")}
    assert (await calls("placeholder-arguments"))[0]["function"]["arguments"] == "{}"
    assert [call["function"]["arguments"] for call in await calls("arguments-object")] == [BOOKING]
    whole, stream = await client.send_both("arguments-object", tools=[BOOK_TOOL])
    assert whole.message["tool_calls"][0]["function"]["arguments"] == BOOKING
    whole, stream = await client.send_both("finish-stop-with-tools", tools=[BOOK_TOOL])
    assert whole.body["choices"][0]["finish_reason"] == "stop" and stream.finishes == ["stop"]
    assert whole.message["tool_calls"]


@pytest.mark.parametrize("dialect", called("chat"))
async def test_empty_choices_adds_chunks_without_delta(dialect: str, client: ChatClient) -> None:
    whole, stream = await client.send_both("empty-choices", dialect)
    first, judged = stream.chunks[0], stream.chunks[-2]
    assert (first["choices"], first["id"], first["created"]) == ([], "", 0)
    assert "delta" not in judged["choices"][0] and judged["choices"][0]["content_filter_results"]
    assert whole.body["prompt_filter_results"] and stream.finishes


async def test_edit_changes_usage_and_top_level_fields(client: ChatClient) -> None:
    whole, stream = await client.send_both("usage-every-chunk")
    assert whole.body["usage"]["completion_tokens"] is None
    assert [chunk["usage"]["total_tokens"] is None for chunk in stream.chunks[-2:]] == [True, False]
    _, stream = await client.send_both("usage-in-last", stream_options={"include_usage": True})
    assert stream.chunks[-1]["choices"][0]["finish_reason"] == "stop" and stream.chunks[-1]["usage"]
    assert not any("usage" in chunk for chunk in stream.chunks[:-1])
    _, stream = await client.send_both("created-varies")
    assert [chunk["created"] for chunk in stream.chunks] == [CREATED + number for number in range(len(stream.chunks))]
    for name, key, value in [
        ("created-float", "created", 1750000000.5),
        ("wrong-object", "object", "list"),
        ("missing-id", "id", None),
        ("no-choices", "choices", []),
    ]:
        whole, stream = await client.send_both(name)
        assert {json.dumps(document.get(key)) for document in [whole.body, *stream.chunks]} == {json.dumps(value)}


async def test_plural_object_has_extra_fields(client: ChatClient) -> None:
    whole, stream = await client.send_both("plural-object", "databricks")
    assert whole.body["object"] == "chat.completions" and stream.chunks[-1]["object"] == "chat.completion.chunk"
    for choice in (whole.body["choices"][0], stream.chunks[-1]["choices"][0]):
        assert json.loads(choice["extra_fields"]) == {"safetyRating": "NEGLIGIBLE"}
