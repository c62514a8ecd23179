"""What a Databricks serving endpoint is asked for: one address serves every protocol, and the body tells which."""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import JsonObject

__all__ = ["protocol_of"]

_RESPONSES_ONLY = frozenset(
    {
        "instructions",
        "max_output_tokens",
        "text",
        "reasoning",
        "include",
        "truncation",
        "previous_response_id",
        "prompt",
    }
)


def protocol_of(body: JsonObject) -> str:
    """`messages` asks for chat, `prompt` for completions, `input` for embeddings, or for responses where anything in it
    is theirs alone."""
    if "messages" in body or not body.keys() & {"prompt", "input"}:
        return "chat"
    if "input" not in body:
        return "completions"
    responses = not _RESPONSES_ONLY.isdisjoint(body) or _has_objects(body["input"])
    return "responses" if responses else "embeddings"


def _has_objects(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(item, dict) for item in value)
