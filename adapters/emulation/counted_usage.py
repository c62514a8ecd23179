"""Counts the tokens that a provider does not report, with the tokenizer that is documented for the model.

Only texts are counted: those of the messages with what chat templates put around them, of the tools, and of the answer.
The counts are an estimate, and the receipt says so. Usage that the provider reports stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.parameters import wants_usage
from dragoman.adapters.streams import Chunk, DeltaRun, End, Output
from dragoman.adapters.text_buffer import TextBuffer

from .interface import Emulation
from .texts import ANSWER_TOKENS, MESSAGE_TOKENS, walk_texts
from .tokenizers import INSTALL, find_encoding, find_table, has_tables, load_encoding

__all__ = ["COUNTED_USAGE"]

_PLACE = ("usage",)
_TEXTS = ("content", "reasoning_content", "refusal", "text", "arguments", "name", "tool_calls", "function")


def _split(ctx: Context) -> list[Context]:
    return [ctx._replace()]


def _join(replies: list[JsonObject], ctx: Context) -> JsonObject:
    (reply,) = replies
    if reply.get("usage"):
        return reply
    usage = _count(ctx, (text for choice in reply["choices"] for text in _walk_answer(choice)))
    return reply if usage is None else {**reply, "usage": usage}


def _count(ctx: Context, answers: Iterator[str]) -> JsonObject | None:
    """The usage of a request and its answers; None if the tokens are not known."""
    name = find_table(ctx.target.facts.tokenizer) or find_encoding(ctx.request)
    if name is None or not has_tables():
        why = "the model's tokenizer is not known" if name is None else f"the extra tokens is missing: {INSTALL}"
        ctx.receipt.record_drop(_PLACE, f"the provider reports none, and {why}")
        return None
    encoding, messages = load_encoding(name), ctx.request.get("messages")
    prompt = sum(len(encoding.encode_ordinary(text)) for text in _walk_prompt(ctx.request))
    prompt += _count_given(ctx.request.get("prompt"))
    prompt += MESSAGE_TOKENS * len(messages) + ANSWER_TOKENS if isinstance(messages, list) else 0
    completion = sum(len(encoding.encode_ordinary(text)) for text in answers)
    reason = f"the provider reports none; this is an estimate, counted with {name}"
    ctx.receipt.record_fill(_PLACE, reason, "loss")
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _walk_prompt(request: JsonObject) -> Iterator[str]:
    yield from walk_texts([request.get("messages"), request.get("prompt")], _list_parts)
    for name in ("tools", "response_format"):
        if request.get(name):
            yield orjson.dumps(request[name]).decode()


def _count_given(prompt: Any) -> int:
    """The tokens of a prompt that is given as tokens."""
    return sum(1 if isinstance(one, int) else _count_given(one) for one in prompt) if isinstance(prompt, list) else 0


def _list_parts(holder: JsonObject) -> Iterator[Any]:
    """The parts of a message or a call that have texts. Images, audio and files have none, nor have ids and kinds."""
    return (holder.get(key) for key in _TEXTS)


def _walk_answer(choice: JsonObject) -> Iterator[str]:
    return walk_texts(choice.get("message", choice), _list_parts)


class _CountedStream:
    """A StreamMerger that adds the usage if the client asked for it and the provider does not report it."""

    def __init__(self, ctx: Context, parts: int) -> None:
        self._ctx = ctx
        self._is_wanted = wants_usage(ctx.request)
        self._texts: dict[tuple[Any, ...], TextBuffer] = {}
        self._body: JsonObject = {}

    def feed(self, part: int, outputs: list[Output]) -> list[Output]:
        """Return the outputs, with the usage before the end."""
        if not self._is_wanted:
            return outputs
        for output in outputs:
            if isinstance(output, DeltaRun):
                self._body = output.body
                place = (output.body["choices"][0]["index"], output.place[-1])
                self._texts.setdefault(place, TextBuffer()).add_fragments(output.texts)
            elif isinstance(output, Chunk):
                self._add_chunk(output.body)
        if not self._is_wanted or not outputs or not isinstance(outputs[-1], End):
            return outputs
        usage = _count(self._ctx, (buffer.text() for buffer in self._texts.values()))
        added = [] if usage is None else [Chunk({**self._body, "choices": [], "usage": usage})]
        return [*outputs[:-1], *added, outputs[-1]]

    def _add_chunk(self, body: JsonObject) -> None:
        if body.get("usage"):
            self._is_wanted = False
        self._body = body
        for choice in body["choices"]:
            for key, text in _walk_pieces(choice.get("delta", choice)):
                self._texts.setdefault((choice["index"], *key), TextBuffer()).add(text)


def _walk_pieces(delta: JsonObject) -> Iterator[tuple[tuple[Any, ...], str]]:
    """The texts of a delta, each with a key that is the same for all pieces of one text."""
    for name in _TEXTS:
        if isinstance(delta.get(name), str):
            yield (name,), delta[name]
    for call in delta.get("tool_calls") or ():
        for name in ("name", "arguments"):
            if isinstance(text := (call.get("function") or {}).get(name), str):
                yield (name, call["index"]), text


COUNTED_USAGE = Emulation(_split, _join, _CountedStream)
