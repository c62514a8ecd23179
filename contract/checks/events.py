"""Checks of streams: framing, order, endings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from dragoman.contract.model import Json
from dragoman.contract.outcome import Outcome

from .rule import Problems, Rule, short

__all__ = ["EVENTS", "TERMINALS"]

DONE = "[DONE]"
TERMINALS = ("response.completed", "response.incomplete", "response.failed")
_NAMES = {"type": "array", "items": {"type": "string"}, "minItems": 1}


def _framing(outcome: Outcome, _: Any) -> Problems:
    problems = [] if outcome.is_sse else [f"content-type is {short(outcome.answer.header('content-type'))}"]
    problems += [f"a line that is no SSE field: {short(line)}" for line in outcome.strays[:3]]
    body = outcome.answer.body
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        problems.append(f"not UTF-8 at byte {error.start}")
    if outcome.answer.broken:
        problems.append(outcome.answer.broken)
    elif body and not re.search(rb"(\n\n|\r\n\r\n|\r\r)\Z", body):
        problems.append("the last event is not ended by a blank line")
    wrong = [event.data for event in outcome.events if event.data != DONE and not isinstance(event.body, dict)]
    return problems + [f"an event that is no JSON object: {short(data)}" for data in wrong[:3]]


def _plain_lines(outcome: Outcome, _: Any) -> Problems:
    if "\r" in outcome.text:
        return ["a carriage return"]
    lines = outcome.text.split("\n")
    wrong = [line for line in lines if line and not line.startswith("data: ")]
    problems = [f"a line that does not begin with `data: `: {short(line)}" for line in wrong[:3]]
    several = any(first and second for first, second in pairwise(lines))
    return [*problems, "an event of several lines"] if several else problems


def _no_mark(outcome: Outcome, _: Any) -> Problems:
    return ["a byte order mark before the first event"] if outcome.answer.body.startswith(b"\xef\xbb\xbf") else []


def _done(outcome: Outcome, _: Any) -> Problems:
    places = [place for place, event in enumerate(outcome.events) if event.data == DONE]
    if not places:
        return ["no [DONE]"]
    if len(places) > 1:
        return [f"[DONE] {len(places)} times"]
    after = len(outcome.events) - 1 - places[0]
    return [f"{after} events after [DONE]"] if after else []


def _no_done(outcome: Outcome, _: Any) -> Problems:
    return ["[DONE] ends a stream that failed"] if any(event.data == DONE for event in outcome.events) else []


def _stream_or_error(outcome: Outcome, _: Any) -> Problems:
    if outcome.answer.status >= 400 or outcome.is_sse:
        return _one_terminal(outcome, None) if outcome.is_sse else []
    return ["neither a stream nor an error"]


def _ends_broken(outcome: Outcome, _: Any) -> Problems:
    return [] if outcome.answer.broken else ["the reply ends in order"]


def _one_terminal(outcome: Outcome, _: Any) -> Problems:
    if outcome.protocol == "responses":
        return _one_last_word(outcome)
    turns = outcome.said.turns
    problems = [] if turns else ["no choice at all"]
    for index, turn in turns.items():
        if len(turn.finishes) != 1:
            problems.append(f"choice {index} has {len(turn.finishes)} finish reasons: {turn.finishes}")
    return problems


def _one_last_word(outcome: Outcome) -> Problems:
    names = [str(body.get("type")) for body in outcome.objects]
    ends = [name for name in names if name in TERMINALS]
    if len(ends) != 1:
        return [f"{len(ends)} terminal events: {', '.join(ends) or 'none'}"]
    return [] if names[-1] in TERMINALS else [f"{names[-1]} comes after {ends[0]}"]


def _terminal(outcome: Outcome, wanted: list[str]) -> Problems:
    names = [str(body.get("type")) for body in outcome.objects]
    last = names[-1] if names else "nothing"
    return [] if last in wanted else [f"the stream ends with {last}, expected {' or '.join(wanted)}"]


def _names(outcome: Outcome, _: Any) -> Problems:
    pairs = [(event.name, event.body.get("type")) for event in outcome.events if isinstance(event.body, dict)]
    return [f"event: {name or 'missing'}, type: {kind}" for name, kind in pairs if name != kind][:3]


def _numbered(outcome: Outcome, _: Any) -> Problems:
    """OpenAI's service counts from 0, the examples of its reference from 1."""
    numbers = [body.get("sequence_number") for body in outcome.objects]
    first = 1 if numbers[:1] == [1] else 0
    for place, number in enumerate(numbers):
        if number != place + first or isinstance(number, bool):
            return [f"event {place} has the sequence_number {short(number)}"]
    return [] if numbers else ["no events"]


def _order(outcome: Outcome, wanted: list[str]) -> Problems:
    """The first appearances of these types come in this order."""
    names = [str(body.get("type")) for body in outcome.objects]
    missing = [name for name in wanted if name not in names]
    if missing:
        return [f"no event {name}" for name in missing]
    places = [names.index(name) for name in wanted]
    return [] if places == sorted(places) else [f"the order is {', '.join(dict.fromkeys(names))}"]


