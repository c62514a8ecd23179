"""Brings the reasoning and the content of an assistant's message, or of a delta, into hub form."""

from __future__ import annotations

from dragoman.adapters.call import JsonObject

from .citations import CITATIONS, add_citations, place_citations, unwrap_citations
from .reasoning import ReasoningBlocks, is_reasoning, read_blocks, set_reasoning

__all__ = ["flatten_content", "read_details", "rename_reasoning"]

_READABLE = ("reasoning_content", "reasoning_signature")
_TEXT_KEYS = ("type", "text", CITATIONS)


def flatten_content(holder: JsonObject, state: ReasoningBlocks | None = None, start: int = 0) -> list[str]:
    """Turn a list of content blocks into a string, and reasoning blocks into the hub's keys of reasoning, in place.

    `state` follows the reasoning of a choice if `holder` is a delta, whose text begins at the position `start` of the
    content. The citations of blocks get positions. Returns the types of the blocks that were dropped because the hub
    cannot hold them.
    """
    blocks = holder.pop("content")
    texts: list[str] = []
    unknown: list[str] = []
    citations: list[JsonObject] = []
    for block in blocks:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "refusal":
            holder["refusal"] = (holder.get("refusal") or "") + str(block.get("refusal", ""))
        elif kind in ("text", "output_text"):
            text = str(block.get("text") or "")
            given = unwrap_citations(block.get(CITATIONS))
            found = place_citations(given, start, text)
            unknown += [f"text.{CITATIONS}"] * (len(found) < len(given))
            citations += found
            texts.append(text)
            start += len(text)
            unknown += [f"text.{key}" for key in block if key not in _TEXT_KEYS]
        elif not is_reasoning(kind):
            unknown.append(str(kind))
    if texts:
        holder["content"] = "".join(texts)
    add_citations(holder, citations)
    thoughts = read_blocks(blocks)
    if state is not None:
        state.add(holder, thoughts)
    elif thoughts:
        set_reasoning(holder, thoughts)
    return unknown


def rename_reasoning(holder: JsonObject) -> bool:
    """Rename `reasoning` to `reasoning_content` in place; if it has both, they are the same. Returns True if anything
    changed."""
    text = holder.get("reasoning")
    if not isinstance(text, str) or holder.get("reasoning_content") not in (None, "", text):
        return False
    holder["reasoning_content"] = holder.pop("reasoning")
    return True


def read_details(holder: JsonObject) -> bool:
    """Fill in the text and the signature of `reasoning_details`, in place, if a provider sends only the details.

    Returns True if anything changed: details that are no list of objects are removed.
    """
    given = holder["reasoning_details"]
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        del holder["reasoning_details"]
        return True
    found: JsonObject = {}
    set_reasoning(found, read_blocks(given))
    missing = {key: found[key] for key in _READABLE if found.get(key) and not holder.get(key)}
    holder.update(missing)
    return bool(missing)
