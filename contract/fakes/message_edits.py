"""Edits of a Messages reply's JSON documents (events, or the one message) that make them faulty or unusual."""

from __future__ import annotations

from dragoman.contract.json_types import JsonObject

from .answers import ModelRequest
from .edits import Edit

__all__ = [
    "add_huge_block",
    "add_pings",
    "add_unknown_event",
    "cut_message",
    "drop_content",
    "drop_message_delta",
    "drop_message_id",
    "number_blocks_from_one",
    "repeat_usage",
    "set_message_usage",
    "zero_block_indexes",
]


def cut_message(documents: list[JsonObject], request: ModelRequest) -> list[JsonObject]:
    """Keep the first half of a stream; drop the stop reason of a whole message."""
    if request.stream:
        return documents[: len(documents) // 2]
    return [{**document, "stop_reason": None} for document in documents]


def number_blocks_from_one(documents: list[JsonObject], _request: ModelRequest) -> list[JsonObject]:
    for document in documents:
        if "index" in document:
            document["index"] = 2 * document["index"] + 1
    return documents


def zero_block_indexes(documents: list[JsonObject], _request: ModelRequest) -> list[JsonObject]:
    for document in documents:
        if "index" in document:
            document["index"] = 0
    return documents


def drop_content(documents: list[JsonObject], request: ModelRequest) -> list[JsonObject]:
    """Drop everything but the head of a stream, and the content of a whole message."""
    if request.stream:
        return documents[:1]
    return [{key: value for key, value in document.items() if key != "content"} for document in documents]


def set_message_usage(**counts: int) -> Edit:
    """Make an edit that sets counts in the usage of the message, or of the events that have one."""

    def edit(documents: list[JsonObject], _request: ModelRequest) -> list[JsonObject]:
        for document in documents:
            for owner in (document, document.get("message", {})):
                if isinstance(owner.get("usage"), dict):
                    owner["usage"].update(counts)
        return documents

    return edit


def repeat_usage(documents: list[JsonObject], request: ModelRequest) -> list[JsonObject]:
    """Leave the usage of the start out, and send all counts in the last event, as some compatible servers do."""
    for document in documents if request.stream else ():
        document.get("message", {}).update(usage={"input_tokens": 0, "output_tokens": 0})
    return documents


def add_huge_block(documents: list[JsonObject], request: ModelRequest) -> list[JsonObject]:
    """Add a very long text: in an event of its own in the first block, or as the text of the message."""
    text = "x" * int(request.number_arg("size") * 1024 * 1024)
    if not request.stream:
        return [{**document, "content": [{"type": "text", "text": text}]} for document in documents]
    place = next(number for number, one in enumerate(documents) if one["type"] == "content_block_stop")
    delta = {"type": "text_delta", "text": text}
    long: JsonObject = {"type": "content_block_delta", "index": documents[place]["index"], "delta": delta}
    return [*documents[:place], long, *documents[place:]]


def drop_message_id(documents: list[JsonObject], _request: ModelRequest) -> list[JsonObject]:
    for document in documents:
        document.get("message", document).pop("id", None)
    return documents


def drop_message_delta(documents: list[JsonObject], request: ModelRequest) -> list[JsonObject]:
    """Drop the event with the stop reason; a whole message has none."""
    if not request.stream:
        return cut_message(documents, request)
    return [document for document in documents if document["type"] != "message_delta"]


def add_pings(documents: list[JsonObject], request: ModelRequest) -> list[JsonObject]:
    ping: JsonObject = {"type": "ping"}
    return [one for document in documents for one in (ping, document)] if request.stream else documents


def add_unknown_event(documents: list[JsonObject], request: ModelRequest) -> list[JsonObject]:
    middle = len(documents) // 2
    unknown: JsonObject = {"type": "weather_report", "sky": "blue"}
    return [*documents[:middle], unknown, *documents[middle:]] if request.stream else documents
