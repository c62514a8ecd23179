"""Replies and streams to begin with: samples of the dialects, recordings of real servers, streams of the tests, and
replies that are generated from the provider's schema."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

import orjson

from dragoman.adapters.call import JsonObject
from dragoman.adapters.samples import load_sample
from dragoman.adapters.validation import load_validator
from dragoman.contract.recordings import read_take

from .pairs import Pair
from .schema_values import SchemaValues

__all__ = ["Source", "choose_reply", "choose_stream", "split_events"]

_ROOT = Path(__file__).parents[2]
_ENDINGS = {"/chat/completions": "chat", "/completions": "completions", "/embeddings": "embeddings"}
_CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
_CITATION = {"type": "url_citation", "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 1}}
_THOUGHT = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "b"}]}
_SAID: dict[str, tuple[JsonObject, ...]] = {
    "chat": (
        {"content": "thinks", "reasoning_content": "because"},
        {"content": "<think>a</think>b"},
        {"content": None, "refusal": "not that"},
        {"content": None, "tool_calls": [_CALL]},
        {"content": [{"type": "text", "text": "a"}, _THOUGHT]},
        {"content": "cited", "annotations": [_CITATION]},
    ),
}
"""By protocol, what an assistant may say."""


class Source(NamedTuple):
    """A reply as its provider sends it. A whole reply is one part, a stream has one for each event."""

    status: int
    headers: dict[str, str]
    parts: tuple[bytes, ...]


def choose_reply(random: Random, pair: Pair) -> Source:
    """A whole reply of the pair's provider, an error now and then."""
    kind, sample = random.random(), load_sample(pair.provider, pair.called)
    recordings = _find_recordings(pair.called, False)
    if kind < 0.1:
        return _encode_whole(sample["error"]["body"], sample["error"]["status"])
    if kind < 0.4 and recordings:
        return random.choice(recordings)
    if kind < 0.6:
        validator = load_validator(f"{pair.provider}/{pair.called}.reply", pair.provider_profile)
        return _encode_whole(SchemaValues(random, validator).draw())
    reply = sample["reply"]
    if pair.called in _SAID and random.random() < 0.5:
        (choice,) = reply["choices"][:1]
        message = {**choice["message"], **random.choice(_SAID[pair.called])}
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        reply = {**reply, "choices": [{**choice, "message": message, "finish_reason": finish}]}
    return _encode_whole(reply)


def choose_stream(random: Random, pair: Pair) -> Source:
    """A stream of the pair's provider."""
    kind = random.random()
    recordings = [*_find_recordings(pair.called, True), *_find_fixtures(pair.called)]
    if kind < 0.5 and recordings:
        return random.choice(recordings)
    events = load_sample(pair.provider, pair.called)["events"]
    if kind < 0.6:
        validator = load_validator(f"{pair.provider}/{pair.called}.event", pair.provider_profile)
        events = [*events[:1], *(SchemaValues(random, validator).draw() for _ in range(3)), *events[1:]]
    parts = [b"data: " + orjson.dumps(event) + b"\n\n" for event in events]
    return Source(200, {"content-type": "text/event-stream"}, (*parts, b"data: [DONE]\n\n"))


def split_events(data: bytes) -> tuple[bytes, ...]:
    """The events of a stream, each with the blank line that ends it."""
    return tuple(part + b"\n\n" for part in data.split(b"\n\n") if part)


def _encode_whole(body: JsonObject, status: int = 200) -> Source:
    return Source(status, {"content-type": "application/json"}, (json.dumps(body).encode(),))


@cache
def _find_recordings(protocol: str, streamed: bool) -> Sequence[Source]:
    found = []
    for file in sorted((_ROOT / "contract" / "recordings").glob("*/*.json")):
        path = json.loads(file.read_text("utf-8"))["request"]["path"]
        take = read_take(file)
        is_stream = not take.body.lstrip().startswith((b"{", b"["))
        if _ENDINGS.get(path, "responses") == protocol and is_stream == streamed and len(take.body) < 60_000:
            headers = {name: value for name, value in take.headers if name == "content-type"}
            parts = split_events(take.body) if streamed else (take.body,)
            found.append(Source(take.status, headers, parts))
    return found


@cache
def _find_fixtures(protocol: str) -> Sequence[Source]:
    files = sorted((_ROOT / "tests/adapters" / protocol / "fixtures/streams").glob("*.sse"))
    return [Source(200, {"content-type": "text/event-stream"}, split_events(file.read_bytes())) for file in files]
