"""The annotations of output texts, for providers that omit keys of theirs or have kinds that the hub does not have.

A `url_citation` without a position is one of the whole text: xAI's sources have only an address.

Sources: xAI API reference, citations; OpenAI OpenAPI 2.3, Annotation.
"""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.paths import Path
from dragoman.adapters.validation import load_validator

from .events import annotation_added

__all__ = ["UNKNOWN_ANNOTATION", "complete_annotations", "fill_annotation", "is_annotation"]

UNKNOWN_ANNOTATION = "Responses does not have this annotation"
"""The reason of the change, for receipts."""


def fill_annotation(annotation: Any, length: int) -> None:
    """Fill the keys of a citation of an address, in place; `length` is that of the text, in characters."""
    if isinstance(annotation, dict) and annotation.get("type") == "url_citation":
        defaults = {"title": "", "start_index": 0, "end_index": length}
        annotation.update({key: value for key, value in defaults.items() if annotation.get(key) is None})


def is_annotation(given: Any) -> bool:
    """Whether the hub has this annotation."""
    event = {**annotation_added("x", 0, 0, 0, given), "sequence_number": 0}
    return load_validator("hub/responses.event").accepts(event)


def complete_annotations(part: JsonObject, path: Path, ctx: Context) -> None:
    """Fill the annotations of a part of output text, in place, and drop those that the hub does not have."""
    text, given = part.get("text"), part.get("annotations")
    if not isinstance(given, list):
        return
    for annotation in given:
        fill_annotation(annotation, len(text) if isinstance(text, str) else 0)
    kept = [annotation for annotation in given if is_annotation(annotation)]
    if kept != given:
        part["annotations"] = kept
        ctx.receipt.record_drop((*path, "annotations"), UNKNOWN_ANNOTATION)
