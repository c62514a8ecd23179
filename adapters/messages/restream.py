"""Turns a whole message into the events of a stream, if the client asked for a stream and the provider sent none."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from dragoman.adapters.call import JsonObject

from .events import (
    CITATIONS,
    INPUT,
    SIGNATURE,
    TEXT,
    THINKING,
    TOOL_USES,
    block_delta,
    block_start,
    block_stop,
    message_delta,
    message_start,
    message_stop,
)

__all__ = ["restream_message"]

_LATER = ("stop_details", "container")
"""Keys of a message that a stream has in its last events."""
_BESIDE = ("context_management", "input_transformations")


def restream_message(message: JsonObject) -> list[JsonObject]:
    """Split a hub message into hub events; each text is one delta.

    The usage comes with the first event, but for the tokens of the answer, and whole with the last but one.
    """
    begun = {**message, "content": [], "stop_reason": None, "stop_sequence": None}
    for key in (*_LATER, *_BESIDE):
        begun.pop(key, None)
    begun["usage"] = {**message["usage"], "output_tokens": 0}
    blocks = [event for index, block in enumerate(message["content"]) for event in _split_block(block, index)]
    later = {key: message[key] for key in _LATER if key in message}
    ending = message_delta(message["stop_reason"], message["stop_sequence"], message["usage"], **later)
    ending.update({key: message[key] for key in _BESIDE if message.get(key) is not None})
    return [message_start(begun), *blocks, ending, message_stop()]


def _split_block(block: JsonObject, index: int) -> Iterator[JsonObject]:
    kind = block["type"]
    if kind in TOOL_USES:
        yield block_start(index, {**block, "input": {}})
        if block["input"]:
            yield block_delta(index, INPUT, orjson.dumps(block["input"]).decode())
    elif kind == "text":
        yield block_start(index, {**block, "text": ""} | ({"citations": []} if block.get("citations") else {}))
        if block["text"]:
            yield block_delta(index, TEXT, block["text"])
        for citation in block.get("citations") or ():
            yield block_delta(index, CITATIONS, citation)
    elif kind == "thinking":
        yield block_start(index, {**block, "thinking": "", "signature": ""})
        if block["thinking"]:
            yield block_delta(index, THINKING, block["thinking"])
        yield block_delta(index, SIGNATURE, block["signature"])
    else:
        yield block_start(index, block)
    yield block_stop(index)
