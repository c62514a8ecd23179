"""Checks of what the model said, in chat, Responses and completions alike, whole or streamed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator

from dragoman.contract.dialects import dialect
from dragoman.contract.outcome import Outcome

from .rule import Problems, Rule, short

__all__ = ["CONVERSATION"]

_WORDS = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_NUMBER = {"type": "integer", "minimum": 0}
_NAMES = (("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens"))


def _finish(outcome: Outcome, allowed: list[str]) -> Problems:
    finishes = outcome.said.finishes
    if not finishes:
        return ["nothing was said"]
    own = dialect(outcome.dialect).finish
    wrong = [finish for finish in finishes if own.get(str(finish), finish) not in allowed]
    return [f"the ending is {short(finish)}, expected {' or '.join(allowed)}" for finish in wrong]


def _has_text(outcome: Outcome, _: Any) -> Problems:
    turns = outcome.said.turns.values()
    cut = ("length", "max_output_tokens")
    empty = [turn for turn in turns if not turn.text.strip() and turn.finishes[-1:] not in ([word] for word in cut)]
    return ["no text, or an empty one"] if empty or not turns else []


def _no_text(outcome: Outcome, _: Any) -> Problems:
    return [f"a text: {short(text)}" for text in outcome.said.texts if text]


def _contains(outcome: Outcome, words: list[str]) -> Problems:
    text = "".join(outcome.said.texts).lower()
    return [f"the text does not contain {word!r}: {short(text)}" for word in words if word.lower() not in text]


def _text_is(outcome: Outcome, wanted: str) -> Problems:
    return [f"the text is {short(text)}" for text in outcome.said.texts or [""] if text != wanted]


def _lacks(outcome: Outcome, words: list[str]) -> Problems:
    text = "".join(outcome.said.texts)
    return [f"the text contains {word!r}" for word in words if word in text]


def _usage(outcome: Outcome, _: Any) -> Problems:
    if not outcome.said.usages:
        return ["no usage"]
    usage = outcome.said.usages[-1]
    for names in _NAMES:
        if names[0] in usage:
            return _sum(usage, names)
    return [f"the usage has neither prompt_tokens nor input_tokens: {short(usage)}"]


def _sum(usage: Mapping[str, Any], names: tuple[str, str]) -> Problems:
    numbers = [usage.get(names[0]), usage.get(names[1], 0), usage.get("total_tokens")]
    if not all(isinstance(number, int) and not isinstance(number, bool) and number >= 0 for number in numbers):
        return [f"a count in the usage is no number of tokens: {short(usage)}"]
    first, second, total = numbers
    return [] if first + second == total else [f"{first} + {second} is not {total}"]


def _called(outcome: Outcome, names: list[str]) -> Problems:
    got = [call.name for call in outcome.said.calls]
    return [] if got == names else [f"the calls are {got}, expected {names}"]


def _calls(outcome: Outcome, least: int) -> Problems:
    number = len(outcome.said.calls)
    return [] if number >= least else [f"{number} tool calls, expected {least} or more"]


def _calls_at_most(outcome: Outcome, most: int) -> Problems:
    number = len(outcome.said.calls)
    return [] if number <= most else [f"{number} tool calls, expected {most} or fewer"]


def _no_calls(outcome: Outcome, _: Any) -> Problems:
    return [f"a call of {call.name}" for call in outcome.said.calls]


def _arguments(outcome: Outcome, _: Any) -> Problems:
    """Every call's arguments are a JSON object that fits the parameters of the tool."""
    problems: Problems = []
    for call in outcome.said.calls:
        try:
            value = json.loads(call.arguments)
        except ValueError:
            problems.append(f"the arguments of {call.name} are no JSON: {short(call.arguments)}")
            continue
        if not isinstance(value, dict):
            problems.append(f"the arguments of {call.name} are no object: {short(value)}")
            continue
        problems += [f"{call.name}: {error.message}" for error in _validator(outcome, call.name).iter_errors(value)]
    return problems


def _validator(outcome: Outcome, name: str) -> Draft202012Validator:
    tools = outcome.request.get("tools")
    functions = [tool.get("function", tool) for tool in tools if isinstance(tool, dict)] if tools else []
    found = next((one.get("parameters") for one in functions if one.get("name") == name), None)
    return Draft202012Validator(found if isinstance(found, dict) else {})


def _call_ids(outcome: Outcome, _: Any) -> Problems:
    ids = [call.id for call in outcome.said.calls]
    problems = ["a tool call has no id"] if any(not id_ for id_ in ids) else []
    return problems + (["two tool calls have one id"] if len(set(ids)) < len(ids) else [])


def _choices(outcome: Outcome, number: int) -> Problems:
    indexes = sorted(outcome.said.turns)
    return [] if indexes == list(range(number)) else [f"the choices are {indexes}, expected 0 to {number - 1}"]


def _json(outcome: Outcome, schema: Any) -> Problems:
    problems: Problems = []
    for text in outcome.said.texts:
        try:
            value = json.loads(text)
        except ValueError:
            problems.append(f"the text is no JSON: {short(text)}")
            continue
        problems += [error.message for error in Draft202012Validator(schema or {}).iter_errors(value)]
    return problems or ([] if outcome.said.texts else ["no text"])


def _logprobs(outcome: Outcome, _: Any) -> Problems:
    return [] if all(turn.logprobs for turn in outcome.said.turns.values()) else ["a choice without log probabilities"]


def _reasoned(outcome: Outcome, _: Any) -> Problems:
    return [] if any(turn.reasoning for turn in outcome.said.turns.values()) else ["no reasoning"]


def _refused(outcome: Outcome, _: Any) -> Problems:
    return [] if any(turn.refusal for turn in outcome.said.turns.values()) else ["no refusal"]


CONVERSATION: Mapping[str, Rule] = {
    "finish_reason": Rule(
        "every choice ends for one of these reasons (Responses: its status or reason)", _finish, _WORDS
    ),
    "has_text": Rule("every choice has a text, unless its tokens ran out first", _has_text),
    "no_text": Rule("no choice has a text", _no_text),
    "text_contains": Rule("the text contains these words, in any case", _contains, _WORDS),
    "text_is": Rule("every text is this one, to the letter", _text_is, {"type": "string"}),
    "text_lacks": Rule("the text contains none of these", _lacks, _WORDS),
    "usage_adds_up": Rule("the usage is told, in whole numbers, and its parts make its total", _usage),
    "tools_called": Rule("these tools are called, in this order", _called, _WORDS),
    "tool_calls": Rule("that many tool calls or more", _calls, _NUMBER),
    "tool_calls_at_most": Rule("that many tool calls or fewer", _calls_at_most, _NUMBER),
    "no_tool_calls": Rule("no tool is called", _no_calls),
    "tool_args_json": Rule("arguments are JSON objects that fit the tool's parameters", _arguments),
    "tool_ids_unique": Rule("every tool call has an id of its own", _call_ids),
    "choices": Rule("there are that many choices, numbered from 0", _choices, _NUMBER),
    "text_is_json": Rule("every text is JSON, and fits the schema where one is given", _json, {"type": "object"}),
    "has_logprobs": Rule("every choice has log probabilities", _logprobs),
    "has_reasoning": Rule("the reasoning is told", _reasoned),
    "has_refusal": Rule("the refusal is told as one", _refused),
}
