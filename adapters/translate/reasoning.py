"""Reasoning items as what a chat message has of them: one text, and one signature."""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.paths import Path

__all__ = ["join_reasoning"]

_REASONING_KEYS = ("content", "summary", "encrypted_content")


def join_reasoning(message: JsonObject, items: list[tuple[JsonObject, Path]], ctx: Context) -> None:
    """Put the items, with their paths, into an assistant's message. Texts are joined; a signature belongs to one of
    them, so among several items the signatures are left out, which is a loss."""
    several = sum(any(item.get(key) for key in _REASONING_KEYS) for item, _ in items) > 1
    for item, path in items:
        content, summary = _join_texts(item.get("content")), _join_texts(item.get("summary"))
        if content and summary:
            ctx.receipt.record_drop((*path, "summary"), "chat has one text of reasoning, which is the content")
        if content or summary:
            message["reasoning_content"] = message.get("reasoning_content", "") + (content or summary)
        sealed = item.get("encrypted_content")
        if sealed and several:
            ctx.receipt.record_drop(
                (*path, "encrypted_content"), "chat has one seal, and here reasoning of several items"
            )
        elif sealed:
            message["reasoning_signature"] = sealed


def _join_texts(parts: Any) -> str:
    return "".join(str(part.get("text", "")) for part in parts or () if isinstance(part, dict))
