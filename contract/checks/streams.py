"""Checks of streams: framing, order of events, endings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.contract.outcome import DONE, TERMINALS, Outcome

from .excuses import excuse_ending
from .message_blocks import check_block_order
from .rule import Problems, Rule, shorten

__all__ = ["STREAM_CHECKS"]

_FINAL_TYPES = TERMINALS["responses"]
_TYPE_LIST = {"type": "array", "items": {"type": "string"}, "minItems": 1}


def _check_framing(outcome: Outcome, _: JsonValue) -> Problems:
    problems = [] if outcome.is_sse else [f"content-type is {shorten(outcome.response.header('content-type'))}"]
    problems += [f"a line that is not an SSE field: {shorten(line)}" for line in outcome.strays[:3]]
    body = outcome.response.body
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        problems.append(f"not UTF-8 at byte {error.start}")
    if outcome.response.broken:
        problems.append(outcome.response.broken)
    elif body and not re.search(rb"(\n\n|\r\n\r\n|\r\r)\Z", body):
        problems.append("the last event is not ended by a blank line")
    wrong = [event.data for event in outcome.events if event.data != DONE and not isinstance(event.body, dict)]
    return problems + [f"an event that is not a JSON object: {shorten(data)}" for data in wrong[:3]]


def _check_plain_lines(outcome: Outcome, _: JsonValue) -> Problems:
    if "\r" in outcome.text:
        return ["the stream has a carriage return"]
    lines = outcome.text.split("\n")
    wrong = [line for line in lines if line and not line.startswith("data: ")]
    problems = [f"a line that does not begin with `data: `: {shorten(line)}" for line in wrong[:3]]
    several = any(first and second for first, second in pairwise(lines))
    return [*problems, "an event has several lines"] if several else problems


def _check_no_bom(outcome: Outcome, _: JsonValue) -> Problems:
    return ["a byte order mark before the first event"] if outcome.response.body.startswith(b"\xef\xbb\xbf") else []


def _check_done(outcome: Outcome, _: JsonValue) -> Problems:
    positions = [position for position, event in enumerate(outcome.events) if event.data == DONE]
    if not positions:
        return ["[DONE] is missing"]
    if len(positions) > 1:
        return [f"[DONE] comes {len(positions)} times"]
    after = len(outcome.events) - 1 - positions[0]
    return [f"{after} events after [DONE]"] if after else []


def _check_no_done(outcome: Outcome, _: JsonValue) -> Problems:
    return ["[DONE] ends a stream that failed"] if any(event.data == DONE for event in outcome.events) else []


def _check_stream_or_error(outcome: Outcome, _: JsonValue) -> Problems:
    if outcome.response.status >= 400 or outcome.is_sse:
        return _check_one_ending(outcome, None) if outcome.is_sse else []
    return ["the reply is neither a stream nor an error"]


def _check_ends_broken(outcome: Outcome, _: JsonValue) -> Problems:
    return [] if outcome.response.broken else ["the reply is complete"]


def _check_one_ending(outcome: Outcome, _: JsonValue) -> Problems:
    if outcome.protocol in TERMINALS:
        return _check_one_terminal_event(outcome, TERMINALS[outcome.protocol])
    choices = outcome.content.choices
    problems = [] if choices else ["the reply has no choice"]
    for index, choice in choices.items():
        if len(choice.finishes) != 1:
            problems.append(f"choice {index} has {len(choice.finishes)} finish reasons: {choice.finishes}")
    return problems


def _check_one_terminal_event(outcome: Outcome, terminals: tuple[str, ...]) -> Problems:
    names = [str(body.get("type")) for body in outcome.objects]
    ends = [name for name in names if name in terminals]
    if len(ends) != 1:
        return [f"{len(ends)} terminal events: {', '.join(ends) or 'none'}"]
    return [] if names[-1] in terminals else [f"{names[-1]} comes after {ends[0]}"]


def _check_last_event(outcome: Outcome, wanted: list[str]) -> Problems:
    names = [str(body.get("type")) for body in outcome.objects]
    last = names[-1] if names else "nothing"
    return [] if last in wanted else [f"the stream ends with {last}, expected {' or '.join(wanted)}"]


def _check_event_names(outcome: Outcome, _: JsonValue) -> Problems:
    pairs = [(event.name, event.body.get("type")) for event in outcome.events if isinstance(event.body, dict)]
    return [f"event: {name or 'missing'}, type: {kind}" for name, kind in pairs if name != kind][:3]


def _check_sequence_numbers(outcome: Outcome, _: JsonValue) -> Problems:
    """OpenAI's service counts from 0, the examples of its reference count from 1."""
    numbers = [body.get("sequence_number") for body in outcome.objects]
    first = 1 if numbers[:1] == [1] else 0
    for position, number in enumerate(numbers):
        if number != position + first or isinstance(number, bool):
            return [f"event {position} has the sequence_number {shorten(number)}"]
    return [] if numbers else ["no events"]


