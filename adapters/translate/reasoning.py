"""Joins reasoning items into the one text and the one signature that a chat message can hold."""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.paths import Path

__all__ = ["join_reasoning"]

_REASONING_KEYS = ("content", "summary", "encrypted_content")


def join_reasoning(message: JsonObject, items: list[tuple[JsonObject, Path]], ctx: Context) -> None:
    """Put reasoning items, each with its path, into an assistant's message, in place.

    Texts are joined. A signature signs one text, so if there are several items, signatures are dropped as a loss.
    """
    several = sum(any(item.get(key) for key in _REASONING_KEYS) for item, _ in items) > 1
    for item, path in items:
        content, summary = _join_texts(item.get("content")), _join_texts(item.get("summary"))
        if content and summary:
            ctx.receipt.record_drop(
                (*path, "summary"), "a chat message has one text of reasoning, and the content is used"
            )
        if content or summary:
            message["reasoning_content"] = message.get("reasoning_content", "") + (content or summary)
        sealed = item.get("encrypted_content")
        if sealed and several:
            ctx.receipt.record_drop(
                (*path, "encrypted_content"), "a chat message has one signature, and several items have reasoning"
            )
        elif sealed:
            message["reasoning_signature"] = sealed


def _join_texts(parts: Any) -> str:
    return "".join(str(part.get("text", "")) for part in parts or () if isinstance(part, dict))
