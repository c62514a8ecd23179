"""Write reasoning as a block of the content, Databricks' form of it."""

from __future__ import annotations

from dragoman.adapters.call import JsonObject
from dragoman.adapters.chat.reasoning import is_sealed, list_blocks

__all__ = ["REASONING_KEYS", "make_delta_block", "make_reasoning_block"]

REASONING_KEYS = ("reasoning_content", "reasoning_signature", "reasoning_details")
"""The hub's keys of reasoning."""


def make_reasoning_block(message: JsonObject) -> JsonObject | None:
    """The reasoning of a whole message; None if it has none."""
    blocks = list_blocks(message)
    return {"type": "reasoning", "summary": [_make_summary(block) for block in blocks]} if blocks else None


def make_delta_block(delta: JsonObject) -> JsonObject | None:
    """The reasoning of a delta, whose text and signature are pieces; None if it has none."""
    details = list_blocks({"reasoning_details": delta.get("reasoning_details")})
    pieces = {key: value for key, value in delta.items() if key != "reasoning_details"}
    blocks = [*list_blocks(pieces), *(block for block in details if is_sealed(block))]
    return {"type": "reasoning", "summary": [_make_summary(block) for block in blocks]} if blocks else None


def _make_summary(block: JsonObject) -> JsonObject:
    if is_sealed(block):
        return {"type": "summary_encrypted_text", "data": block["data"]}
    signature = {"signature": block["signature"]} if block.get("signature") else {}
    return {"type": "summary_text", "text": block["text"], **signature}
