"""Judges what a client got: its form, its end, and what differs from the provider's reply."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from dragoman.adapters.call import JsonObject, Target
from dragoman.adapters.changes import Change
from dragoman.adapters.paths import lookup
from dragoman.adapters.pipeline import Attempt
from dragoman.adapters.reply_check.checks import CHECKED
from dragoman.adapters.sse import Event, Framer
from dragoman.adapters.validation import Violation, load_validator
from dragoman.schemas import load

from .laws import Observer
from .pairs import Pair
from .receipt_holes import PIECES, find_holes, join_events, map_positions, trim_value
from .said_texts import collect_texts, compare_texts, has_clear_indexes, join_choices
from .stream_holes import find_stream_holes

__all__ = ["judge_answer"]

_SETTINGS = frozenset(load("hub/responses.request")["properties"]) | {
    "background",
    "completed_at",
    "incomplete_details",
}
_ENVELOPE = frozenset(
    {
        "created",
        "created_at",
        "finish_reason",
        "native_finish_reason",
        "stop_reason",
        "event",
        "error",
        "system_fingerprint",
        "summary",
        "obfuscation",
        "embedding",
    }
)
_CITED = frozenset({"citations", "annotations", "annotation"})
_OF_THE_END = frozenset({"native_finish_reason", "sequence_number", "obfuscation"})
"""What may appear where values are compared by path: the finish reason's change says why."""
_POSITIONS = frozenset({"output_index", "content_index", "summary_index", "annotation_index"})
"""Items, and parts that the provider left out, may get other positions in a stream."""
_MADE = re.compile(r"= '([a-z]+_[0-9a-f]{32}(?:[0-9a-f]{12})?|\{\})' (was|appeared)")
"""Holes about ids that dragoman made, and about the arguments of a call that has none."""
_OWN_KEYS = {"service_tier", "err_msg", "extra_fields", "reasoning"}
"""Keys whose values are forwarded as the provider has them."""
_NAMES = {
    "visible": {"choices", "output", "content", "text", "refusal", "delta", "message"},
    "reasoning": {
        "choices",
        "output",
        "content",
        "reasoning_content",
        "reasoning",
        "reasoning_details",
        "delta",
        "message",
    },
    "arguments": {"choices", "output", "content", "tool_calls", "arguments", "function_call", "delta", "message"},
}
"""For each kind of text, keys of the paths at which the receipt records its losses."""
_ENDS = ("response.completed", "response.incomplete", "message_stop")
_NAMED = (b"response.", b"message_", b"content_block_")
_LAST = (*_ENDS, "response.failed", "response.cancelled")


def judge_answer(
    pair: Pair,
    target: Target,
    attempt: Attempt,
    data: bytes,
    sent: bytes,
    changes: Sequence[Change],
    observer: Observer,
) -> None:
    """Judge the client's bytes. `sent` is what the provider sent, empty if it cannot be compared."""
    if not data:
        if attempt.outcome.state == "complete":
            observer.add("a complete answer has bytes", str(pair), "")
        return
    if not attempt.wants_stream:
        _judge_whole(pair, target, attempt, data, observer)
    else:
        _judge_stream(pair, target, attempt, data, observer)
    if attempt.outcome.state == "complete" and sent and len(attempt.calls) == 1 and not _is_cut(attempt):
        before, after = _read_objects(sent.removeprefix(b"\xef\xbb\xbf")), _read_objects(data)
        if before is not None and after is not None:
            _compare_texts(pair, target, before, after, changes, observer)
            _compare(pair, before, after, changes, observer)


def _is_cut(attempt: Attempt) -> bool:
    """Whether dragoman ends the answer at a stop string, and reads no further."""
    names = {change.before[0] for change in attempt.receipt.changes if change.action == "emulated" and change.before}
    return not names.isdisjoint(("stop", "stop_sequences"))


