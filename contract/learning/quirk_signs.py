"""Which quirks of the tables (`contract/quirks`) the answers of an endpoint have.

The signs of a quirk are what its bytes have and the usual answer of the dialect's fake has not: keys with their types,
words such as finish reasons, missing keys, and relations between the events of a stream. An endpoint has a quirk if its
answers in that form have all signs of it. Quirks without signs cannot be found in this way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise

from dragoman.contract.dialects import load_dialect
from dragoman.contract.exchange import Chunk, Response
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.contract.outcome import DONE, Outcome
from dragoman.contract.quirk_files import load_quirks

__all__ = ["find_quirks", "find_signs", "list_signs"]

_WORDS = ("object", "finish_reason", "type", "role", "status", "stop_reason")
"""Keys whose values are words of the API."""
_EXPECTED: Mapping[str, tuple[str, ...]] = {
    "": ("id", "object", "created", "model", "choices"),
    "choices[]": ("index",),
    "choices[].delta.tool_calls[]": ("index",),
    "choices[].message.tool_calls[]": ("id", "type"),
}
"""Keys that every object at a path has, in replies of chat and completions."""
_CHOICE_PROTOCOLS = ("chat", "completions")
_LISTED_PROTOCOLS = ("responses", "messages")
"""Protocols whose usual answers have a fixed set of keys and events, so that a missing one is a sign."""


def find_signs(outcome: Outcome) -> frozenset[str]:
    """Find everything in an answer that can be a sign."""
    kind = (outcome.response.header("content-type") or "none").split(";")[0]
    found = {f"content-type: {kind}"}
    for body in outcome.objects:
        found.update(_describe_value(body, "", outcome.protocol in _CHOICE_PROTOCOLS))
    if outcome.is_sse and outcome.protocol in _CHOICE_PROTOCOLS:
        found.update(_describe_stream(outcome))
    return frozenset(found)


def _describe_value(value: JsonValue, path: str, expects: bool) -> Iterator[str]:
    if isinstance(value, dict):
        for key in _EXPECTED.get(path, ()) if expects else ():
            if key not in value:
                yield f"{path}.{key} is missing"
        for key, item in value.items():
            below = f"{path}.{key}".lstrip(".")
            yield f"{below} is {_name_type(item)}"
            if key in _WORDS and isinstance(item, str):
                yield f"{below} is {item!r}"
            yield from _describe_value(item, below, expects)
    elif isinstance(value, list):
        for item in value:
            yield f"{path}[] is {_name_type(item)}"
            yield from _describe_value(item, f"{path}[]", expects)


def _name_type(value: JsonValue) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "a boolean"
    if isinstance(value, int | float):
        return "a number" if not isinstance(value, float) or value.is_integer() else "a fraction"
    if isinstance(value, str):
        return "a text" if value else "an empty text"
    return ("a list" if value else "an empty list") if isinstance(value, list) else "an object"


def _describe_stream(outcome: Outcome) -> Iterator[str]:
    """Describe the relations between the chunks of a stream."""
    chunks = [body for body in outcome.objects if isinstance(body.get("choices"), list)]
    choices = [choice for body in chunks for choice in body["choices"] if isinstance(choice, dict)]
    deltas = [one if isinstance(one := choice.get("delta"), dict) else {} for choice in choices]
    ends = Counter(str(choice.get("index")) for choice in choices if choice.get("finish_reason"))
    done = sum(event.data == DONE for event in outcome.events)
    calls = [call for delta in deltas for call in _objects(delta.get("tool_calls"))]
    relations = {
        "the id varies": len({repr(body.get("id")) for body in chunks}) > 1,
        "created varies": len({repr(body.get("created")) for body in chunks}) > 1,
        "the role is in each delta": len(deltas) > 2 and all(one.get("role") for one in deltas),
        "several finish reasons": any(count > 1 for count in ends.values()),
        "no finish reason": not ends,
        "the finish reason comes with content": any(
            choice.get("finish_reason") and _has_content(choice.get("delta")) for choice in choices
        ),
        "a usage comes with a choice": any(isinstance(body.get("usage"), dict) and body["choices"] for body in chunks),
        "no [DONE]": not done,
        "[DONE] twice": done > 1,
        "text outside of events": bool(outcome.strays),
        "events that are no JSON": any(event.data != DONE and not event.body for event in outcome.events),
        "one index for several calls": _shares_index(calls),
        "one id for several indexes": _shares_id(calls),
        "several ids for one call": _has_several_ids(calls),
        "a call begins without an id": bool(calls) and not calls[0].get("id"),
        "a call begins without a name": bool(calls) and not _function(calls[0]).get("name"),
        "the name is in each piece": len(calls) > 1 and all(_function(call).get("name") for call in calls),
        "the id is in each piece": len(calls) > 1 and all(call.get("id") for call in calls),
        "the arguments repeat": _repeats_arguments(calls),
        "the arguments begin with {}": len(calls) > 1 and _function(calls[0]).get("arguments") == "{}",
    }
    yield from (sign for sign, holds in relations.items() if holds)


def _objects(value: JsonValue) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _function(call: JsonObject) -> JsonObject:
    found = call.get("function")
    return found if isinstance(found, dict) else {}


def _has_content(delta: JsonValue) -> bool:
    return isinstance(delta, dict) and any(delta.get(key) for key in ("content", "tool_calls"))


def _shares_index(calls: Sequence[JsonObject]) -> bool:
    ids: dict[str, set[str]] = {}
    for call in calls:
        ids.setdefault(repr(call.get("index")), set()).update({str(call["id"])} if call.get("id") else ())
    return any(len(found) > 1 for found in ids.values())


def _shares_id(calls: Sequence[JsonObject]) -> bool:
    indexes: dict[str, set[str]] = {}
    for call in calls:
        if call.get("id"):
            indexes.setdefault(str(call["id"]), set()).add(repr(call.get("index")))
    return any(len(found) > 1 for found in indexes.values())


def _has_several_ids(calls: Sequence[JsonObject]) -> bool:
    return len({str(call["id"]) for call in calls if call.get("id")}) > 1


def _repeats_arguments(calls: Sequence[JsonObject]) -> bool:
    texts = [text for call in calls if isinstance(text := _function(call).get("arguments"), str) and text]
    return any(len(first) > 1 and second.startswith(first) for first, second in pairwise(texts))


def find_quirks(outcomes: Iterable[Outcome], dialect: str) -> dict[str, tuple[frozenset[str], Outcome]]:
    """Find the quirks of these answers, each with its signs and an answer that has them. A quirk whose signs are some
    of another one's that is found is left out."""
    by_form: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.response.status == 200:
            by_form.setdefault((outcome.protocol, _read_form(outcome)), []).append(outcome)
    found: dict[str, tuple[frozenset[str], Outcome]] = {}
    for (protocol, form), some in by_form.items():
        signs = [(outcome, find_signs(outcome) | _find_missing_signs(outcome)) for outcome in some]
        for quirk in load_quirks().values():
            mine = list_signs(quirk.name, form) if (quirk.protocol, quirk.upstream) == (protocol, dialect) else None
            match = next((outcome for outcome, having in signs if mine and mine <= having), None)
            if mine and match is not None and len(mine) > len(found.get(quirk.name, (frozenset[str](),))[0]):
                found[quirk.name] = (mine, match)
    return {
        name: (mine, outcome)
        for name, (mine, outcome) in found.items()
        if not any(mine < other for other, _ in found.values())
    }


