"""Checks of the content that the model wrote: the same for every protocol, whole or streamed."""

from __future__ import annotations

import json
from collections.abc import Mapping

from jsonschema import Draft202012Validator

from dragoman.contract.dialects import load_dialect
from dragoman.contract.json_path import ABSENT, find_value
from dragoman.contract.json_types import JsonValue
from dragoman.contract.outcome import Outcome
from dragoman.contract.reply_content import ToolCall

from .excuses import excuse_cut_answer, excuse_finish_reason, excuse_silent_model
from .rule import Problems, Rule, shorten

__all__ = ["CONTENT_CHECKS"]

_TEXT_LIST = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_CALLS = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["name", "arguments"],
        "properties": {"name": {"type": "string"}, "arguments": {"type": "string"}},
    },
}
_COUNT = {"type": "integer", "minimum": 0}
_REASONING_COUNTS = (
    "completion_tokens_details.reasoning_tokens",
    "output_tokens_details.reasoning_tokens",
    "output_tokens_details.thinking_tokens",
)
_WITHOUT_TOTAL = ("messages",)
"""The protocols whose usage has no total."""
_TOKEN_COUNTS = (("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens"))


def _check_finish_reason(outcome: Outcome, allowed: list[str]) -> Problems:
    finishes = outcome.content.finishes
    if not finishes:
        return ["no finish reason"]
    names = load_dialect(outcome.dialect).finish
    wrong = [finish for finish in finishes if names.get(str(finish), finish) not in allowed]
    return [f"the finish reason is {shorten(finish)}, expected {' or '.join(allowed)}" for finish in wrong]


def _check_has_text(outcome: Outcome, _: JsonValue) -> Problems:
    choices = outcome.content.choices.values()
    cut = ("length", "max_output_tokens", "max_tokens")
    empty = [
        choice for choice in choices if not choice.text.strip() and choice.finishes[-1:] not in ([word] for word in cut)
    ]
    return ["the text is missing or empty"] if empty or not choices else []


def _check_no_text(outcome: Outcome, _: JsonValue) -> Problems:
    return [f"the reply has a text: {shorten(text)}" for text in outcome.content.texts if text]


def _check_contains(outcome: Outcome, words: list[str]) -> Problems:
    text = "".join(outcome.content.texts).lower()
    return [f"the text does not contain {word!r}: {shorten(text)}" for word in words if word.lower() not in text]


def _check_text_is(outcome: Outcome, wanted: str) -> Problems:
    return [f"the text is {shorten(text)}" for text in outcome.content.texts or [""] if text != wanted]


def _check_reasoning_is(outcome: Outcome, wanted: str) -> Problems:
    found = [choice.reasoning for choice in outcome.content.choices.values()] or [""]
    return [f"the reasoning is {shorten(text)}" for text in found if text != wanted]


def _check_usage_is(outcome: Outcome, wanted: list[int]) -> Problems:
    usage = outcome.content.usages[-1] if outcome.content.usages else {}
    names = next((names for names in _TOKEN_COUNTS if names[0] in usage), _TOKEN_COUNTS[0])
    found = [usage.get(name) for name in (*names, "total_tokens")]
    if outcome.protocol in _WITHOUT_TOTAL:
        found[2] = sum(count for count in found if isinstance(count, int))
    return [] if found == wanted else [f"the tokens are {found}, expected {wanted}"]


def _check_calls_are(outcome: Outcome, wanted: list[Mapping[str, str]]) -> Problems:
    found = [(_read_name(call), _parse(call.arguments)) for call in outcome.content.calls]
    expected = [(one["name"], json.loads(one["arguments"])) for one in wanted]
    return [] if found == expected else [f"the calls are {shorten(found, 300)}, expected {shorten(expected, 300)}"]


def _read_name(call: ToolCall) -> str:
    """The name of a call. OpenAI's SDK for Python joins the pieces of a name, and the one for Node takes the last one:
    both, if they differ."""
    joined, last = "".join(call.names), (call.names or [""])[-1]
    return joined if joined == last else f"{joined} or {last}"


