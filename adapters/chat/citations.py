"""Citations of an answer's text, in the hub and in content blocks.

In content blocks, a block of text has the citations of its whole text. In the hub the text is one string, so each
citation has its position there: {start_index, end_index, citation}, in characters, with the provider's own object.
A citation that names an address is an annotation too, which is OpenAI's form.

Streamed blocks have no end: if a piece has citations and no text, they belong to the text around it, and their position
is the end of the text so far.

Sources: Databricks, external models; Anthropic, Citations; Anthropic, Web search; Anthropic, Search results; OpenAI
OpenAPI 2.3, ChatCompletionResponseMessage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.changes import Weight
from dragoman.adapters.paths import Path, lookup

from .messages import convert_messages

__all__ = [
    "CITATIONS",
    "add_citations",
    "annotate",
    "cite_blocks",
    "drop_citations",
    "drop_number",
    "list_annotations",
    "move_citations",
    "number_entries",
    "place_citations",
    "take_citations",
    "unwrap_citations",
]

CITATIONS = "citations"
_INDEX = "index"  # of an object in a list of a stream
_ADDRESSES: tuple[Path, ...] = (("url",), ("source",), ("location", "web", "url"))
_TITLES = ("title", "document_title")
_SCHEMES = ("http://", "https://")


class _Cited(NamedTuple):
    """A range of a text, and the provider's citations of it."""

    start: int
    end: int
    citations: list[JsonObject]


def unwrap_citations(given: Any) -> list[Any]:
    """The citations that a block gives; some versions of the service wrap the list in another one."""
    listed = given if isinstance(given, list) else [] if given is None else [given]
    return [one for item in listed for one in (item if isinstance(item, list) else [item])]


def place_citations(given: list[Any], start: int, text: str) -> list[JsonObject]:
    """The citations of a block in hub form; `start` is the position of its text in the content.

    Values that are not objects are left out.
    """
    place = {"start_index": start, "end_index": start + len(text)}
    return [{**place, "citation": one} for one in given if isinstance(one, dict)]


def list_annotations(citations: Any) -> list[JsonObject]:
    """The annotations that say the same as those of the citations in hub form that name an address."""
    return [made for one in _list_hub_citations(citations) if (made := _make_annotation(one)) is not None]


def add_citations(holder: JsonObject, citations: list[JsonObject]) -> None:
    """Add citations in hub form to a message or delta, in place."""
    _extend(holder, CITATIONS, citations)


def annotate(holder: JsonObject) -> None:
    """Add the annotations of its citations to a message or delta, in place."""
    _extend(holder, "annotations", list_annotations(holder.get(CITATIONS)))


def number_entries(delta: JsonObject, counts: Counter[str]) -> None:
    """Number the citations and annotations of a delta, in place; `counts` are those of the stream so far.

    OpenAI's SDK for Python joins the lists of deltas by the `index` of their objects, and fails if there is none.
    """
    for key in (CITATIONS, "annotations"):
        if given := delta.get(key):
            delta[key] = [{**one, _INDEX: counts[key] + k} for k, one in enumerate(given)]
            counts[key] += len(given)


def drop_number(one: Any) -> Any:
    """A citation or an annotation as a whole message has it."""
    return {key: value for key, value in one.items() if key != _INDEX} if isinstance(one, dict) else one


def _extend(holder: JsonObject, key: str, values: list[JsonObject]) -> None:
    if values:
        given = holder.get(key)
        holder[key] = [*(given if isinstance(given, list) else ()), *values]


def move_citations(holder: JsonObject, distance: int) -> None:
    """Move the positions of a message's citations and annotations, after text was removed before them, in place."""
    cited = [one for one in holder.get("annotations") or () if isinstance(one, dict)]
    places = [one.get("url_citation") for one in cited] + _list_hub_citations(holder.get(CITATIONS))
    for place in places:
        for key in ("start_index", "end_index"):
            if isinstance(place, dict) and type(place.get(key)) is int:
                place[key] = max(0, place[key] + distance)