def _read_form(outcome: Outcome) -> str:
    """The form that the request asked for."""
    return "streamed" if outcome.request.get("stream") is True else "whole"


@cache
def list_signs(name: str, form: str) -> frozenset[str]:
    """List the signs of a quirk in one form of its answer, `whole` or `streamed`; none if it has no such form, or if
    clients must get an error."""
    quirk = load_quirks()[name]
    if form not in quirk.forms or quirk.is_error:
        return frozenset()
    played = _play(quirk.upstream, quirk.protocol, "quirk", form == "streamed", {"name": name})
    usual = _list_usual_signs(quirk.upstream, quirk.protocol, form == "streamed")
    return find_signs(played).difference(*usual) | _find_missing_signs(played)


def _find_missing_signs(outcome: Outcome) -> frozenset[str]:
    """Find what every usual answer has and this one has not."""
    if outcome.protocol not in _LISTED_PROTOCOLS:
        return frozenset()
    usual = _list_usual_signs(outcome.dialect, outcome.protocol, _read_form(outcome) == "streamed")
    always = usual[0].intersection(*usual[1:]) if usual else frozenset[str]()
    return frozenset(f"missing: {sign}" for sign in always - find_signs(outcome))


@cache
def _list_usual_signs(dialect: str, protocol: str, stream: bool) -> tuple[frozenset[str], ...]:
    """The signs of each of the fake's usual answers: a text, a call, a cut text."""
    from dragoman.contract.fakes.behaviours import BEHAVIOURS  # it brings a server

    names = ("as-asked",) if protocol == "embeddings" else ("text", "tools", "length")
    return tuple(find_signs(_play(dialect, protocol, name, stream, BEHAVIOURS[name].args)) for name in names)


def _play(dialect: str, protocol: str, behaviour: str, stream: bool, args: Mapping[str, float | str]) -> Outcome:
    """Play a behaviour of the dialect's fake."""
    from dragoman.contract.fakes.answers import ModelRequest
    from dragoman.contract.fakes.behaviours import BEHAVIOURS

    tools = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]
    said = {"messages": [{"role": "user", "content": "hello"}], "input": ["hello"], "prompt": "hello"}
    body: JsonObject = {**said, "tools": tools, "stream": stream, "logprobs": True}
    profile = load_dialect(dialect).schema_profile
    request = ModelRequest(dialect, profile, body, "m", 1, stream, "http://fake", args, protocol, body)
    reply = BEHAVIOURS[behaviour].build_reply(request)
    data = b"".join(step for step in reply.steps if isinstance(step, bytes))
    headers = tuple((name.lower(), str(value)) for name, value in reply.headers.items())
    return Outcome(dialect, profile, protocol, "m", body, Response(reply.status, headers, (Chunk(0.0, data),)))