def _same_ids(outcome: Outcome, _: Any) -> Problems:
    problems = []
    for key in ("id", "model", "created"):
        values = list(dict.fromkeys(str(_envelope(outcome, body).get(key)) for body in _told(outcome)))
        if len(values) > 1:
            problems.append(f"{key} changes: {', '.join(values[:3])}")
    return problems


def _told(outcome: Outcome) -> list[Json]:
    if outcome.protocol == "responses":
        return [body for body in outcome.objects if isinstance(body.get("response"), dict)]
    return [body for body in outcome.objects if body.get("choices") and body.get("id") != ""]


def _envelope(outcome: Outcome, body: Json) -> Json:
    return body["response"] if outcome.protocol == "responses" else body


def _role_first(outcome: Outcome, _: Any) -> Problems:
    first: set[Any] = set()
    problems: Problems = []
    for choice in _choices(outcome):
        index, delta = choice.get("index"), choice.get("delta")
        if isinstance(delta, dict) and delta.get("role") is not None and index in first:
            problems.append(f"choice {index} tells its role again")
            break
        first.add(index)
    return problems


def _choices(outcome: Outcome) -> list[Json]:
    lists = [body["choices"] for body in outcome.objects if isinstance(body.get("choices"), list)]
    return [choice for choices in lists for choice in choices if isinstance(choice, dict)]


def _call_deltas(outcome: Outcome) -> list[tuple[Any, Json]]:
    """(choice's index, delta of a tool call), in order."""
    found = []
    for choice in _choices(outcome):
        delta = choice.get("delta")
        calls = delta.get("tool_calls") if isinstance(delta, dict) else None
        found += [(choice.get("index"), call) for call in calls or () if isinstance(call, dict)]
    return found


def _call_indexes(outcome: Outcome, _: Any) -> Problems:
    """Every delta of a call has its index; the calls of a choice are numbered 0, 1, ... as they come."""
    seen: dict[Any, list[Any]] = {}
    for choice, call in _call_deltas(outcome):
        index, known = call.get("index"), seen.setdefault(choice, [])
        if not isinstance(index, int) or isinstance(index, bool):
            return [f"a tool call's delta has the index {short(index)}"]
        if index not in known:
            known.append(index)
    return [f"the calls have the indexes {known}" for known in seen.values() if known != list(range(len(known)))]


def _ids_once(outcome: Outcome, _: Any) -> Problems:
    """Clients add the pieces up: an id or a name that comes twice is doubled."""
    told: dict[tuple[Any, Any], int] = {}
    for choice, call in _call_deltas(outcome):
        function = call.get("function")
        named = isinstance(function, dict) and function.get("name")
        key = (choice, call.get("index"))
        told[key] = told.get(key, 0) + bool(call.get("id") or named)
    return [f"call {key[1]} tells its id or name {times} times" for key, times in told.items() if times != 1]


def _ending_apart(outcome: Outcome, _: Any) -> Problems:
    """Clients that stop at the finish reason lose what stands beside it."""
    problems = []
    for choice in _choices(outcome):
        delta = choice.get("delta")
        beside = [key for key, value in delta.items() if value and key != "role"] if isinstance(delta, dict) else []
        if choice.get("finish_reason") is not None and beside:
            problems.append(f"{', '.join(beside)} beside the finish reason of choice {choice.get('index')}")
    return problems


def _silence(outcome: Outcome, seconds: float) -> Problems:
    times = [chunk.at for chunk in outcome.answer.chunks]
    longest = max((after - before for before, after in pairwise(times)), default=0.0)
    return [] if longest <= seconds else [f"nothing came for {longest:.1f} s"]


def _usage_elsewhere_null(outcome: Outcome, _: Any) -> Problems:
    without = [place for place, body in enumerate(outcome.objects) if "usage" not in body]
    return [f"{len(without)} chunks have no usage: null"] if without else []


def _usage_last(outcome: Outcome, _: Any) -> Problems:
    bearers = [place for place, body in enumerate(outcome.objects) if isinstance(body.get("usage"), dict)]
    if len(bearers) != 1:
        return [f"{len(bearers)} chunks carry a usage, expected one"]
    bearer = outcome.objects[bearers[0]]
    problems = [] if bearers[0] == len(outcome.objects) - 1 else ["the chunk with the usage is not the last"]
    return problems + ([] if bearer.get("choices") == [] else ["the chunk with the usage has choices"])


def _no_usage(outcome: Outcome, _: Any) -> Problems:
    return ["a usage that was not asked for"] if outcome.said.usages else []