def take_citations(holder: JsonObject) -> list[JsonObject]:
    """Remove the citations in hub form from a copy of a message or delta, and the annotations that repeat them.

    Citations and annotations in other forms stay.
    """
    found = _list_hub_citations(holder.get(CITATIONS))
    if found:
        repeated = list_annotations(found)
        _keep(holder, CITATIONS, [one for one in holder[CITATIONS] if one not in found])
        if isinstance(holder.get("annotations"), list):
            _keep(holder, "annotations", [one for one in holder["annotations"] if drop_number(one) not in repeated])
    return found


def cite_blocks(text: str, citations: list[JsonObject], start: int = 0) -> list[JsonObject]:
    """Split a text into content blocks, each with the citations of its range.

    `start` is the position of the text in the content. A range outside of the text becomes an empty block.
    """
    blocks: list[JsonObject] = []
    at = 0
    for cited in _list_ranges(citations, start, len(text)):
        if cited.start > at:
            blocks.append({"type": "text", "text": text[at : cited.start]})
        blocks.append({"type": "text", "text": text[max(at, cited.start) : cited.end], CITATIONS: cited.citations})
        at = max(at, cited.end)
    return [*blocks, {"type": "text", "text": text[at:]}] if at < len(text) else blocks


def drop_citations(messages: list[JsonObject], ctx: Context) -> list[JsonObject]:
    """Drop the citations of earlier answers, for targets that do not have them."""

    def convert(message: JsonObject, path: Path) -> JsonObject:
        message = dict(message)
        _drop(message, path, ctx)
        if _has_cited_parts(message):
            parts = [dict(part) if isinstance(part, dict) else part for part in message["content"]]
            for i, part in enumerate(parts):
                if isinstance(part, dict):
                    _drop(part, (*path, "content", i), ctx)
            message["content"] = parts
        return message

    cited = [i for i, message in enumerate(messages) if CITATIONS in message or _has_cited_parts(message)]
    return convert_messages(messages, cited, convert)


def _drop(holder: JsonObject, path: Path, ctx: Context) -> None:
    if CITATIONS in holder:
        weight: Weight = "loss" if holder.pop(CITATIONS) else "form"
        ctx.receipt.record_drop((*path, CITATIONS), "the target does not read the citations of earlier answers", weight)


def _has_cited_parts(message: JsonObject) -> bool:
    content = message.get("content")
    return type(content) is list and any(isinstance(part, dict) and CITATIONS in part for part in content)


def _list_hub_citations(given: Any) -> list[JsonObject]:
    return [one for one in given if _is_hub_citation(one)] if isinstance(given, list) else []


def _is_hub_citation(one: Any) -> bool:
    if not isinstance(one, dict) or not isinstance(one.get("citation"), dict):
        return False
    return type(one.get("start_index")) is int and type(one.get("end_index")) is int


def _make_annotation(one: JsonObject) -> JsonObject | None:
    citation = one["citation"]
    url = _first_text(lookup(citation, path) for path in _ADDRESSES)
    if not url.startswith(_SCHEMES):
        return None
    title = _first_text(citation.get(key) for key in _TITLES)
    place = {"start_index": one["start_index"], "end_index": one["end_index"]}
    return {"type": "url_citation", "url_citation": {"url": url, "title": title, **place}}


def _first_text(values: Iterable[Any]) -> str:
    return next((value for value in values if isinstance(value, str) and value), "")


def _keep(holder: JsonObject, key: str, values: list[Any]) -> None:
    if values:
        holder[key] = values
    else:
        del holder[key]


def _list_ranges(citations: list[JsonObject], start: int, length: int) -> list[_Cited]:
    """The ranges of the citations in a text that begins at `start`, in order."""
    found: dict[tuple[int, int], _Cited] = {}
    for one in citations:
        first, last = (min(max(one[key] - start, 0), length) for key in ("start_index", "end_index"))
        last = max(first, last)
        found.setdefault((first, last), _Cited(first, last, [])).citations.append(one["citation"])
    return [found[place] for place in sorted(found)]
