"""Brings the reasoning and the content of an assistant's message, or of a delta, into hub form."""

from __future__ import annotations

from dragoman.adapters.call import JsonObject

__all__ = ["flatten_content", "rename_reasoning"]


def flatten_content(holder: JsonObject) -> list[str]:
    """Turn a list of content blocks into a string, and reasoning blocks into `reasoning_content`, in place.

    Returns the types of the blocks that were dropped because the hub cannot hold them.
    """
    blocks = holder.pop("content")
    texts: list[str] = []
    thoughts: list[JsonObject] = []
    unknown: list[str] = []
    for block in blocks:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind in ("reasoning", "thinking"):
            summary = block.get("summary")
            parts = summary if isinstance(summary, list) and summary else [block]
            thoughts += [part for part in parts if isinstance(part, dict)]
        elif kind == "refusal":
            holder["refusal"] = (holder.get("refusal") or "") + str(block.get("refusal", ""))
        elif kind in ("text", "output_text"):
            texts.append(str(block.get("text") or ""))
            unknown += [f"text.{key}" for key in block if key not in ("type", "text")]
        else:
            unknown.append(str(kind))
    if texts:
        holder["content"] = "".join(texts)
    return unknown if _add_reasoning(holder, thoughts) else [*unknown, "reasoning.signature"]


def rename_reasoning(holder: JsonObject) -> bool:
    """Rename `reasoning` to `reasoning_content` in place. Returns True if anything changed."""
    text = holder.get("reasoning")
    if not isinstance(text, str) or "reasoning_content" in holder:
        return False
    holder["reasoning_content"] = holder.pop("reasoning")
    return True


def _add_reasoning(holder: JsonObject, parts: list[JsonObject]) -> bool:
    """Append reasoning. Returns False if signatures were dropped, because each signs one of several joined texts."""
    texts = [str(text) for part in parts if (text := part.get("text") or part.get("thinking"))]
    signatures = [str(part["signature"]) for part in parts if part.get("signature")]
    if texts:
        holder["reasoning_content"] = (holder.get("reasoning_content") or "") + "".join(texts)
    if len(signatures) > 1 or (signatures and len(texts) > 1):
        return False
    if signatures:
        holder["reasoning_signature"] = signatures[0]
    return True
