"""The outer form of the hub's events, and usage."""

from __future__ import annotations

import secrets
import string
import time
from collections.abc import Sequence

from dragoman.adapters.call import JsonObject

from .requests import Usage

__all__ = ["Envelope", "random_id", "usage"]

LETTERS = string.ascii_letters + string.digits


def random_id(length: int = 24) -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(length))


class Envelope:
    """What all events of one reply share."""

    def __init__(self, prefix: str, kind: str, model: str) -> None:
        self._shared: JsonObject = {
            "id": f"{prefix}-{random_id()}",
            "object": kind,
            "created": int(time.time()),
            "model": model,
        }

    def event(self, *choices: JsonObject) -> JsonObject:
        return {**self._shared, "choices": list(choices)}

    def usage(self, found: JsonObject) -> JsonObject:
        return {**self._shared, "choices": [], "usage": found}


def usage(prompts: Sequence[Sequence[Usage]], reasoning: int | None = None) -> JsonObject:
    """The usage of some prompts, each with its choices: a prompt counts once, cached is what all its choices found."""
    prompt = sum(choices[0].prompt for choices in prompts)
    completion = sum(choice.completion for choices in prompts for choice in choices)
    found: JsonObject = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": sum(min(c.cached for c in choices) for choices in prompts)},
    }
    if reasoning is not None:
        found["completion_tokens_details"] = {"reasoning_tokens": reasoning}
    return found