def _check_event_order(outcome: Outcome, wanted: list[str]) -> Problems:
    """The first appearances of these types come in this order."""
    names = [str(body.get("type")) for body in outcome.objects]
    missing = [name for name in wanted if name not in names]
    if missing:
        return [f"no event {name}" for name in missing]
    positions = [names.index(name) for name in wanted]
    return [] if positions == sorted(positions) else [f"the order is {', '.join(dict.fromkeys(names))}"]


def _check_stable_ids(outcome: Outcome, _: JsonValue) -> Problems:
    problems = []
    for key in ("id", "model", "created"):
        values = list(dict.fromkeys(str(_envelope(outcome, body).get(key)) for body in _bodies_with_ids(outcome)))
        if len(values) > 1:
            problems.append(f"{key} changes: {', '.join(values[:3])}")
    return problems


def _bodies_with_ids(outcome: Outcome) -> list[JsonObject]:
    if outcome.protocol == "responses":
        return [body for body in outcome.objects if isinstance(body.get("response"), dict)]
    return [body for body in outcome.objects if body.get("choices") and body.get("id") != ""]


def _envelope(outcome: Outcome, body: JsonObject) -> JsonObject:
    return body["response"] if outcome.protocol == "responses" else body


def _check_role_first(outcome: Outcome, _: JsonValue) -> Problems:
    first: set[JsonValue] = set()
    problems: Problems = []
    for choice in _choices(outcome):
        index, delta = choice.get("index"), choice.get("delta")
        if isinstance(delta, dict) and delta.get("role") is not None and index in first:
            problems.append(f"choice {index} has its role in a second delta")
            break
        first.add(index)
    return problems


def _choices(outcome: Outcome) -> list[JsonObject]:
    lists = [body["choices"] for body in outcome.objects if isinstance(body.get("choices"), list)]
    return [choice for choices in lists for choice in choices if isinstance(choice, dict)]


def _call_deltas(outcome: Outcome) -> list[tuple[JsonValue, JsonObject]]:
    """Pairs of the index of a choice and the delta of a tool call, in order."""
    found = []
    for choice in _choices(outcome):
        delta = choice.get("delta")
        calls = delta.get("tool_calls") if isinstance(delta, dict) else None
        found += [(choice.get("index"), call) for call in calls or () if isinstance(call, dict)]
    return found


def _check_call_indexes(outcome: Outcome, _: JsonValue) -> Problems:
    """Every delta of a call has an index; the calls of a choice have the indexes 0, 1, ... in order."""
    seen: dict[JsonValue, list[JsonValue]] = {}
    for choice, call in _call_deltas(outcome):
        index, known = call.get("index"), seen.setdefault(choice, [])
        if not isinstance(index, int) or isinstance(index, bool):
            return [f"a tool call's delta has the index {shorten(index)}"]
        if index not in known:
            known.append(index)
    return [f"the calls have the indexes {known}" for known in seen.values() if known != list(range(len(known)))]


def _check_ids_once(outcome: Outcome, _: JsonValue) -> Problems:
    """Clients concatenate the deltas, so that a repeated id or name is doubled."""
    counts: dict[tuple[JsonValue, JsonValue], int] = {}
    for choice, call in _call_deltas(outcome):
        function = call.get("function")
        named = isinstance(function, dict) and function.get("name")
        key = (choice, call.get("index"))
        counts[key] = counts.get(key, 0) + bool(call.get("id") or named)
    return [f"call {key[1]} has its id or name {times} times" for key, times in counts.items() if times != 1]


