"""The annotations of a message's text that the hub accepts."""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import JsonObject
from dragoman.adapters.validation import load_validator

__all__ = ["filter_annotations"]

_FILE = "file"


def filter_annotations(given: Any, *, with_files: bool = False) -> list[JsonObject]:
    """The annotations that the hub's schema of chat allows; none if `given` is not a list.

    Providers also send other kinds, and citations without a position. OpenRouter's parsed files are among the result
    only if `with_files`: no other protocol has them.
    """
    valid = [one for one in given if _is_valid(one)] if isinstance(given, list) else []
    return [one for one in valid if with_files or one["type"] != _FILE]


def _is_valid(annotation: Any) -> bool:
    message = {"role": "assistant", "content": None, "refusal": None, "annotations": [annotation]}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    reply = {"id": "x", "object": "chat.completion", "created": 0, "model": "x", "choices": [choice]}
    return load_validator("hub/chat.reply").accepts(reply)
