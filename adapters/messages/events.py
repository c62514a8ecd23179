"""The events of Messages streams: their names, the kinds of deltas, and functions that make them.

Source: anthropic 2.12.0, types.RawMessageStreamEvent; Anthropic's guide to streaming.
"""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import JsonObject

__all__ = [
    "BLOCK_START",
    "BLOCK_STOP",
    "CITATIONS",
    "DELTA",
    "INPUT",
    "MESSAGE_DELTA",
    "MESSAGE_START",
    "MESSAGE_STOP",
    "SIGNATURE",
    "TEXT",
    "TEXTS",
    "THINKING",
    "TOOL_USES",
    "block_delta",
    "block_start",
    "block_stop",
    "message_delta",
    "message_start",
    "message_stop",
    "new_message",
]

MESSAGE_START = "message_start"
BLOCK_START = "content_block_start"
DELTA = "content_block_delta"
BLOCK_STOP = "content_block_stop"
MESSAGE_DELTA = "message_delta"
MESSAGE_STOP = "message_stop"

TEXT, THINKING, INPUT = "text_delta", "thinking_delta", "input_json_delta"
SIGNATURE, CITATIONS = "signature_delta", "citations_delta"

TEXTS = {TEXT: "text", THINKING: "thinking", INPUT: "partial_json", SIGNATURE: "signature"}
"""The type of a delta that is a text -> the key of the text. A thinking block has one signature, not pieces of one."""

TOOL_USES = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
"""The types of blocks with an `input`, which comes in pieces of JSON."""


def new_message(message_id: str, model: str) -> JsonObject:
    """Make a message that has just begun."""
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }


def message_start(message: JsonObject) -> JsonObject:
    """Make the first event of a stream. `message` has no content and no stop reason yet."""
    return {"type": MESSAGE_START, "message": message}


def block_start(index: int, block: JsonObject) -> JsonObject:
    """Make the event that begins a block."""
    return {"type": BLOCK_START, "index": index, "content_block": block}


def block_delta(index: int, kind: str, text: Any) -> JsonObject:
    """Make a piece of a block; `kind` is one of `TEXTS`, or `citations_delta` with a citation as the text."""
    return {"type": DELTA, "index": index, "delta": {"type": kind, TEXTS.get(kind, "citation"): text}}


def block_stop(index: int) -> JsonObject:
    """Make the event that ends a block."""
    return {"type": BLOCK_STOP, "index": index}


def message_delta(stop_reason: str | None, stop_sequence: str | None, usage: JsonObject, **more: Any) -> JsonObject:
    """Make the event with the stop reason and the usage. `more` are further members of its `delta`."""
    delta = {"stop_reason": stop_reason, "stop_sequence": stop_sequence, **more}
    return {"type": MESSAGE_DELTA, "delta": delta, "usage": usage}


def message_stop() -> JsonObject:
    """Make the last event of a stream."""
    return {"type": MESSAGE_STOP}