def _parse(text: str) -> JsonValue:
    """The JSON value of a text, or the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _check_lacks(outcome: Outcome, words: list[str]) -> Problems:
    text = "".join(outcome.content.texts)
    return [f"the text contains {word!r}" for word in words if word in text]


def _check_usage(outcome: Outcome, _: JsonValue) -> Problems:
    if not outcome.content.usages:
        return ["the reply has no usage"]
    usage = outcome.content.usages[-1]
    for names in _TOKEN_COUNTS:
        if names[0] in usage:
            return _check_total(usage, names, outcome.protocol)
    return [f"the usage has neither prompt_tokens nor input_tokens: {shorten(usage)}"]


def _check_total(usage: Mapping[str, JsonValue], names: tuple[str, str], protocol: str) -> Problems:
    numbers = [usage.get(names[0]), usage.get(names[1], 0), usage.get("total_tokens")]
    if protocol in _WITHOUT_TOTAL:
        numbers[2] = sum(number for number in numbers if isinstance(number, int))
    if not all(isinstance(number, int) and not isinstance(number, bool) and number >= 0 for number in numbers):
        return [f"a count in the usage is not a number of tokens: {shorten(usage)}"]
    first, second, total = numbers
    return [] if first + second == total else [f"{first} + {second} is not {total}"]


def _check_usage_counts(outcome: Outcome, _: JsonValue) -> Problems:
    usage = outcome.content.usages[-1] if outcome.content.usages else {}
    counts = {name: usage[name] for names in _TOKEN_COUNTS for name in names if name in usage}
    wrote = any(outcome.content.texts) or bool(outcome.content.calls)
    return [f"{name} is 0" for name, count in counts.items() if count == 0] if wrote else []


def _check_reasons(outcome: Outcome, _: JsonValue) -> Problems:
    counted = any(
        find_value(usage, path) is not ABSENT for usage in outcome.content.usages for path in _REASONING_COUNTS
    )
    return [] if counted or not _check_reasoning(outcome, None) else ["the model does not reason"]


def _check_tools_called(outcome: Outcome, names: list[str]) -> Problems:
    got = [call.name for call in outcome.content.calls]
    return [] if got == names else [f"the calls are {got}, expected {names}"]


def _check_call_count_at_least(outcome: Outcome, least: int) -> Problems:
    number = len(outcome.content.calls)
    return [] if number >= least else [f"{number} tool calls, expected {least} or more"]


def _check_call_count_at_most(outcome: Outcome, most: int) -> Problems:
    number = len(outcome.content.calls)
    return [] if number <= most else [f"{number} tool calls, expected {most} or fewer"]


def _check_no_calls(outcome: Outcome, _: JsonValue) -> Problems:
    return [f"the tool {call.name} is called" for call in outcome.content.calls]


def _check_arguments(outcome: Outcome, _: JsonValue) -> Problems:
    """The arguments of every call are a JSON object that matches the parameters of the tool."""
    problems: Problems = []
    for call in outcome.content.calls:
        try:
            value = json.loads(call.arguments)
        except ValueError:
            problems.append(f"the arguments of {call.name} are not JSON: {shorten(call.arguments)}")
            continue
        if not isinstance(value, dict):
            problems.append(f"the arguments of {call.name} are not an object: {shorten(value)}")
            continue
        problems += [
            f"{call.name}: {error.message}" for error in _arguments_validator(outcome, call.name).iter_errors(value)
        ]
    return problems


def _arguments_validator(outcome: Outcome, name: str) -> Draft202012Validator:
    tools = outcome.request.get("tools")
    functions = [tool.get("function", tool) for tool in tools if isinstance(tool, dict)] if tools else []
    shapes = [one.get("parameters", one.get("input_schema")) for one in functions if one.get("name") == name]
    found = next(iter(shapes), None)
    return Draft202012Validator(found if isinstance(found, dict) else {})


def _check_call_ids(outcome: Outcome, _: JsonValue) -> Problems:
    ids = [call.id for call in outcome.content.calls]
    problems = ["a tool call has no id"] if any(not id_ for id_ in ids) else []
    return problems + (["two tool calls have the same id"] if len(set(ids)) < len(ids) else [])


def _check_choices(outcome: Outcome, number: int) -> Problems:
    indexes = sorted(outcome.content.choices)
    return [] if indexes == list(range(number)) else [f"the choices are {indexes}, expected 0 to {number - 1}"]


def _check_text_is_json(outcome: Outcome, schema: JsonValue) -> Problems:
    problems: Problems = []
    for text in outcome.content.texts:
        try:
            value = json.loads(text)
        except ValueError:
            problems.append(f"the text is not JSON: {shorten(text)}")
            continue
        problems += [error.message for error in Draft202012Validator(schema or {}).iter_errors(value)]
    return problems or ([] if outcome.content.texts else ["the reply has no text"])


def _check_logprobs(outcome: Outcome, _: JsonValue) -> Problems:
    return (
        []
        if all(choice.logprobs for choice in outcome.content.choices.values())
        else ["a choice has no log probabilities"]
    )


def _check_reasoning(outcome: Outcome, _: JsonValue) -> Problems:
    return (
        [] if any(choice.reasoning for choice in outcome.content.choices.values()) else ["the reply has no reasoning"]
    )


def _check_refusal(outcome: Outcome, _: JsonValue) -> Problems:
    return [] if any(choice.refusal for choice in outcome.content.choices.values()) else ["the reply has no refusal"]


CONTENT_CHECKS: Mapping[str, Rule] = {
    "finish_reason": Rule(
        "every choice has one of these finish reasons (Responses: status or reason)",
        _check_finish_reason,
        _TEXT_LIST,
        needs_model=True,
        find_excuse=excuse_finish_reason,
    ),
    "has_text": Rule(
        "every choice has a text, unless its token limit cut it off",
        _check_has_text,
        needs_model=True,
        find_excuse=excuse_silent_model,
    ),
    "no_text": Rule("no choice has a text", _check_no_text, needs_model=True),
    "text_contains": Rule(
        "the text contains these words, ignoring case",
        _check_contains,
        _TEXT_LIST,
        needs_model=True,
        find_excuse=excuse_cut_answer,
    ),
    "text_is": Rule("every text equals this one exactly", _check_text_is, {"type": "string"}, needs_model=True),
    "reasoning_is": Rule("the reasoning of every choice equals this text", _check_reasoning_is, {"type": "string"}),
    "usage_is": Rule(
        "the last usage has these tokens: of the prompt, of the completion, in total",
        _check_usage_is,
        {"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 3},
    ),
    "calls_are": Rule(
        "exactly these tools are called, with arguments that are these JSON values", _check_calls_are, _CALLS
    ),
    "text_lacks": Rule("the text contains none of these words", _check_lacks, _TEXT_LIST),
    "usage_adds_up": Rule("the reply has a usage of whole numbers whose parts add up to the total", _check_usage),
    "usage_counts": Rule("the usage of a reply with a text counts tokens, not 0", _check_usage_counts),
    "tools_called": Rule(
        "these tools are called, in this order",
        _check_tools_called,
        _TEXT_LIST,
        needs_model=True,
        find_excuse=excuse_cut_answer,
    ),
    "tool_calls": Rule(
        "there are at least that many tool calls",
        _check_call_count_at_least,
        _COUNT,
        needs_model=True,
        find_excuse=excuse_cut_answer,
    ),
    "tool_calls_at_most": Rule("there are at most that many tool calls", _check_call_count_at_most, _COUNT),
    "no_tool_calls": Rule("no tool is called", _check_no_calls, needs_model=True),
    "tool_args_json": Rule(
        "the arguments are JSON objects that match the tool's parameters",
        _check_arguments,
        needs_model=True,
        find_excuse=excuse_cut_answer,
    ),
    "tool_ids_unique": Rule("every tool call has a unique id", _check_call_ids),
    "choices": Rule("there are that many choices, numbered from 0", _check_choices, _COUNT),
    "text_is_json": Rule(
        "every text is JSON and matches the given schema",
        _check_text_is_json,
        {"type": "object"},
        needs_model=True,
        find_excuse=excuse_cut_answer,
    ),
    "has_logprobs": Rule("every choice has log probabilities", _check_logprobs),
    "has_reasoning": Rule("the reply has reasoning", _check_reasoning, needs_model=True, find_excuse=excuse_cut_answer),
    "reasons": Rule("the model reasons: the reply has reasoning, or counts it", _check_reasons, needs_model=True),
    "has_refusal": Rule("the reply has a refusal in its own field", _check_refusal, needs_model=True),
}
