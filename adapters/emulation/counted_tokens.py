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
from .texts import ANSWER_TOKENS, MESSAGE_TOKENS, walk_texts
from .tokenizers import find_encoding, find_table, has_tables, load_encoding

__all__ = ["COUNTED_TOKENS"]

_PLACE = ("input_tokens",)
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
    texts = [*walk_texts([request.get("system"), request["messages"]], _list_parts)]
    texts += [orjson.dumps(tool).decode() for tool in request.get("tools") or ()]
    if name is not None and has_tables():
        encoding = load_encoding(name)
        count, how = sum(len(encoding.encode_ordinary(text)) for text in texts), f"counted with {name}"
    else:
        count, how = (
            math.ceil(sum(len(text.encode()) for text in texts) / _BYTES_PER_TOKEN),
            "from the length of the text",
        )
    count += MESSAGE_TOKENS * len(request["messages"]) + ANSWER_TOKENS
    count += _TOOL_TOKENS * len(request.get("tools") or ()) + _IMAGE_TOKENS * _count_images(request["messages"])
    ctx.receipt.record_fill(_PLACE, f"the provider does not count tokens; this is an estimate, {how}", "loss")
    return {"input_tokens": count}


def _list_parts(block: JsonObject) -> Iterator[Any]:
    """The parts of a message or a block that have texts. Files, signatures and ids have none."""
    yield from (block.get(key) for key in _TEXTS)
    if isinstance(block.get("input"), dict):
        yield orjson.dumps(block["input"]).decode()
    if isinstance(source := block.get("source"), dict):
        yield source.get("data") if source.get("media_type") == _DOCUMENT_TEXT else source.get("content")


def _count_images(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(_count_images, value))
    if not isinstance(value, dict):
        return 0
    return 1 if value.get("type") == "image" else _count_images(value.get("content"))


COUNTED_TOKENS = Emulation(_split, _join)
"""Answers `count_tokens` without a call."""