def _sums(outcome: Outcome, _: Any) -> Problems:
    """The deltas of every text and argument add up to what the `done` events and the last response say."""
    sums: dict[tuple[str, Any, Any], str] = {}
    problems: Problems = []
    for body in outcome.objects:
        kind, key = str(body.get("type")), (body.get("item_id"), body.get("content_index", body.get("summary_index")))
        if kind.endswith(".delta"):
            name = kind.removesuffix(".delta")
            sums[name, *key] = sums.get((name, *key), "") + str(body.get("delta", ""))
        elif kind.endswith(".done") and (name := kind.removesuffix(".done")) in _FIELDS:
            told, summed = body.get(_FIELDS[name]), sums.pop((name, *key), "")
            if told != summed:
                problems.append(f"{kind}: {short(told)}, its deltas add up to {short(summed)}")
    problems += [f"{name} of item {item} is never done" for name, item, _ in sums]
    return problems + _final_items(outcome)


_FIELDS = {
    "response.output_text": "text",
    "response.refusal": "refusal",
    "response.function_call_arguments": "arguments",
    "response.reasoning_summary_text": "text",
    "response.reasoning_text": "text",
}


def _final_items(outcome: Outcome) -> Problems:
    done = [body.get("item") for body in outcome.objects if body.get("type") == "response.output_item.done"]
    final = next((body["response"] for body in reversed(outcome.objects) if body.get("type") in TERMINALS), None)
    if not isinstance(final, dict):
        return ["no terminal event with a response"]
    return [] if final.get("output") == done else ["the last response's output is not what the items' done events told"]


def _paired(outcome: Outcome, _: Any) -> Problems:
    """Every item and part that is added is done, once, and only then; texts come between the two."""
    open_: set[Any] = set()
    problems: Problems = []
    for body in outcome.objects:
        kind = str(body.get("type"))
        if (part := _PARTS.get(kind)) is not None:
            key = (part, *(body.get(name) for name in _PAIRS[part]))
            problems += [] if key in open_ else [f"{kind} outside of its {part}"]
        for name, keys in _PAIRS.items():
            key = (name, *(body.get(part) for part in keys))
            if kind == f"response.{name}.added":
                open_.add(key)
            elif kind == f"response.{name}.done":
                problems += [] if key in open_ else [f"{kind} for {key[1:]} without added"]
                open_.discard(key)
    return list(dict.fromkeys(problems)) + [f"{key[0]} {key[1:]} is never done" for key in open_]


_PAIRS: Mapping[str, tuple[str, ...]] = {
    "output_item": ("output_index",),
    "content_part": ("output_index", "content_index"),
    "reasoning_summary_part": ("output_index", "summary_index"),
}
_PARTS: Mapping[str, str] = {
    "response.output_text.delta": "content_part",
    "response.refusal.delta": "content_part",
    "response.reasoning_text.delta": "content_part",
    "response.reasoning_summary_text.delta": "reasoning_summary_part",
}
"""Events that come inside of a part."""


EVENTS: Mapping[str, Rule] = {
    "sse.framing": Rule("a stream of server-sent events in UTF-8, each a JSON object, ended in order", _framing),
    "sse.plain_lines": Rule("every event is one line `data: ...` and a blank one", _plain_lines),
    "sse.no_bom": Rule("no byte order mark comes first", _no_mark),
    "done": Rule("[DONE] comes once, last", _done),
    "no_done": Rule("no [DONE] comes", _no_done),
    "stream_or_error": Rule("the reply is a stream that ends, or an error's status", _stream_or_error),
    "ends_broken": Rule("the connection breaks off", _ends_broken),
    "one_terminal": Rule("each choice, or the response, ends exactly once, and nothing follows", _one_terminal),
    "terminal": Rule("the last event is of one of these types", _terminal, _NAMES),
    "event_equals_type": Rule("the SSE event name is the object's type", _names),
    "sequence_contiguous": Rule("sequence_number counts on, from 0 or from 1", _numbered),
    "event_order": Rule("events of these types come, first in this order", _order, _NAMES),
    "ids_stable": Rule("id, model and created stay the same", _same_ids),
    "role_first_only": Rule("a choice tells its role in its first delta only", _role_first),
    "usage_last": Rule("one chunk carries the usage: the last, with no choices", _usage_last),
    "usage_elsewhere_null": Rule("every other chunk says usage: null", _usage_elsewhere_null),
    "tool_indexes": Rule("the deltas of tool calls have indexes that count from 0", _call_indexes),
    "tool_ids_once": Rule("a streamed tool call tells its id and its name once", _ids_once),
    "ending_apart": Rule("no text and no call stands beside a finish reason", _ending_apart),
    "silent_at_most": Rule(
        "a reply that has begun is never silent for longer than that many seconds",
        _silence,
        {"type": "number", "exclusiveMinimum": 0},
    ),
    "no_usage": Rule("no usage comes", _no_usage),
    "deltas_equal_final": Rule("the deltas add up to the final texts, arguments and items", _sums),
    "items_paired": Rule("every item and part that is added is done once, and its text comes between", _paired),
}
