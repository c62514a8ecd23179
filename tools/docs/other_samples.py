"""Replies of completions and embeddings in hub form, each to trace one value in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.adapters.call import JsonObject
from dragoman.adapters.paths import Path

__all__ = ["TEXTS", "VECTORS", "text_chunks", "text_reply", "vector_reply"]

_LOGPROBS = {"tokens": ["token"], "token_logprobs": [-0.25], "top_logprobs": None, "text_offset": [7]}
_TEXT_USAGE = {"prompt_tokens": 11, "completion_tokens": 22, "total_tokens": 33}
_VECTOR_USAGE = {"prompt_tokens": 11, "total_tokens": 11}
_NUMBERS = [0.25, -0.5]
_BASE64 = "AACAPgAAAL8="
"""The same numbers."""


def _choice(index: int = 0, **keys: Any) -> JsonObject:
    return {"index": index, "text": "the text", "logprobs": None, "finish_reason": "stop", **keys}


def _vector(index: int = 0, embedding: Any = _NUMBERS) -> JsonObject:
    return {"object": "embedding", "index": index, "embedding": embedding}


_FIRST: Path = ("choices", 0)
TEXTS: Mapping[str, tuple[JsonObject, Path]] = {
    **{
        f"`finish_reason` `{word}`": ({"choices": [_choice(finish_reason=word)]}, (*_FIRST, "finish_reason"))
        for word in ("stop", "length", "content_filter")
    },
    "`native_finish_reason`": (
        {"choices": [_choice(native_finish_reason="the provider's word")]},
        (*_FIRST, "native_finish_reason"),
    ),
    "`text`": ({}, (*_FIRST, "text")),
    "`logprobs`": ({"choices": [_choice(logprobs=_LOGPROBS)]}, (*_FIRST, "logprobs")),
    "a second choice": ({"choices": [_choice(), _choice(1, text="another")]}, ("choices", 1, "text")),
    "`usage`": ({}, ("usage",)),
    "`usage.prompt_tokens_details`": (
        {"usage": {**_TEXT_USAGE, "prompt_tokens_details": {"cached_tokens": 44}}},
        ("usage", "prompt_tokens_details"),
    ),
    "`usage.completion_tokens_details`": (
        {"usage": {**_TEXT_USAGE, "completion_tokens_details": {"reasoning_tokens": 55}}},
        ("usage", "completion_tokens_details"),
    ),
    "`model`": ({}, ("model",)),
    "`system_fingerprint`": ({"system_fingerprint": "fp_1"}, ("system_fingerprint",)),
    "an unknown key": ({"x_unknown": "unknown"}, ("x_unknown",)),
}
VECTORS: Mapping[str, tuple[JsonObject, Path]] = {
    "`embedding` of numbers": ({}, ("data", 0, "embedding")),
    "`embedding` in base64": ({"data": [_vector(embedding=_BASE64)]}, ("data", 0, "embedding")),
    "`index` of a second vector": ({"data": [_vector(), _vector(1)]}, ("data", 1, "index")),
    "`model`": ({}, ("model",)),
    "`usage`": ({}, ("usage",)),
    "other counts in `usage`": ({"usage": {**_VECTOR_USAGE, "audio_tokens": 66}}, ("usage", "audio_tokens")),
    "an unknown key": ({"x_unknown": "unknown"}, ("x_unknown",)),
}


def text_reply(part: JsonObject) -> JsonObject:
    usual = {"id": "cmpl-1", "object": "text_completion", "created": 1700000000, "model": "the model"}
    return {**usual, "choices": [_choice()], "usage": _TEXT_USAGE, **part}


def text_chunks(whole: JsonObject) -> Iterator[JsonObject]:
    """The same reply as hub chunks: for each choice the text, then the finish reason; usage last."""
    shared = {key: value for key, value in whole.items() if key not in ("choices", "usage")}
    for choice in whole["choices"]:
        yield {**shared, "choices": [{**choice, "finish_reason": None}]}
        yield {**shared, "choices": [{**choice, "text": "", "logprobs": None}]}
    yield {**shared, "choices": [], "usage": whole["usage"]}


def vector_reply(part: JsonObject) -> JsonObject:
    return {"object": "list", "data": [_vector()], "model": "the model", "usage": _VECTOR_USAGE, **part}
