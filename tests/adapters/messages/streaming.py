"""Reads and writes Messages streams in tests, and makes their events."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import orjson
from hypothesis import strategies as st

from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.faults import Fault
from dragoman.adapters.messages.stream import MessagesStreamReader
from dragoman.adapters.messages.writer import MessagesStreamWriter
from dragoman.adapters.sse import Event, Framer
from dragoman.adapters.streams import Output
from dragoman.contract.json_types import JsonObject, JsonValue

__all__ = [
    "KEYS",
    "START",
    "VALUES",
    "Replies",
    "block",
    "encode",
    "ending",
    "error_body",
    "events_of",
    "make_context",
    "piece",
    "read",
    "relay",
    "stop",
    "text_of",
    "write",
]

Replies: TypeAlias = Literal["off", "report", "repair", "strict"]


KEYS = ("type", "index", "delta", "content_block", "message", "usage", "id", "name", "input", "text", "stop_reason")
VALUES = st.recursive(
    st.sampled_from([None, True, -1, 2.5, "x", "text", "tool_use", "text_delta", "end_turn"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=8,
)
"""Any values, of keys and words that events have."""


def encode(*events: JsonObject, named: bool = True) -> bytes:
    """The events as a provider sends them."""
    return b"".join(
        (f"event: {event['type']}\n" if named else "").encode() + b"data: " + json.dumps(event).encode() + b"\n\n"
        for event in events
    )


def message(**keys: JsonValue) -> JsonObject:
    given = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": []}
    rest = {"stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 1}}
    return {**given, **rest, **keys}


START: JsonObject = {"type": "message_start", "message": message()}


def block(index: int, kind: str = "text", **keys: JsonValue) -> JsonObject:
    empty: JsonObject = {
        "text": {"text": ""},
        "thinking": {"thinking": "", "signature": ""},
        "tool_use": {"id": f"toolu_{index}", "name": "f", "input": {}},
    }.get(kind, {})
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **empty, **keys}}


_KEYS = {"text": "text_delta", "thinking": "thinking_delta", "partial_json": "input_json_delta"}


def piece(index: int, **delta: JsonValue) -> JsonObject:
    """A delta with one text, as `text="x"`, or with the keys given."""
    kind = delta.pop("type", None) or _KEYS.get(next(iter(delta)), f"{next(iter(delta))}_delta")
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **delta}}


def stop(index: int) -> JsonObject:
    return {"type": "content_block_stop", "index": index}


def ending(stop_reason: str | None = "end_turn", tokens: int = 5, **usage: JsonValue) -> list[JsonObject]:
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    return [
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": tokens, **usage}},
        {"type": "message_stop"},
    ]


def make_context(replies: Replies = "repair", request: JsonObject | None = None) -> Context:
    counter = iter(range(1, 100_000))
    request = {"model": "m", "messages": [], "stream": True} if request is None else request
    target, call = Target("upstream-model", policy=Policy(replies=replies)), Call("POST", "/v1/messages", request)
    return Context(
        "actual", call, Receipt(), target, request, lambda: 1.7e9, lambda prefix: f"{prefix}_new{next(counter)}"
    )


def read(reads: Iterable[bytes], ctx: Context) -> list[Output]:
    reader = MessagesStreamReader(ReplyRules("anthropic"), ctx)
    return [output for data in reads for output in reader.receive(data)] + reader.close()


def error_body(fault: Fault) -> JsonObject:
    return {"type": "error", "error": {"type": "api_error", "message": fault.message}}


def write(outputs: Iterable[Output]) -> bytes:
    writer = MessagesStreamWriter(error_body)
    written = b"".join(map(writer.write, outputs))
    assert writer.dropped == 0
    return written


def relay(data: bytes, replies: Replies = "repair", ctx: Context | None = None) -> bytes:
    return write(read([data], ctx or make_context(replies)))


def events_of(data: bytes) -> list[JsonObject]:
    """The events of written bytes: each has its name, and nothing else is between them."""
    found = []
    for item in Framer().feed(data):
        assert isinstance(item, Event)
        body = orjson.loads(item.data)
        assert item.event.decode() == body["type"]
        found.append(body)
    return found


def text_of(events: Iterable[JsonObject]) -> str:
    deltas: list[Any] = [event.get("delta", {}) for event in events]
    return "".join(delta.get("text", "") for delta in deltas)
