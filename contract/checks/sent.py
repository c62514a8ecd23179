"""Checks of what a proxy sent to the fake provider behind it. Paths read the last request's body."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from dragoman.contract.outcome import Outcome, Received
from dragoman.contract.paths import ABSENT, at

from .bodies import compared, equal, fits, matching
from .rule import Problems, Rule, short

__all__ = ["SENT"]

_BY_PATH = {"type": "object", "minProperties": 1}
_PATHS = {"type": "array", "items": {"type": "string"}, "minItems": 1}


def _last(find: Callable[[Received, Any], Problems]) -> Callable[[Outcome, Any], Problems]:
    """The check, given the last request; where none was sent, that is the problem."""
    return lambda outcome, arg: find(outcome.sent[-1], arg) if outcome.sent else ["nothing was sent upstream"]


def _requests(outcome: Outcome, number: int) -> Problems:
    return (
        [] if len(outcome.sent) == number else [f"{len(outcome.sent)} requests reached the provider, expected {number}"]
    )


def _fits(outcome: Outcome, _: Any) -> Problems:
    if not outcome.sent:
        return ["nothing was sent upstream"]
    sent = outcome.sent[-1]
    protocol = next((name for name in ("responses", "embeddings") if sent.path.endswith(f"/{name}")), "chat")
    if isinstance(sent.body, dict) and "messages" not in sent.body and protocol == "chat":
        protocol = next((name for key, name in _BY_KEY.items() if key in sent.body), protocol)
    return fits(f"{outcome.upstream}/{protocol}.request", outcome.upstream_profile, sent.body)


_BY_KEY = {"prompt": "completions", "input": "embeddings"}
"""What an address that serves several protocols is asked for."""


def _equals(received: Received, wanted: Mapping[str, Any]) -> Problems:
    return compared(received.body, wanted, equal, "expected")


def _matches(received: Received, wanted: Mapping[str, Any]) -> Problems:
    return compared(received.body, wanted, matching, "expected to match")


def _present(received: Received, paths: list[str]) -> Problems:
    return [f"{path} was not sent" for path in paths if at(received.body, path) is ABSENT]


def _absent(received: Received, paths: list[str]) -> Problems:
    found = ((path, at(received.body, path)) for path in paths)
    return [f"{path} was sent: {short(got)}" for path, got in found if got is not ABSENT]


def _header(received: Received, wanted: Mapping[str, str | None]) -> Problems:
    problems = []
    for name, pattern in wanted.items():
        value = received.headers.get(name.lower())
        if pattern is None and value is not None:
            problems.append(f"header {name} was sent: {short(value)}")
        elif pattern is not None and (value is None or re.search(pattern, value) is None):
            problems.append(f"header {name} is {short(value)}, expected to match {pattern!r}")
    return problems


def _header_lacks(received: Received, text: str) -> Problems:
    return [f"the header {name} has it" for name, value in received.headers.items() if text and text in value]


def _in_order(received: Received, texts: list[str]) -> Problems:
    """Each text comes somewhere after the one before it."""
    messages = at(received.body, "messages")
    text = json.dumps(messages, ensure_ascii=False) if isinstance(messages, list) else ""
    place = 0
    for one in texts:
        place = text.find(one, place)
        if place < 0:
            return [f"{one} does not come after what should be before it: {short(text, 300)}"]
    return []


def _path(received: Received, pattern: str) -> Problems:
    return [] if re.fullmatch(pattern, received.path) else [f"the path is {received.path}, expected {pattern}"]


def _query(received: Received, wanted: Mapping[str, str]) -> Problems:
    found = ((name, received.query.get(name), pattern) for name, pattern in wanted.items())
    return [
        f"?{name}={value}, expected to match {pattern!r}"
        for name, value, pattern in found
        if not re.search(pattern, value or "")
    ]


def _roles(received: Received, wanted: list[str]) -> Problems:
    roles = at(received.body, "messages[*].role")
    return [] if roles == wanted else [f"the roles are {short(roles)}, expected {wanted}"]


def _let_go(outcome: Outcome, _: Any) -> Problems:
    return [] if outcome.let_go else ["the provider is kept at work for a client that has left"]


SENT: Mapping[str, Rule] = {
    "requests": Rule("that many requests reached the provider", _requests, {"type": "integer", "minimum": 0}),
    "fits": Rule("the last request fits the provider's own schema", _fits),
    "equals": Rule("the value at each path is the one given", _last(_equals), _BY_PATH),
    "matches": Rule("the value at each path matches the pattern", _last(_matches), _BY_PATH),
    "present": Rule("each path leads to a value", _last(_present), _PATHS),
    "absent": Rule("no path leads to a value", _last(_absent), _PATHS),
    "header": Rule("each header matches its pattern; null: it was not sent", _last(_header), _BY_PATH),
    "header_lacks": Rule("no header has this text in it", _last(_header_lacks), {"type": "string"}),
    "in_order": Rule("these texts come in the messages, in this order", _last(_in_order), _PATHS),
    "path": Rule("the path matches, wholly", _last(_path), {"type": "string"}),
    "query": Rule("each query parameter matches its pattern", _last(_query), _BY_PATH),
    "roles": Rule("the messages have these roles, in this order", _last(_roles), _PATHS),
    "let_go": Rule("the provider's connection is closed within 5 s of the client's leaving", _let_go),
}
