"""Annotations to a text: in chat under the name of their kind, in Responses flat."""

from __future__ import annotations

from dragoman.adapters.call import JsonObject
from dragoman.adapters.common.annotations import filter_annotations

__all__ = ["NO_ANNOTATION", "to_chat_annotation", "to_responses_annotation"]

NO_ANNOTATION = "an annotation of a kind that the other protocol has not, or without its place"


def to_responses_annotation(annotation: JsonObject) -> JsonObject:
    """A whole annotation of chat in the form of Responses."""
    kind = annotation["type"]
    return {**annotation[kind], "type": kind}


def to_chat_annotation(annotation: JsonObject) -> JsonObject | None:
    """An annotation of Responses in chat's form; None for what chat has not."""
    kind = annotation.get("type")
    inner = {key: value for key, value in annotation.items() if key != "type"}
    return next(iter(filter_annotations([{"type": kind, str(kind): inner}])), None)
