"""Converts citations between a text block of Messages, and a message of chat.

The hub keeps the provider's own citation next to its position (`chat.citations`), so citations of Anthropic's models
come back as they were. An annotation with an address that repeats no citation becomes the citation of a web search
result, without the text that it cites and without the sealed index that only Anthropic can make.

Sources: Anthropic, Citations; anthropic 2.12.0, TextCitation; OpenAI OpenAPI 2.3, ChatCompletionResponseMessage.
"""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.citations import take_citations
from dragoman.adapters.common.annotations import filter_annotations
from dragoman.adapters.paths import Path

__all__ = ["PlacedCitation", "list_placed_citations"]

PlacedCitation = JsonObject
"""{start_index, end_index, citation}: a citation of Messages, and the range of the content that has it."""

_OWN = "Messages has no place for this citation"
_TYPES = (
    "char_location",
    "page_location",
    "content_block_location",
    "web_search_result_location",
    "search_result_location",
)


def list_placed_citations(holder: JsonObject, path: Path, ctx: Context) -> list[PlacedCitation]:
    """The citations and annotations of a chat message or delta at `path`, as citations of Messages with their ranges.

    What Messages has no place for is recorded.
    """
    rest = {key: holder[key] for key in ("citations", "annotations") if holder.get(key)}
    if not rest:
        return []
    placed = []
    for one in take_citations(rest):
        if one["citation"].get("type") in _TYPES:
            placed.append(one)
        elif isinstance(one["citation"].get("url"), str):
            placed.append({**one, "citation": _cite_page(one["citation"])})
        else:
            ctx.receipt.record_drop((*path, "citations"), _OWN)
    if rest.get("citations"):
        ctx.receipt.record_drop((*path, "citations"), _OWN)
    return placed + _read_annotations(rest.get("annotations"), path, ctx)


def _read_annotations(given: Any, path: Path, ctx: Context) -> list[PlacedCitation]:
    whole = [one for one in filter_annotations(given) if one["type"] == "url_citation"]
    if given and whole != given:
        ctx.receipt.record_drop((*path, "annotations"), _OWN)
    cited = [one["url_citation"] for one in whole]
    return [
        {"start_index": one["start_index"], "end_index": one["end_index"], "citation": _cite_page(one)} for one in cited
    ]


def _cite_page(found: JsonObject) -> JsonObject:
    title, cited = found.get("title"), found.get("cited_text")
    return {
        "type": "web_search_result_location",
        "url": found["url"],
        "title": title if isinstance(title, str) else None,
        "cited_text": cited if isinstance(cited, str) else "",
        "encrypted_index": "",
    }
