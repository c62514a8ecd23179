"""Counts the tokens of a request for a client of Messages whose provider does not count them.

Texts are counted with the tokenizer that is documented for the model, else by their length; what a chat template puts
around messages and tools, and images, by constants. The number is an estimate, and the receipt says so.

Sources: Anthropic, Glossary (a token has 3.5 English characters), Vision (an image has at most about 1600 tokens).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import orjson

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault

from .interface import Emulation
from .tokenizers import find_encoding, find_table, has_tables, load_encoding

__all__ = ["COUNTED_TOKENS"]

_PLACE = ("input_tokens",)
_MESSAGE_TOKENS = 4  # around each message: its beginning, its role, its end
_ANSWER_TOKENS = 3  # that begin the answer
_TOOL_TOKENS = 8  # around each tool
_IMAGE_TOKENS = 1600
_BYTES_PER_TOKEN = 3.5

_TEXTS = ("text", "thinking", "title", "context", "content", "name")
_DOCUMENT_TEXT = "text/plain"


def _split(ctx: Context) -> list[Context]:
    """Make no call. Raises Fault if the policy wants exact answers only."""
    if ctx.target.policy.unsupported == "refuse-exactly":
        text = "the provider does not count tokens, and dragoman could only estimate their number"
        raise Fault("unsupported_parameter", text, ("model",), code="unsupported_protocol")
    return []


def _join(replies: list[JsonObject], ctx: Context) -> JsonObject:
    request, name = ctx.request, find_table(ctx.target.facts.tokenizer) or find_encoding(ctx.request)
    texts = [*_walk(request.get("system")), *_walk(request["messages"])]
    texts += [orjson.dumps(tool).decode() for tool in request.get("tools") or ()]
    if name is not None and has_tables():
        encoding = load_encoding(name)
        count, how = sum(len(encoding.encode_ordinary(text)) for text in texts), f"counted with {name}"
    else:
        count, how = (
            math.ceil(sum(len(text.encode()) for text in texts) / _BYTES_PER_TOKEN),
            "from the length of the text",
        )
    count += _MESSAGE_TOKENS * len(request["messages"]) + _ANSWER_TOKENS
    count += _TOOL_TOKENS * len(request.get("tools") or ()) + _IMAGE_TOKENS * _count_images(request["messages"])
    ctx.receipt.record_fill(_PLACE, f"the provider does not count tokens; this is an estimate, {how}", "loss")
    return {"input_tokens": count}


def _walk(value: Any) -> Iterator[str]:
    """The texts of system prompts, messages and blocks. Files, signatures and ids are left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _walk(one)
    elif isinstance(value, dict):
        for key in _TEXTS:
            yield from _walk(value.get(key))
        if isinstance(value.get("input"), dict):
            yield orjson.dumps(value["input"]).decode()
        if isinstance(source := value.get("source"), dict):
            yield from _walk(
                source.get("data") if source.get("media_type") == _DOCUMENT_TEXT else source.get("content")
            )


def _count_images(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(_count_images, value))
    if not isinstance(value, dict):
        return 0
    return 1 if value.get("type") == "image" else _count_images(value.get("content"))


COUNTED_TOKENS = Emulation(_split, _join)
"""Answers `count_tokens` without a call."""
