"""Chat streams whose citations come one by one after their text, as Responses providers send them."""

from __future__ import annotations

from dragoman.adapters.streams import Chunk, End
from dragoman.adapters.translate.chat_to_messages import ChatToMessages
from dragoman.contract.json_types import JsonObject

from .message_oracles import accumulate_message, list_bodies, make_context, translate

ENVELOPE = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def cite(url: str, end: int) -> JsonObject:
    return {"type": "url_citation", "url_citation": {"url": url, "title": "", "start_index": 0, "end_index": end}}


def make_chunk(delta: JsonObject, finish: str | None = None) -> Chunk:
    return Chunk({**ENVELOPE, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def test_all_sources_of_a_text_belong_to_its_block() -> None:
    """The first that names the whole text ends the block, but not for the sources after it."""
    ctx, text = make_context(), "Found it."
    sources = [cite("http://a", len(text)), cite("http://b", len(text)), cite("http://c", 5)]
    said = [make_chunk({"annotations": [source]}) for source in sources]
    outputs = [make_chunk({"content": text}), *said, make_chunk({"content": "More."}), make_chunk({}, "stop"), End()]
    content = accumulate_message(list_bodies(translate(ChatToMessages({}, ctx), outputs)))["content"]
    assert [block["text"] for block in content] == [text, "More."]
    assert [one["url"] for one in content[0]["citations"]] == ["http://a", "http://b", "http://c"]
    assert [change.weight for change in ctx.receipt.losses] == ["loss"]  # the last named a part of the text
