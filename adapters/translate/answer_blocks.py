"""What a chat message of the assistant has of the content blocks of Messages, in requests and in replies."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.reasoning import make_sealed_block, make_text_block
from dragoman.adapters.common.carried_keys import CARRIED_KEYS
from dragoman.adapters.paths import Path

from .unused_keys import record_unused_keys

__all__ = ["IN_ORDER", "NO_PLACE", "RANKS", "list_call_keys", "to_reasoning"]

RANKS = {"thinking": 0, "redacted_thinking": 0, "text": 1, "tool_use": 2}
"""The types of blocks that chat has, with the order in which a message has them."""
IN_ORDER = "a chat message has the reasoning, then the text, then the calls"
"""The reason of the change of a block that comes earlier in Messages."""
NO_PLACE = "chat has no place for blocks of the type"

_CALL_KEYS = ("type", "id", "name", "input", *CARRIED_KEYS)
_DIRECT = {"type": "direct"}  # the caller of a tool, if it is the model itself


def list_call_keys(block: JsonObject) -> tuple[str, ...]:
    """The keys of a call that chat has, or that mean nothing."""
    return (*_CALL_KEYS, "caller") if block.get("caller") == _DIRECT else _CALL_KEYS


def to_reasoning(block: JsonObject, path: Path, ctx: Context) -> list[JsonObject]:
    """Convert a block of thinking to chat's blocks of reasoning: none if it says nothing and has no signature."""
    record_unused_keys(block, ("type", "thinking", "signature", "data"), path, ctx, "chat")
    if block["type"] == "redacted_thinking":
        return [make_sealed_block(block["data"])]
    said = block["thinking"] or block.get("signature")
    return [make_text_block(block["thinking"], block.get("signature"))] if said else []
