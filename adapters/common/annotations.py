"""Annotations to a message's text: which of those that providers send are valid."""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import JsonObject
from dragoman.adapters.validation import load_validator

__all__ = ["filter_annotations"]


def filter_annotations(given: Any) -> list[JsonObject]:
    """Those that the hub's schema of chat allows. Servers send other kinds too, and citations without a place."""
    return [one for one in given if _is_valid(one)] if isinstance(given, list) else []


def _is_valid(annotation: Any) -> bool:
    message = {"role": "assistant", "content": None, "refusal": None, "annotations": [annotation]}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    reply = {"id": "x", "object": "chat.completion", "created": 0, "model": "x", "choices": [choice]}
    return load_validator("hub/chat.reply").accepts(reply)
