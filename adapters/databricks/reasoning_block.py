"""Write reasoning as a block of the content, Databricks' form of it."""

from __future__ import annotations

from dragoman.adapters.call import JsonObject
from dragoman.adapters.chat.reasoning import SEPARATOR, is_sealed, list_blocks, read_blocks

__all__ = ["REASONING_KEYS", "DeltaBlocks", "make_reasoning_block"]

REASONING_KEYS = ("reasoning_content", "reasoning_signature", "reasoning_details")
"""The hub's keys of reasoning."""


def make_reasoning_block(message: JsonObject) -> JsonObject | None:
    """The reasoning of a whole message; None if it has none."""
    blocks = list_blocks(message)
    return {"type": "reasoning", "summary": [_make_summary(block) for block in blocks]} if blocks else None


class DeltaBlocks:
    """Makes the reasoning blocks of one stream's deltas, whose texts and signatures are pieces.

    It also counts the characters of the content, because citations have positions there.
    """

    def __init__(self) -> None:
        self._ended: dict[int, bool] = {}  # choice -> whether the block of its last text has ended
        self._lengths: dict[int, int] = {}  # choice -> characters of its content so far

    def make(self, index: int, delta: JsonObject) -> JsonObject | None:
        """The reasoning of a delta of the choice `index`; None if it has none."""
        text = delta.get("reasoning_content")
        if isinstance(text, str) and self._ended.get(index):
            text = text.removeprefix(SEPARATOR)  # which the reader puts between two blocks
        pieces = {"reasoning_content": text, "reasoning_signature": delta.get("reasoning_signature")}
        sealed = [block for block in read_blocks(delta.get("reasoning_details")) if is_sealed(block)]
        blocks = [*list_blocks(pieces), *sealed]
        if text or (blocks and index in self._ended):
            self._ended[index] = bool(sealed or pieces["reasoning_signature"])
        return {"type": "reasoning", "summary": [_make_summary(block) for block in blocks]} if blocks else None

    def place_text(self, index: int, delta: JsonObject) -> int:
        """Where the text of a delta of the choice `index` begins in the content."""
        start, text = self._lengths.get(index, 0), delta.get("content")
        if isinstance(text, str):
            self._lengths[index] = start + len(text)
        return start


def _make_summary(block: JsonObject) -> JsonObject:
    if is_sealed(block):
        return {"type": "summary_encrypted_text", "data": block["data"]}
    signature = {"signature": block["signature"]} if block.get("signature") else {}
    return {"type": "summary_text", "text": block["text"], **signature}
