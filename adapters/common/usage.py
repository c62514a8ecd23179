"""Normalizes and adds up the token counts that providers report."""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import JsonObject
from dragoman.adapters.counts import is_count

__all__ = ["NO_COUNTS", "UNASKED_USAGE", "UsageTally", "normalize_usage", "select_counts", "sum_usage"]

NO_COUNTS = "it lacks token counts"
UNASKED_USAGE = "the client did not ask for the usage of a stream"

_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
_DETAILS = ("prompt_tokens_details", "completion_tokens_details")
_PARTS = frozenset((*_DETAILS, "reasoning_tokens"))
_OTHER_NAMES = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}


def normalize_usage(reported: Any) -> JsonObject | None:
    """Usage in hub form: the three token counts and their details; None if the counts are missing or invalid.

    One missing count is computed from the other two. Nulls and invalid details are removed. Databricks' flat
    `reasoning_tokens` moves into `completion_tokens_details`.
    """
    if not isinstance(reported, dict):
        return None
    if _is_hub_form(reported):
        return reported
    usage: JsonObject = {
        _OTHER_NAMES.get(str(key), str(key)): value for key, value in reported.items() if value is not None
    }
    counts = [_count(usage.get(name)) for name in _COUNTS]
    prompt, completion, total = _complete_counts(counts)
    if prompt is None or completion is None or total is None:
        return None
    usage.update(prompt_tokens=prompt, completion_tokens=completion, total_tokens=total)
    for name in _list_invalid_details(usage):
        given = usage.pop(name)
        if isinstance(given, dict):
            usage[name] = {key: value for key, value in given.items() if is_count(value)}
    thought = usage.pop("reasoning_tokens", None)
    if is_count(thought):
        usage["completion_tokens_details"] = {"reasoning_tokens": thought, **usage.get("completion_tokens_details", {})}
    return usage


def select_counts(reported: Any) -> JsonObject:
    """The counts of a usage under the provider's names, those of its details included; empty if it has none."""
    found: JsonObject = {}
    for name, value in reported.items() if isinstance(reported, dict) else ():
        if is_count(value):
            found[name] = value
        elif counts := select_counts(value):
            found[name] = counts
    return found


def sum_usage(usages: list[JsonObject]) -> JsonObject:
    """Add up the counts of several replies, details included. Of values that are not counts, the last one is kept."""
    total: JsonObject = {}
    for usage in usages:
        for name, value in usage.items():
            before = total.get(name)
            if isinstance(value, dict):
                total[name] = sum_usage([before, value] if isinstance(before, dict) else [value])
            else:
                total[name] = value + (before or 0) if _count(value) is not None else value
    return total


class UsageTally:
    """The usage of one stream.

    Counts in a chunk with choices belong to its first choice, and replace earlier ones. Counts in an event without
    choices are those of the whole reply. `choices_per_prompt` is the number of choices per prompt, if the request may
    have several prompts.
    """

    def __init__(self, choices_per_prompt: int | None = None) -> None:
        self._choices_per_prompt = choices_per_prompt
        self._whole: JsonObject | None = None
        self._by_choice: dict[int, JsonObject] = {}
        self.is_combined = False
        """Whether the total is not what one event reported."""

    def add(self, reported: Any, choices: list[JsonObject]) -> bool:
        """Add the usage that an event with these choices reports, in any provider's form. Returns False for another
        form, which is ignored."""
        usage = normalize_usage(reported)
        if usage is None:
            return False
        known = [self._whole, *self._by_choice.values()]
        self.is_combined = self.is_combined or any(one not in (None, usage) for one in known) or usage != reported
        if choices:
            self._by_choice[choices[0].get("index", 0)] = usage
        else:
            self._whole = usage
        return True

    def total(self) -> JsonObject | None:
        """The usage of the whole stream: each prompt counts once, every choice's completion counts."""
        if self._whole is not None or not self._by_choice:
            return self._whole
        parts = list(self._by_choice.values())
        if len(parts) == 1:
            return parts[0]
        self.is_combined = True
        prompt = sum(self._count_prompt_tokens().values())
        completion = sum(part["completion_tokens"] for part in parts)
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}

    def _count_prompt_tokens(self) -> dict[int, int]:
        """The number of tokens of each prompt, by its position."""
        found: dict[int, int] = {}
        for index, part in self._by_choice.items():
            prompt = index // self._choices_per_prompt if self._choices_per_prompt else 0
            found[prompt] = max(found.get(prompt, 0), part["prompt_tokens"])
        return found


def _is_hub_form(usage: JsonObject) -> bool:
    prompt, completion, total = map(usage.get, _COUNTS)
    return (
        type(prompt) is type(completion) is type(total) is int
        and min(prompt, completion, total) >= 0
        and None not in usage.values()
        and (_PARTS.isdisjoint(usage) or ("reasoning_tokens" not in usage and not _list_invalid_details(usage)))
    )


def _list_invalid_details(usage: JsonObject) -> list[str]:
    return [name for name in _DETAILS if name in usage and not _are_counts(usage[name])]


def _are_counts(details: Any) -> bool:
    return isinstance(details, dict) and all(map(is_count, details.values()))


def _count(value: Any) -> int | None:
    return int(value) if is_count(value) else None


def _complete_counts(counts: list[int | None]) -> list[int | None]:
    prompt, completion, total = counts
    if total is None and prompt is not None and completion is not None:
        total = prompt + completion
    elif completion is None and prompt is not None and total is not None:
        completion = max(total - prompt, 0)
    elif prompt is None and completion is not None and total is not None:
        prompt = max(total - completion, 0)
    return [prompt, completion, total]
