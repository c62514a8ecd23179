"""What the `anthropic` package makes of the events of a Messages stream, and what the stream must hold besides."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import orjson
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import RawMessageStreamEvent
from pydantic import TypeAdapter

from dragoman.adapters.call import Call, Context, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Chunk, DeltaRun, End, Output, StreamTranslator, expand
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue

__all__ = [
    "ENVELOPE",
    "accumulate_message",
    "check_events",
    "coalesce",
    "list_bodies",
    "make_chunk",
    "make_context",
    "make_event",
    "make_piece",
    "summarize_message",
    "translate",
]

ENVELOPE = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
REQUEST: JsonObject = {"model": "m", "messages": [], "stream": True, "stream_options": {"include_usage": True}}
EVENT: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)


def make_context(request: JsonObject = REQUEST) -> Context:
    counter = iter(range(1, 100_000))
    call = Call("POST", "/", request)
    clock, target = (lambda: 1.7e9), Target("upstream-model")
    return Context("actual", call, Receipt(), target, request, clock, lambda prefix: f"{prefix}_{next(counter)}")


def make_chunk(delta: JsonObject, finish: str | None = None, **choice: JsonValue) -> Chunk:
    return Chunk({**ENVELOPE, "choices": [{"index": 0, "delta": delta, "finish_reason": finish, **choice}]})


def make_piece(index: int, arguments: str = "", **head: JsonValue) -> Chunk:
    name = {"name": head.pop("name")} if "name" in head else {}
    kind = {"type": "function"} if head else {}
    call = {"index": index, **kind, **head, "function": {**name, "arguments": arguments}}
    return make_chunk({"tool_calls": [call]})


def make_event(kind: str, **keys: JsonValue) -> Chunk:
    return Chunk({"type": kind, **keys})


def translate(translator: StreamTranslator, outputs: Iterable[Output]) -> list[Output]:
    return [made for output in outputs for made in translator.feed(output)]


def list_bodies(outputs: Iterable[Output]) -> list[JsonObject]:
    """The bodies of the chunks of a whole stream, whose last output is its terminal."""
    *chunks, end = expand(outputs)
    assert isinstance(end, End)
    return [one.body for one in chunks if isinstance(one, Chunk)]


def check_events(outputs: Iterable[Output]) -> list[JsonObject]:
    """The events of a stream, which has exactly one terminal, and blocks that neither overlap nor stay open."""
    *chunks, last = expand(outputs)
    assert isinstance(last, End | Fault)
    events = [one.body for one in chunks if isinstance(one, Chunk)]
    assert len(events) == len(chunks)
    hub = load_validator("hub/messages.event")
    for event in events:
        EVENT.validate_python(event, strict=True)
        assert [one.message for one in hub.violations(event)] == []
    words = [event["type"] for event in events]
    assert words[:1] in ([], ["message_start"]) and words.count("message_start") <= 1
    is_whole = isinstance(last, End)
    assert (words[-2:] == ["message_delta", "message_stop"]) == is_whole
    assert words.count("message_delta") == words.count("message_stop") == is_whole
    _check_nesting([event for event in events if "index" in event], is_whole)
    return events


def _check_nesting(events: list[JsonObject], is_whole: bool) -> None:
    for place, (index, group) in enumerate(groupby(events, key=lambda event: event["index"])):
        words = [event["type"].removeprefix("content_block_") for event in group]
        assert index == place and words[0] == "start"
        is_last = index == events[-1]["index"]
        assert words[-1] == "stop" or (is_last and not is_whole)
        assert set(words[1:-1]) <= {"delta"} and (len(words) < 2 or words[-1] in ("stop", "delta"))


def accumulate_message(events: Iterable[JsonObject]) -> JsonObject:
    """The message that the package's accumulator makes of the events."""
    found: Any = None
    buffers: dict[int, bytes] = {}
    for event in events:
        found = accumulate_event(event=EVENT.validate_python(event), current_snapshot=found, json_bufs=buffers)
    made: JsonObject = found.to_dict(exclude_unset=True)
    return made


def summarize_message(message: JsonObject) -> JsonObject:
    """What a message says, however its text is grouped into blocks."""
    blocks = message["content"]
    texts = [(is_text, [*group]) for is_text, group in groupby(blocks, key=lambda block: block["type"] == "text")]
    said: list[Any] = []
    for is_text, group in texts:
        said += ["".join(block["text"] for block in group)] if is_text else group
    cited = [one for block in blocks for one in block.get("citations") or ()]
    ending = {key: message.get(key) for key in ("stop_reason", "stop_sequence")}
    return {"said": [one for one in said if one], "cited": cited, **ending}


def coalesce(outputs: Iterable[Output]) -> list[Output]:
    """Adjacent deltas of one text as runs; the runs of a block share a body."""
    made: list[Output] = []
    bodies: dict[str, JsonObject] = {}
    for place, group in groupby(outputs, key=_find_text):
        if place is None:
            made += group
            continue
        chunks = [one for one in group if isinstance(one, Chunk)]
        body = bodies.setdefault(str(place), chunks[0].body)
        texts = [orjson.dumps(one.body["delta"][place[1]])[1:-1] for one in chunks]
        made.append(DeltaRun(body, ("delta", place[1]), texts))
    return made


def _find_text(output: Output) -> tuple[int, str] | None:
    """The index of the block and the key of the text of a delta."""
    if not isinstance(output, Chunk) or output.body["type"] != "content_block_delta":
        return None
    key = next((key for key in ("text", "thinking", "partial_json") if key in output.body["delta"]), None)
    return None if key is None else (output.body["index"], key)
