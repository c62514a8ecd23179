"""Checks of the requests that a proxy sends to the fake provider behind it. A path reads the body of the last
request."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from dragoman.contract.json_path import ABSENT, find_value
from dragoman.contract.json_types import JsonValue
from dragoman.contract.outcome import Outcome, UpstreamRequest
from dragoman.contract.schema_validation import validate_body

from .bodies import compare_paths, is_equal, matches_pattern
from .rule import FindProblems, Problems, Rule, shorten

__all__ = ["UPSTREAM_CHECKS"]

_VALUE_BY_PATH = {"type": "object", "minProperties": 1}
_TEXT_LIST = {"type": "array", "items": {"type": "string"}, "minItems": 1}


def _check_last_request(find: Callable[[UpstreamRequest, JsonValue], Problems]) -> FindProblems:
    """Check the last request; it is a problem if there is none."""
    return lambda outcome, arg: find(outcome.sent[-1], arg) if outcome.sent else ["nothing was sent upstream"]


def _check_count(outcome: Outcome, number: int) -> Problems:
    return (
        [] if len(outcome.sent) == number else [f"{len(outcome.sent)} requests reached the provider, expected {number}"]
    )


def _check_schema(outcome: Outcome, _: JsonValue) -> Problems:
    if not outcome.sent:
        return ["nothing was sent upstream"]
    sent = outcome.sent[-1]
    protocol = next(
        (name for name in ("responses", "embeddings", "messages") if sent.path.endswith(f"/{name}")), "chat"
    )
    if isinstance(sent.body, dict) and "messages" not in sent.body and protocol == "chat":
        protocol = next((name for key, name in _PROTOCOL_BY_KEY.items() if key in sent.body), protocol)
    if sent.body is ABSENT:
        return ["the body is not JSON"]
    found = validate_body(f"{outcome.upstream}/{protocol}.request", outcome.upstream_profile, sent.body)
    return [*found.violations, *found.null_keys]


_PROTOCOL_BY_KEY = {"prompt": "completions", "input": "embeddings"}
"""The protocol that a request to a shared path asks for, by a key of its body."""


def _check_equals(request: UpstreamRequest, wanted: Mapping[str, JsonValue]) -> Problems:
    return compare_paths(request.body, wanted, is_equal, "expected")


def _check_matches(request: UpstreamRequest, wanted: Mapping[str, JsonValue]) -> Problems:
    return compare_paths(request.body, wanted, matches_pattern, "expected to match")


def _check_present(request: UpstreamRequest, paths: list[str]) -> Problems:
    return [f"{path} was not sent" for path in paths if find_value(request.body, path) is ABSENT]


def _check_absent(request: UpstreamRequest, paths: list[str]) -> Problems:
    found = ((path, find_value(request.body, path)) for path in paths)
    return [f"{path} was sent: {shorten(got)}" for path, got in found if got is not ABSENT]


def _check_headers(request: UpstreamRequest, wanted: Mapping[str, str | None]) -> Problems:
    problems = []
    for name, pattern in wanted.items():
        value = request.headers.get(name.lower())
        if pattern is None and value is not None:
            problems.append(f"header {name} was sent: {shorten(value)}")
        elif pattern is not None and (value is None or re.search(pattern, value) is None):
            problems.append(f"header {name} is {shorten(value)}, expected to match {pattern!r}")
    return problems


def _check_headers_lack(request: UpstreamRequest, text: str) -> Problems:
    return [f"the header {name} contains the text" for name, value in request.headers.items() if text and text in value]


def _check_text_order(request: UpstreamRequest, texts: list[str]) -> Problems:
    """Each text comes after the one before it."""
    found = [find_value(request.body, key) for key in ("system", "messages")]
    text = "".join(json.dumps(value, ensure_ascii=False) for value in found if value is not ABSENT)
    position = 0
    for one in texts:
        position = text.find(one, position)
        if position < 0:
            return [f"{one} does not come after the text before it: {shorten(text, 300)}"]
    return []


def _check_path(request: UpstreamRequest, pattern: str) -> Problems:
    return [] if re.fullmatch(pattern, request.path) else [f"the path is {request.path}, expected {pattern}"]


def _check_query(request: UpstreamRequest, wanted: Mapping[str, str]) -> Problems:
    found = ((name, request.query.get(name), pattern) for name, pattern in wanted.items())
    return [
        f"?{name}={value}, expected to match {pattern!r}"
        for name, value, pattern in found
        if not re.search(pattern, value or "")
    ]


def _check_roles(request: UpstreamRequest, wanted: list[str]) -> Problems:
    """The system prompt of a Messages request counts as a first message with that role."""
    roles = find_value(request.body, "messages[*].role")
    if isinstance(roles, list) and find_value(request.body, "system") is not ABSENT:
        roles = ["system", *roles]
    return [] if roles == wanted else [f"the roles are {shorten(roles)}, expected {wanted}"]


def _check_released(outcome: Outcome, _: JsonValue) -> Problems:
    return (
        []
        if outcome.upstream_released
        else ["the proxy keeps its request to the provider open for a client that has left"]
    )


UPSTREAM_CHECKS: Mapping[str, Rule] = {
    "requests": Rule("the provider received that many requests", _check_count, {"type": "integer", "minimum": 0}),
    "fits": Rule("the last request matches the provider's own schema", _check_schema),
    "equals": Rule("the value at each path equals the given one", _check_last_request(_check_equals), _VALUE_BY_PATH),
    "matches": Rule("the value at each path matches the pattern", _check_last_request(_check_matches), _VALUE_BY_PATH),
    "present": Rule("each path leads to a value", _check_last_request(_check_present), _TEXT_LIST),
    "absent": Rule("no path leads to a value", _check_last_request(_check_absent), _TEXT_LIST),
    "header": Rule(
        "each header matches its pattern; null: the header was not sent",
        _check_last_request(_check_headers),
        _VALUE_BY_PATH,
    ),
    "header_lacks": Rule("no header contains this text", _check_last_request(_check_headers_lack), {"type": "string"}),
    "in_order": Rule(
        "the messages contain these texts, in this order", _check_last_request(_check_text_order), _TEXT_LIST
    ),
    "path": Rule("the whole path matches the pattern", _check_last_request(_check_path), {"type": "string"}),
    "query": Rule("each query parameter matches its pattern", _check_last_request(_check_query), _VALUE_BY_PATH),
    "roles": Rule("the messages have these roles, in this order", _check_last_request(_check_roles), _TEXT_LIST),
    "let_go": Rule("the proxy closes its request to the provider within 5 s after the client left", _check_released),
}
