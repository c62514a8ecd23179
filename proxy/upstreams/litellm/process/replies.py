"""litellm's reply objects as OpenAI's JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.adapters.call import JsonObject

__all__ = ["has_finish_reason", "to_openai"]


def to_openai(reply: Any) -> JsonObject:
    """A reply or a chunk as OpenAI has it: without nulls, and without what litellm adds about itself."""
    body: JsonObject = reply.model_dump(exclude_none=True)
    for choice in body.get("choices", ()):
        for part in (choice, choice.get("message", {}), choice.get("delta", {})):
            part.pop("provider_specific_fields", None)
        if "message" in choice:
            choice["message"].setdefault("content", None)
        if "delta" in choice:
            choice.setdefault("finish_reason", None)
    if "usage" in body and body.get("object") == "chat.completion.chunk" and _is_neutral(body):
        body["choices"] = []
    return body


def has_finish_reason(chunk: Mapping[str, Any]) -> bool:
    return any(choice.get("finish_reason") for choice in chunk.get("choices", ()))


def _is_neutral(chunk: Mapping[str, Any]) -> bool:
    """Whether no choice of the chunk says anything."""
    return all(choice.get("delta") == {} for choice in chunk.get("choices", ())) and not has_finish_reason(chunk)
