"""Judges what a client got: its form, its end, and what differs from the provider's reply."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import orjson

from dragoman.adapters.call import JsonObject, Target
from dragoman.adapters.changes import Change
from dragoman.adapters.paths import lookup
from dragoman.adapters.pipeline import Attempt
from dragoman.adapters.sse import Event, Framer
from dragoman.adapters.validation import Violation, load_validator
from dragoman.schemas import load

from .laws import Observer
from .pairs import Pair
from .receipt_holes import find_holes, join_events

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
        "event",
        "error",
        "system_fingerprint",
        "summary",
        "obfuscation",
        "embedding",
    }
)
_MADE = re.compile(r"= '([a-z]+_[0-9a-f]{32}|\{\})' (was|appeared)")
"""Holes about ids that dragoman made, and about the arguments of a call that has none."""
_OWN_KEYS = {"service_tier", "err_msg", "extra_fields"}
"""Keys whose values are forwarded as the provider has them."""
_ENDS = ("response.completed", "response.incomplete")


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
    if attempt.outcome.state == "complete" and sent and len(attempt.calls) == 1:
        _compare(pair, sent, data, changes, observer)


def _compare(pair: Pair, sent: bytes, data: bytes, changes: Sequence[Change], observer: Observer) -> None:
    """Whether the receipt tells what differs between what the provider sent and what the client got."""
    before, after = _read_objects(sent.removeprefix(b"\xef\xbb\xbf")), _read_objects(data)
    if before is None or after is None:
        return
    if "events" in before and "responses" in (pair.spoken, pair.called):
        return  # each text comes several times, and need not be the same in an altered stream
    if ("events" in before) != ("events" in after):
        return  # what is assembled, or divided, has other paths
    before.pop("joined", None)
    after.pop("joined", None)
    holes = find_holes(before, after, changes, exempt=_find_exempt(pair))
    for hole in (one for one in holes if not _MADE.search(one)):
        observer.add("every difference is in the receipt", f"{pair.spoken}<{pair.called} {hole[:80]}", hole[:300])


def _find_exempt(pair: Pair) -> frozenset[str]:
    """The keys of a reply that may differ: a response repeats the settings of a request."""
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
        texts = [item.data if isinstance(item, Event) else item.text for item in items]
        end = texts.index(b"[DONE]") if b"[DONE]" in texts else len(texts)  # nobody reads on
        bodies = [orjson.loads(text) for text in texts[:end] if text.startswith(b"{")]
    except orjson.JSONDecodeError:
        return None
    return join_events([body for body in bodies if isinstance(body, dict)])


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
    """Whether only another answer would fit: counts that the provider did not send, words of its own, a choice or a
    custom call that nobody asked for."""
    path = violation.path
    if path == ("usage",) or not _OWN_KEYS.isdisjoint(path):
        return True
    if path[-1] == "index" and violation.keyword == "const":
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
