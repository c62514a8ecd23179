"""The behaviours that only fakes of Messages have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from dragoman.contract.dialects import list_dialects_with
from dragoman.contract.json_types import JsonObject

from . import answers, framing
from .answers import Answer, ModelRequest
from .behaviour import Behaviour, answer_with_finish_reason
from .message_edits import (
    add_pings,
    add_unknown_event,
    drop_message_delta,
    repeat_usage,
    set_message_usage,
)

__all__ = ["MESSAGE_BEHAVIOURS"]


def _answer_with_blocks(*blocks: JsonObject, reasoning: bool = False) -> Callable[[ModelRequest], Answer]:
    def answer(request: ModelRequest) -> Answer:
        make = answers.answer_with_reasoning if reasoning else answers.answer_with_text
        return replace(make(request), blocks=blocks)

    return answer


_CITED: JsonObject = {
    "type": "char_location",
    "cited_text": "The sky is blue.",
    "document_index": 0,
    "document_title": None,
    "start_char_index": 0,
    "end_char_index": 16,
    "file_id": None,
}
_FOUND: JsonObject = {
    "type": "web_search_result",
    "title": "A page",
    "url": "https://example.com/",
    "encrypted_content": "ZmFrZQ==",
    "page_age": None,
}
_answer_with_redacted_thinking = _answer_with_blocks({"type": "redacted_thinking", "data": "ZmFrZQ=="}, reasoning=True)
_answer_with_citation = _answer_with_blocks({"type": "text", "text": "The sky is blue.", "citations": [_CITED]})
_answer_with_unknown_block = _answer_with_blocks({"type": "hologram", "data": "ZmFrZQ=="})
_answer_with_search = _answer_with_blocks(
    {"type": "server_tool_use", "id": "srvtoolu_fake1", "name": "web_search", "input": {"query": "dragoman"}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_fake1", "content": [_FOUND]},
)


MESSAGE_BEHAVIOURS: Mapping[str, Behaviour] = {
    name: replace(behaviour, dialects=list_dialects_with(name))
    for name, behaviour in {
        "redacted-thinking": Behaviour("thinking, redacted thinking, then a text", _answer_with_redacted_thinking),
        "citations": Behaviour("a text with a citation of a document", _answer_with_citation),
        "server-tool": Behaviour("a search that the service runs itself, then a text", _answer_with_search),
        "pause-turn": Behaviour("a text, stop reason pause_turn", answer_with_finish_reason("pause_turn")),
        "context-full": Behaviour(
            "a text, stop reason model_context_window_exceeded",
            answer_with_finish_reason("model_context_window_exceeded"),
        ),
        "cached-usage": Behaviour(
            "a usage with cache counts",
            message_edit=set_message_usage(
                input_tokens=7, cache_read_input_tokens=1000, cache_creation_input_tokens=200, output_tokens=5
            ),
        ),
        "usage-at-end": Behaviour("all counts of a stream in its last event", message_edit=repeat_usage),
        "pings": Behaviour("a ping before each event", message_edit=add_pings),
        "unknown-event": Behaviour("an event of an unknown type in the middle", message_edit=add_unknown_event),
        "unknown-block": Behaviour("a block of an unknown type before the text", _answer_with_unknown_block),
        "no-event-names": Behaviour("events without a line `event:`", framing=framing.drop_event_names),
        "no-message-delta": Behaviour("a stream without message_delta", message_edit=drop_message_delta),
    }.items()
}