def _check_separate_ending(outcome: Outcome, _: JsonValue) -> Problems:
    """Clients that stop at the finish reason may lose other content of the same chunk."""
    problems = []
    for choice in _choices(outcome):
        delta = choice.get("delta")
        others = [key for key, value in delta.items() if value and key != "role"] if isinstance(delta, dict) else []
        if choice.get("finish_reason") is not None and others:
            problems.append(
                f"{', '.join(others)} in the same chunk as the finish reason of choice {choice.get('index')}"
            )
    return problems


def _check_silence(outcome: Outcome, seconds: float) -> Problems:
    times = [chunk.at for chunk in outcome.response.chunks]
    longest = max((after - before for before, after in pairwise(times)), default=0.0)
    return [] if longest <= seconds else [f"no bytes for {longest:.1f} s"]


def _check_usage_elsewhere_null(outcome: Outcome, _: JsonValue) -> Problems:
    without = [position for position, body in enumerate(outcome.objects) if "usage" not in body]
    return [f"{len(without)} chunks lack usage: null"] if without else []


def _check_usage_last(outcome: Outcome, _: JsonValue) -> Problems:
    carriers = [position for position, body in enumerate(outcome.objects) if isinstance(body.get("usage"), dict)]
    if len(carriers) != 1:
        return [f"{len(carriers)} chunks have a usage, expected one"]
    carrier = outcome.objects[carriers[0]]
    problems = [] if carriers[0] == len(outcome.objects) - 1 else ["the chunk with the usage is not the last"]
    return problems + ([] if carrier.get("choices") == [] else ["the chunk with the usage has choices"])


def _check_no_usage(outcome: Outcome, _: JsonValue) -> Problems:
    return ["the stream has a usage that was not requested"] if outcome.content.usages else []


def _check_delta_sums(outcome: Outcome, _: JsonValue) -> Problems:
    """The deltas of every text and argument add up to the values of the `done` events and of the last response."""
    sums: dict[tuple[str, JsonValue, JsonValue], str] = {}
    problems: Problems = []
    for body in outcome.objects:
        kind, key = str(body.get("type")), (body.get("item_id"), body.get("content_index", body.get("summary_index")))
        if kind.endswith(".delta"):
            name = kind.removesuffix(".delta")
            sums[name, *key] = sums.get((name, *key), "") + str(body.get("delta", ""))
        elif kind.endswith(".done") and (name := kind.removesuffix(".done")) in _FINAL_FIELDS:
            final, summed = body.get(_FINAL_FIELDS[name]), sums.pop((name, *key), "")
            if final != summed:
                problems.append(f"{kind}: {shorten(final)}, its deltas add up to {shorten(summed)}")
    problems += [f"{name} of item {item} is never done" for name, item, _ in sums]
    return problems + _check_final_items(outcome)


_FINAL_FIELDS = {
    "response.output_text": "text",
    "response.refusal": "refusal",
    "response.function_call_arguments": "arguments",
    "response.reasoning_summary_text": "text",
    "response.reasoning_text": "text",
}


def _drop_nulls(value: JsonValue) -> JsonValue:
    """Whether a key is null or missing is a matter of the cases with the check `complete`."""
    if isinstance(value, dict):
        return {key: _drop_nulls(one) for key, one in value.items() if one is not None}
    return [_drop_nulls(one) for one in value] if isinstance(value, list) else value


def _check_final_items(outcome: Outcome) -> Problems:
    done = [body.get("item") for body in outcome.objects if body.get("type") == "response.output_item.done"]
    final = next((body["response"] for body in reversed(outcome.objects) if body.get("type") in _FINAL_TYPES), None)
    if not isinstance(final, dict):
        return ["no terminal event with a response"]
    return (
        []
        if _drop_nulls(final.get("output")) == _drop_nulls(done)
        else ["the output of the last response differs from the items of the done events"]
    )


