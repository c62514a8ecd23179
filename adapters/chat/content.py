"""Reasoning and content of an assistant's message, or of a delta, in hub form."""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import JsonObject

__all__ = ["flatten_content", "rename_reasoning"]


def flatten_content(holder: JsonObject) -> list[str]:
    """Content given as a list of blocks becomes a string, reasoning blocks `reasoning_content`.

    Returns the types of the blocks that the hub has no place for; they are left out.
    """
    blocks = holder.pop("content")
    texts: list[str] = []
    unknown: list[str] = []
    for block in blocks:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind in ("reasoning", "thinking"):
            _add_reasoning(holder, block)
        elif kind == "refusal":
            holder["refusal"] = (holder.get("refusal") or "") + str(block.get("refusal", ""))
        elif kind in ("text", "output_text"):
            texts.append(str(block.get("text") or ""))
            unknown += [f"text.{key}" for key in block if key not in ("type", "text")]
        else:
            unknown.append(str(kind))
    if texts:
        holder["content"] = "".join(texts)
    return unknown


def rename_reasoning(holder: JsonObject) -> bool:
    """`reasoning` under its other name. True where something changed."""
    text = holder.get("reasoning")
    if not isinstance(text, str) or "reasoning_content" in holder:
        return False
    holder["reasoning_content"] = holder.pop("reasoning")
    return True


def _add_reasoning(holder: JsonObject, block: JsonObject) -> None:
    parts: list[Any] = block.get("summary") or [block]
    for part in parts:
        if not isinstance(part, dict):
            continue
        text = part.get("text") or part.get("thinking")
        if text:
            holder["reasoning_content"] = (holder.get("reasoning_content") or "") + str(text)
        if part.get("signature"):
            holder["reasoning_signature"] = str(part["signature"])
