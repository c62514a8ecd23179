"""Chat replies in hub form, each to trace one value in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.adapters.call import JsonObject
from dragoman.adapters.paths import Path

__all__ = ["SAMPLES", "reply_chunks", "whole_reply"]

_CALL = {"id": "call_1", "type": "function", "function": {"name": "tool_name", "arguments": '{"an":"argument"}'}}
_CUSTOM = {"id": "call_1", "type": "custom", "custom": {"name": "tool_name", "input": "the input"}}
_TOKEN = {"token": "token", "logprob": -0.25, "bytes": None, "top_logprobs": []}
_CITATION = {"url": "https://example.com", "title": "title", "start_index": 3, "end_index": 5}
_USAGE = {"prompt_tokens": 11, "completion_tokens": 22, "total_tokens": 33}


def _message(**keys: Any) -> JsonObject:
    return {"choices": [_choice(message=keys)]}


def _choice(index: int = 0, finish_reason: str = "stop", message: JsonObject | None = None, **keys: Any) -> JsonObject:
    content = {"role": "assistant", "content": "the content", "refusal": None, **(message or {})}
    return {"index": index, "message": content, "finish_reason": finish_reason, "logprobs": None, **keys}


def _usage(**keys: Any) -> JsonObject:
    return {"usage": {**_USAGE, **keys}}


_MESSAGE: Path = ("choices", 0, "message")
SAMPLES: Mapping[str, tuple[JsonObject, Path]] = {
    **{
        f"`finish_reason` `{word}`": ({"choices": [_choice(finish_reason=word)]}, ("choices", 0, "finish_reason"))
        for word in ("stop", "length", "tool_calls", "content_filter", "function_call")
    },
    "`native_finish_reason`": (
        {"choices": [_choice(native_finish_reason="the provider's word")]},
        ("choices", 0, "native_finish_reason"),
    ),
    "`content`": (_message(), (*_MESSAGE, "content")),
    "`content` null, with tool calls": (_message(content=None, tool_calls=[_CALL]), (*_MESSAGE, "content")),
    "`refusal`": (_message(content=None, refusal="the refusal"), (*_MESSAGE, "refusal")),
    "`reasoning_content`": (_message(reasoning_content="the reasoning"), (*_MESSAGE, "reasoning_content")),
    "`reasoning_signature`": (
        _message(reasoning_content="the reasoning", reasoning_signature="signed"),
        (*_MESSAGE, "reasoning_signature"),
    ),
    "`reasoning_details`": (
        _message(
            reasoning_details=[{"type": "reasoning.encrypted", "data": "the sealed reasoning", "index": 0}],
        ),
        (*_MESSAGE, "reasoning_details", 0, "data"),
    ),
    "`tool_calls`": (_message(content=None, tool_calls=[_CALL]), (*_MESSAGE, "tool_calls")),
    "`tool_calls`, custom": (_message(content=None, tool_calls=[_CUSTOM]), (*_MESSAGE, "tool_calls")),
    "`function_call`": (_message(content=None, function_call=_CALL["function"]), (*_MESSAGE, "function_call")),
    "`annotations`": (
        _message(annotations=[{"type": "url_citation", "url_citation": _CITATION}]),
        (*_MESSAGE, "annotations"),
    ),
    "`audio`": (
        _message(content=None, audio={"id": "audio_1", "expires_at": 7, "data": "AAAA", "transcript": "spoken"}),
        (*_MESSAGE, "audio"),
    ),
    "`logprobs`": ({"choices": [_choice(logprobs={"content": [_TOKEN], "refusal": None})]}, ("choices", 0, "logprobs")),
    "a second choice": (
        {"choices": [_choice(), _choice(1, message={"content": "another"})]},
        ("choices", 1, "message", "content"),
    ),
    "`usage`": (_usage(), ("usage",)),
    "`usage.prompt_tokens_details`": (
        _usage(prompt_tokens_details={"cached_tokens": 44}),
        ("usage", "prompt_tokens_details"),
    ),
    "`usage.completion_tokens_details.reasoning_tokens`": (
        _usage(completion_tokens_details={"reasoning_tokens": 55}),
        ("usage", "completion_tokens_details", "reasoning_tokens"),
    ),
    "other `usage.completion_tokens_details`": (
        _usage(completion_tokens_details={"accepted_prediction_tokens": 66}),
        ("usage", "completion_tokens_details"),
    ),
    "`service_tier`": ({"service_tier": "flex"}, ("service_tier",)),
    "`system_fingerprint`": ({"system_fingerprint": "fp_1"}, ("system_fingerprint",)),
    "`extra_fields` of a choice": ({"choices": [_choice(extra_fields="safe")]}, ("choices", 0, "extra_fields")),
    "an unknown key": ({"x_unknown": "unknown"}, ("x_unknown",)),
}
"""The label of a sample -> what it adds to the usual reply, and the path of the traced value."""


def whole_reply(part: JsonObject) -> JsonObject:
    usual = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1700000000, "model": "m"}
    return {**usual, "choices": [_choice()], "usage": _USAGE, **part}


def reply_chunks(whole: JsonObject) -> Iterator[JsonObject]:
    """The same reply as hub chunks: for each choice the message, then the finish reason; usage last."""
    shared = {key: value for key, value in whole.items() if key not in ("choices", "usage")}
    shared["object"] = "chat.completion.chunk"
    for choice in whole["choices"]:
        delta = {key: value for key, value in choice["message"].items() if value is not None}
        if "tool_calls" in delta:
            delta["tool_calls"] = [{"index": i, **call} for i, call in enumerate(delta["tool_calls"])]
        rest = {key: value for key, value in choice.items() if key not in ("message", "logprobs", "finish_reason")}
        yield {**shared, "choices": [{**rest, "delta": delta, "finish_reason": None, "logprobs": choice["logprobs"]}]}
        yield {**shared, "choices": [{**rest, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    yield {**shared, "choices": [], "usage": whole["usage"]}