def _check_item_pairs(outcome: Outcome, _: JsonValue) -> Problems:
    """Every added item and part is done once, after it was added; its deltas come between the two events."""
    if outcome.protocol == "messages":
        return check_block_order(outcome.objects)
    open_: set[JsonValue] = set()
    problems: Problems = []
    for body in outcome.objects:
        kind = str(body.get("type"))
        if (part := _PART_OF_EVENT.get(kind)) is not None:
            key = (part, *(body.get(name) for name in _PAIR_KEYS[part]))
            problems += [] if key in open_ else [f"{kind} outside its {part}"]
        for name, keys in _PAIR_KEYS.items():
            key = (name, *(body.get(part) for part in keys))
            if kind == f"response.{name}.added":
                open_.add(key)
            elif kind == f"response.{name}.done":
                problems += [] if key in open_ else [f"{kind} for {key[1:]} without added"]
                open_.discard(key)
    return list(dict.fromkeys(problems)) + [f"{key[0]} {key[1:]} is never done" for key in open_]


_PAIR_KEYS: Mapping[str, tuple[str, ...]] = {
    "output_item": ("output_index",),
    "content_part": ("output_index", "content_index"),
    "reasoning_summary_part": ("output_index", "summary_index"),
}
_PART_OF_EVENT: Mapping[str, str] = {
    "response.output_text.delta": "content_part",
    "response.refusal.delta": "content_part",
    "response.reasoning_text.delta": "content_part",
    "response.reasoning_summary_text.delta": "reasoning_summary_part",
}
"""Events that belong to a part."""


STREAM_CHECKS: Mapping[str, Rule] = {
    "sse.framing": Rule(
        "the reply is a complete stream of server-sent events in UTF-8, each a JSON object", _check_framing
    ),
    "sse.plain_lines": Rule("every event is one line `data: ...` and a blank line", _check_plain_lines),
    "sse.no_bom": Rule("the stream does not begin with a byte order mark", _check_no_bom),
    "done": Rule("[DONE] comes once, as the last event", _check_done),
    "no_done": Rule("there is no [DONE]", _check_no_done),
    "stream_or_error": Rule(
        "the reply is a stream with one ending, or has the status of an error", _check_stream_or_error
    ),
    "ends_broken": Rule("the connection breaks before the end", _check_ends_broken),
    "one_terminal": Rule("each choice, or the response, ends exactly once, and nothing follows", _check_one_ending),
    "terminal": Rule(
        "the last event has one of these types",
        _check_last_event,
        _TYPE_LIST,
        needs_model=True,
        find_excuse=excuse_ending,
    ),
    "event_equals_type": Rule("the SSE event name equals the type of the object", _check_event_names),
    "sequence_contiguous": Rule("sequence_number has no gaps, from 0 or from 1", _check_sequence_numbers),
    "event_order": Rule(
        "there are events of these types, the first of each in this order",
        _check_event_order,
        _TYPE_LIST,
        needs_model=True,
    ),
    "ids_stable": Rule("id, model and created do not change", _check_stable_ids),
    "role_first_only": Rule("only the first delta of a choice has the role", _check_role_first),
    "usage_last": Rule("only the last chunk has a usage, and it has no choices", _check_usage_last),
    "usage_elsewhere_null": Rule("every other chunk has usage: null", _check_usage_elsewhere_null),
    "tool_indexes": Rule("the deltas of tool calls have indexes from 0", _check_call_indexes),
    "tool_ids_once": Rule("a streamed tool call has its id and its name once", _check_ids_once),
    "ending_apart": Rule("no chunk has both a finish reason and other content", _check_separate_ending),
    "silent_at_most": Rule(
        "once a reply has begun, no pause is longer than that many seconds",
        _check_silence,
        {"type": "number", "exclusiveMinimum": 0},
    ),
    "no_usage": Rule("there is no usage", _check_no_usage),
    "deltas_equal_final": Rule("the deltas add up to the final texts, arguments and items", _check_delta_sums),
    "items_paired": Rule(
        "every added item, part or block is done once, and its deltas come in between", _check_item_pairs
    ),
}