def _compare_texts(
    pair: Pair, target: Target, before: JsonObject, after: JsonObject, changes: Sequence[Change], observer: Observer
) -> None:
    """Whether every text has arrived, once and whole, or the receipt says what was lost of it."""
    by_index = has_clear_indexes(before) and has_clear_indexes(after)
    if not by_index and ("events" in before) != ("events" in after):
        return  # choices with the same index are one choice in a stream
    given, got = collect_texts(before, by_index), collect_texts(after, by_index)
    if "responses" in (pair.spoken, pair.called):
        given, got = given[:1], got[:1]
    if (pair.spoken, pair.called) == ("messages", "responses") and any(len(one) > 1 for one in given[0].values()):
        return  # the provider contradicts itself, and each translator on the way decides for itself
    if len(given) != len(got):
        given, got = [join_choices(given)], [join_choices(got)]
    lost = {str(part) for change in changes if change.weight == "loss" for part in change.before}
    lost |= {word for change in changes for word in change.reason.split() if word == "arguments"}
    for one, other in zip(given, got, strict=True):
        for kind, text in compare_texts(one, other, has_tags=bool(target.reasoning_tags)):
            if lost.isdisjoint(_NAMES[kind]):
                observer.add("texts arrive whole, and once", f"{pair.spoken}<{pair.called} {kind}", text)


def _compare(pair: Pair, before: JsonObject, after: JsonObject, changes: Sequence[Change], observer: Observer) -> None:
    """Whether the receipt tells what differs between what the provider sent and what the client got."""
    for hole in (one for one in _find_holes(pair, before, after, changes) if not _MADE.search(one)):
        place = f"{pair.spoken}<{pair.called} {trim_value(hole)}"
        observer.add("every difference is in the receipt", place, hole[:300])


def _find_holes(pair: Pair, before: JsonObject, after: JsonObject, changes: Sequence[Change]) -> Iterable[str]:
    if ("events" in before) != ("events" in after):
        return ()  # what is assembled, or divided, has other paths
    before.pop("joined", None)
    after.pop("joined", None)
    is_same_protocol = pair.spoken == pair.called
    if "events" not in before:
        exempt = _OF_THE_END if is_same_protocol else _find_exempt(pair)
        asked = CHECKED.get(pair.spoken, frozenset())
        unmap = map_positions(before, after, changes) if is_same_protocol else lambda path: path
        return find_holes(before, after, changes, unmap, exempt=exempt, by_path=is_same_protocol, asked=asked)
    if is_same_protocol:
        return find_stream_holes(before, after, changes, _OF_THE_END | _POSITIONS)
    if "responses" in (pair.spoken, pair.called):
        given, got = _take_last_response(before), _take_last_response(after)
        exempt = _find_exempt(pair) | PIECES  # texts are compared as such
        return find_holes(given, got, changes, exempt=exempt) if given and got else ()
    return find_holes(before, after, changes, exempt=_find_exempt(pair))


def _take_last_response(body: JsonObject) -> JsonObject | None:
    """The response in the last event of a Responses stream, with what only earlier events say of it; None if it has no
    output. A stream with choices, or of a message, is returned as it is."""
    events: Sequence[JsonObject] = body["events"]
    if any("choices" in event or event.get("type") == "message_delta" for event in events):
        return body
    said = [response for event in events if isinstance(response := event.get("response"), dict)]
    merged = {key: value for response in said for key, value in response.items() if value}
    return merged if said and said[-1].get("output") and events[-1].get("response") else None


def _find_exempt(pair: Pair) -> frozenset[str]:
    """The keys of a reply that may differ: a response repeats the settings of a request."""
    if "messages" in (pair.spoken, pair.called):
        return _ENVELOPE | _SETTINGS | PIECES | _CITED | {"content", "index"}  # texts are compared as such
    if "responses" not in (pair.spoken, pair.called):
        return _ENVELOPE
    return _ENVELOPE | _SETTINGS


