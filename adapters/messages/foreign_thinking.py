"""Leaves the thinking of earlier turns out of a request if the target cannot use it.

Claude verifies the signatures of thinking, and refuses a request with thinking that has none. Other models that are
served with Messages sign nothing, and take what they wrote.
"""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.seals import is_foreign_seal
from dragoman.adapters.paths import Path

__all__ = ["drop_foreign_thinking"]

_SEALS = {"thinking": "signature", "redacted_thinking": "data"}
"""The type of a block -> the key of what its maker verifies or decrypts."""


def drop_foreign_thinking(body: JsonObject, ctx: Context) -> None:
    """Remove thinking that another vendor's model made, in the writer's own copy; all of it if the target's
    `reasoning_replay` is `drop`. A message of which nothing is left is removed too."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not any(map(_has_thinking, messages)):
        return
    kept: list[JsonObject] = []
    moves: list[tuple[Path, Path]] = []
    for i, message in enumerate(messages):
        rest = _keep_own(message, ("messages", i), len(kept), moves, ctx)
        if rest is not None:
            kept.append(rest)
    ctx.receipt.map_paths([move for move in moves if move[0] != move[1]])
    body["messages"] = kept


def _has_thinking(message: JsonObject) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(block.get("type") in _SEALS for block in content)


def _keep_own(
    message: JsonObject, path: Path, place: int, moves: list[tuple[Path, Path]], ctx: Context
) -> JsonObject | None:
    """The message without foreign thinking, None if nothing else is in it. Adds what moves to `place` to `moves`."""
    moves.append((path, ("messages", place)))
    if not _has_thinking(message):
        return message
    content: list[JsonObject] = []
    for k, block in enumerate(message["content"]):
        reason = _find_reason(block, ctx)
        if reason is not None:
            ctx.receipt.record_drop((*path, "content", k), reason)
            continue
        moves.append(((*path, "content", k), ("messages", place, "content", len(content))))
        content.append(block)
    if len(content) == len(message["content"]):
        return message
    return {**message, "content": content} if content else None


def _find_reason(block: JsonObject, ctx: Context) -> str | None:
    """Why the block is removed; None if it is not."""
    key = _SEALS.get(str(block.get("type")))
    if key is None:
        return None
    if ctx.target.reasoning_replay == "drop":
        return "the provider may refuse the reasoning of earlier turns"
    sealed, facts = block.get(key), ctx.target.facts
    if not sealed:
        return "the model refuses thinking without its signature" if facts.is_claude else None
    return "another vendor's model made it" if is_foreign_seal(str(sealed), facts.seals) else None
