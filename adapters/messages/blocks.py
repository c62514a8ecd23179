"""Brings the content blocks of a message into hub form: those of whole replies, and those that begin in a stream.

Blocks whose type is unknown stay as they are: betas add types without notice.
"""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.reply_validation import invalid_reply
from dragoman.adapters.common.stream_changes import ChangeRecorder
from dragoman.adapters.paths import Path

from .events import TOOL_USES

__all__ = ["BlockNormalizer", "has_calls"]

_KINDS = {"text": "text", "thinking": "thinking", "data": "redacted_thinking", "name": "tool_use"}
"""A key of a block without a type -> its type."""
_TEXTS = {"text": ("text",), "thinking": ("thinking", "signature")}


class BlockNormalizer:
    """The normalizer of the blocks of one message."""

    def __init__(self, changes: ChangeRecorder, ctx: Context) -> None:
        self._changes = changes
        self._ctx = ctx
        self._ids: set[str] = set()

    def normalize(self, block: JsonObject, index: int) -> bool:
        """Normalize a block in place. Returns True if nothing changed. Inputs that are no objects stay as they are.

        Raises Fault if nobody knows what the block is.
        """
        path: Path = ("content", index)
        same = self._set_type(block, path)
        kind = block.get("type")
        if not isinstance(kind, str):
            raise invalid_reply(f"content[{index}] has no type")
        for key in _TEXTS.get(kind, ()):
            if block.get(key) is None:
                block[key], same = "", False
                self._changes.record_fill((*path, key), "the provider gave none")
        if kind in TOOL_USES:
            same &= self._set_id(block, path)
            if block.get("input") is None:
                block["input"], same = {}, False
                self._changes.record_fill((*path, "input"), "the provider gave none")
        return same

    def _set_type(self, block: JsonObject, path: Path) -> bool:
        kind = (
            None if isinstance(block.get("type"), str) else next((_KINDS[key] for key in block if key in _KINDS), None)
        )
        if kind is not None:
            block["type"] = kind
            self._changes.record_fill((*path, "type"), "the provider gave none")
        return kind is None

    def _set_id(self, block: JsonObject, path: Path) -> bool:
        given = block.get("id")
        if isinstance(given, str) and given and given not in self._ids:
            self._ids.add(given)
            return True
        block["id"] = self._ctx.new_id("toolu")
        self._ids.add(block["id"])
        self._changes.record_conversion((*path, "id"), "each call has an id of its own")
        return False


def has_calls(blocks: list[JsonObject]) -> bool:
    """Whether one of the blocks is a call of a client's tool."""
    return any(block.get("type") == "tool_use" for block in blocks)