def _read_objects(data: bytes) -> JsonObject | None:
    """A whole reply, or all that the events of a stream say; None for what is neither."""
    try:
        if data.lstrip().startswith(b"{"):
            body = orjson.loads(data)
            return body if isinstance(body, dict) else None
        framer = Framer()
        items = [*framer.feed(data), *framer.close()]
        events = [(item.data, item.event) if isinstance(item, Event) else (item.text, None) for item in items]
        end = next((i for i, (text, _) in enumerate(events) if text == b"[DONE]"), len(events))  # nobody reads on
        said = [one for one in events[:end] if one[0].startswith(b"{") and one[1] != b"ping"]
        bodies = [(orjson.loads(text), name) for text, name in said]
    except orjson.JSONDecodeError:
        return None
    named = [_name_event(body, name) for body, name in bodies if isinstance(body, dict)]
    last = next((i for i, body in enumerate(named, 1) if body.get("type") in _LAST), len(named))
    return join_events(named[:last])


def _name_event(body: JsonObject, name: bytes | None) -> JsonObject:
    """The body of an event; if it has no type, its `event:` line names it."""
    is_named = name is not None and name.startswith(_NAMED) and body.get("type") is None
    return {**body, "type": name.decode()} if name and is_named else body


def _judge_whole(pair: Pair, target: Target, attempt: Attempt, data: bytes, observer: Observer) -> None:
    body = orjson.loads(data)
    if attempt.outcome.state == "failed":
        observer.add("a failed whole reply has no bytes", str(pair), data[:200].decode())
    elif _is_normalized(pair, target):
        _validate(pair, "reply", body, observer)


def _judge_stream(pair: Pair, target: Target, attempt: Attempt, data: bytes, observer: Observer) -> None:
    framer = Framer()
    items = [*framer.feed(data), *framer.close()]
    events = [item for item in items if isinstance(item, Event)]
    ends = [item.data == b"[DONE]" for item in events]
    bodies = [orjson.loads(item.data) for item in events if item.data != b"[DONE]"]
    if attempt.outcome.state == "complete":
        if _is_normalized(pair, target):
            for body in bodies:
                _validate(pair, "event", body, observer)
        if sum(ends) > 1 or (ends and any(ends) and not ends[-1]):
            observer.add("a stream ends once", f"{pair.client}/{pair.spoken}", str(ends))
        return
    if pair.spoken != "responses" and any(ends):
        observer.add("a failed stream has no [DONE]", f"{pair.client}/{pair.spoken}", data[-200:].decode())
    if any(isinstance(body, dict) and body.get("type") in _ENDS for body in bodies):
        observer.add("a failed stream does not complete", f"{pair.client}/{pair.spoken}", data[-300:].decode())


def _is_normalized(pair: Pair, target: Target) -> bool:
    return target.policy.replies in ("repair", "strict") or pair.spoken != pair.called


def _is_providers_own(violation: Violation, body: JsonObject) -> bool:
    """Whether only another answer would fit: counts that the provider did not send, words and blocks of its own, a
    choice or a custom call that nobody asked for, a setting that it says the request had."""
    path = violation.path
    if path == ("usage",) or path[0] == "tool_choice" or not _OWN_KEYS.isdisjoint(path):
        return True
    if (path[-1], violation.keyword) in (("index", "const"), ("type", "enum")):
        return True
    call = lookup(body, path[: path.index("tool_calls") + 2]) if "tool_calls" in path else None
    return isinstance(call, dict) and call.get("type") == "custom"


def _validate(pair: Pair, side: str, body: Any, observer: Observer) -> None:
    validator = load_validator(f"{pair.client}/{pair.spoken}.{side}", pair.profile)
    known = load(f"hub/{pair.spoken}.{side}")["properties"]
    for violation in () if validator.accepts(body) else validator.violations(body):
        if violation.path[0] not in known or _is_providers_own(violation, body):
            continue
        place = [part for part in violation.path if isinstance(part, str)]
        name = f"{pair.client}:{pair.profile}/{pair.spoken}.{side} {place} {violation.keyword}"
        observer.add("answers fit the client's dialect", name, violation.message)
