"""Converts reasoning between the items of Responses and the keys of a chat message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.reasoning import (
    SEPARATOR,
    is_sealed,
    list_blocks,
    make_sealed_block,
    make_text_block,
    set_reasoning,
)
from dragoman.adapters.paths import Path

__all__ = ["ONE_REASONING", "has_parts", "join_reasoning", "list_reasoning"]

ONE_REASONING = "a chat message has one text of reasoning: not the content and the summary of an item"


def has_parts(item: JsonObject) -> bool:
    """Whether a reasoning item has readable parts, so that its encrypted content signs them."""
    return bool(item.get("content") or item.get("summary"))


def join_reasoning(message: JsonObject, items: list[tuple[JsonObject, Path]], ctx: Context) -> None:
    """Put reasoning items, each with its path, into an assistant's message, in place.

    The texts of items, and of an item's parts, are joined by an empty line.
    """
    blocks: list[JsonObject] = []
    for item, path in items:
        content, summary = _join_texts(item.get("content")), _join_texts(item.get("summary"))
        if content and summary:
            ctx.receipt.record_drop((*path, "summary"), ONE_REASONING)
        sealed = item.get("encrypted_content")
        if content or summary or (sealed and has_parts(item)):
            blocks.append(make_text_block(content or summary, sealed))
        elif sealed:
            blocks.append(make_sealed_block(sealed))
    set_reasoning(message, blocks)


def _join_texts(parts: Any) -> str:
    return SEPARATOR.join(
        text for part in parts or () if isinstance(part, dict) and (text := str(part.get("text", "")))
    )


def list_reasoning(message: JsonObject, *, summary: bool = False) -> Iterator[JsonObject]:
    """The reasoning of a chat message as items without ids: one for each block. `summary`: texts are summaries."""
    kind, place = ("summary_text", "summary") if summary else ("reasoning_text", "content")
    for block in list_blocks(message):
        item: JsonObject = {"type": "reasoning", "summary": []}
        sealed = block["data"] if is_sealed(block) else block.get("signature")
        if not is_sealed(block):
            item[place] = [{"type": kind, "text": block["text"]}]
        if sealed:
            item["encrypted_content"] = sealed
        yield item
