"""The builder of chunks in hub form, and usage."""

from __future__ import annotations

import secrets
import string
import time
from collections.abc import Sequence

from dragoman.adapters.call import JsonObject
from dragoman.local_engine.generation import Usage

__all__ = ["ChunkBuilder", "random_id", "sum_usage"]

LETTERS = string.ascii_letters + string.digits


def random_id(length: int = 24) -> str:
    """A random identifier of letters and digits."""
    return "".join(secrets.choice(LETTERS) for _ in range(length))


class ChunkBuilder:
    """Builds the chunks of one reply, which share id, object, creation time and model."""

    def __init__(self, prefix: str, kind: str, model: str) -> None:
        self._shared: JsonObject = {
            "id": f"{prefix}-{random_id()}",
            "object": kind,
            "created": int(time.time()),
            "model": model,
        }

    def build(self, *choices: JsonObject) -> JsonObject:
        return {**self._shared, "choices": list(choices)}

    def build_usage(self, usage: JsonObject) -> JsonObject:
        return {**self._shared, "choices": [], "usage": usage}


def sum_usage(prompts: Sequence[Sequence[Usage]], reasoning: int | None = None) -> JsonObject:
    """Sum the usage of prompts and their choices. A prompt counts once, with the least cached tokens of its choices."""
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
