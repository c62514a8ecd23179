"""Converts annotations of a text. Chat nests them under the name of their kind, Responses has flat objects."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.annotations import filter_annotations
from dragoman.adapters.paths import Path

from .unused_keys import record_unused_keys

__all__ = ["NO_ANNOTATION", "to_chat_annotation", "to_responses_annotation"]

_POSITIONS = ("start_index", "end_index")

NO_ANNOTATION = "the other protocol does not support this annotation, or it has no position"


def to_responses_annotation(annotation: JsonObject, path: Path, ctx: Context, offset: int = 0) -> JsonObject:
    """Convert a valid annotation of chat, which is at `path`, to Responses.

    `offset` is the number of characters in the content before the part.
    """
    kind = annotation["type"]
    record_unused_keys(annotation, ("type", "index", kind), path, ctx, "Responses")
    made = {**annotation[kind], "type": kind}
    return {**made, **{key: max(0, made[key] - offset) for key in _POSITIONS}} if offset else made


def to_chat_annotation(annotation: JsonObject, offset: int = 0) -> JsonObject | None:
    """Convert an annotation of Responses to chat; None if chat does not support it.

    `offset` is the number of characters in the content before the annotated text.
    """
    kind = annotation.get("type")
    inner = {key: value for key, value in annotation.items() if key != "type"}
    found = next(iter(filter_annotations([{"type": kind, str(kind): inner}])), None)
    for key in _POSITIONS if found is not None else ():
        inner[key] += offset
    return found
