"""How each dialect writes a chat reply: its form is data, one writer serves all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, zip_longest
from typing import Any, Literal

from dragoman.contract.dialects import dialect

from .answers import Answer, Ask, Json, pieces, text_of

__all__ = ["CREATED", "DONE", "Form", "as_json", "documents", "form_of", "frames"]

CREATED = 1_750_000_000
DONE = b"data: [DONE]\n\n"
SIGNATURE = "ZmFrZS1zaWduYXR1cmU="


@dataclass(frozen=True, slots=True)
class Form:
    """What is special about a dialect's replies. `opening` is the first delta's content (none: no such chunk),
    `usage` where a stream carries it: in a chunk of its own where asked, with the finish reason, or nowhere. `refusals`
    are a field of their own, else text. `failure_text` is the key for the text of a failure that ends a reply."""

    completion: str = "chat.completion"
    id: str = "chatcmpl-fake{number:06d}"
    finish: Mapping[str, str] = field(default_factory=dict)
    opening: Mapping[str, Any] | None = field(default_factory=lambda: {"content": ""})
    role_everywhere: bool = False
    usage: Literal["asked", "last", "never"] = "asked"
    reasoning_parts: bool = False
    refusals: bool = False
    logprobs: bool = True
    failure_text: str = ""
    top: Mapping[str, Any] = field(default_factory=dict)
    choice: Mapping[str, Any] = field(default_factory=dict)
    message: Mapping[str, Any] = field(default_factory=dict)
    first: tuple[Mapping[str, Any], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    closes: bool = False
    streams_unasked: bool = False


@cache
def form_of(name: str, profile: str) -> Form:
    """The form of a dialect's chat replies in a profile."""
    return Form(**dialect(name).reply_form("chat", profile))


def documents(answer: Answer, ask: Ask) -> list[Json]:
    """The reply's JSON documents: a stream's chunks, or the one completion. Fresh, so the caller may alter them."""
    form = form_of(ask.dialect, ask.profile)
    return _chunks(answer, ask, form) if ask.stream else [_completion(answer, ask, form)]


def frames(found: list[Json], ask: Ask) -> list[bytes]:
    """The same as bytes: SSE events and `[DONE]`, or one JSON text."""
    if not ask.stream:
        return [as_json(document) for document in found]
    return [*(_named(document, ask) + b"data: " + as_json(document) + b"\n\n" for document in found), DONE]


def _named(document: Json, ask: Ask) -> bytes:
    return f"event: {document['type']}\n".encode() if ask.protocol == "responses" else b""


def as_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _envelope(ask: Ask, form: Form, kind: str, choices: list[Json]) -> Json:
    head = {"id": form.id.format(number=ask.number), "object": kind, "created": CREATED, "model": ask.model}
    return {**head, "choices": choices, **form.top}


def _completion(answer: Answer, ask: Ask, form: Form) -> Json:
    finish = form.finish.get(answer.finish, answer.finish)
    choices: list[Json] = [
        {"index": index, "message": _message(answer, form), "finish_reason": finish}
        | {**form.choice, **_logprobs(ask, form, answer.text)}
        for index in range(ask.choices)
    ]
    whole = _envelope(ask, form, form.completion, choices)
    return {**whole, "usage": _usage(answer, ask, form, ask.choices), **(answer.extra or {})}


def _logprobs(ask: Ask, form: Form, text: str) -> Json:
    """Words stand for tokens; each is as likely as the next. Not every API has them."""
    if ask.body.get("logprobs") is not True or not text or not form.logprobs:
        return {}
    tokens: list[Json] = [{"token": piece, "logprob": -0.25, "bytes": [*piece.encode()]} for piece in pieces(text)]
    others = int(ask.body.get("top_logprobs") or 0)
    return {"logprobs": {"content": [{**token, "top_logprobs": [token] * others} for token in tokens], "refusal": None}}


def _message(answer: Answer, form: Form) -> Json:
    message: Json = {"role": "assistant", "content": None, **form.message}
    if answer.text or not (answer.calls or answer.refusal):
        message["content"] = answer.text
    if answer.reasoning and form.reasoning_parts:
        message["content"] = [_thought(answer.reasoning, SIGNATURE), {"type": "text", "text": answer.text}]
    elif answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.refusal:
        message["refusal"] = answer.refusal
    if answer.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in answer.calls
        ]
    return message


def _chunks(answer: Answer, ask: Ask, form: Form) -> list[Json]:
    """Each choice's deltas, the choices taking turns."""
    made = [_choice_chunks(answer, ask, form, index) for index in range(ask.choices)]
    turns: list[Json] = [chunk for turn in zip(*made, strict=True) for chunk in turn]
    found = [*(dict(first) for first in form.first), *turns]
    found[-1].update(answer.extra or {})
    if form.usage == "asked" and ask.include_usage:
        for chunk in found:
            chunk["usage"] = None
        last = _envelope(ask, form, "chat.completion.chunk", [])
        found.append({**last, "usage": _usage(answer, ask, form, ask.choices)})
    return found


def _choice_chunks(answer: Answer, ask: Ask, form: Form, index: int) -> list[Json]:
    def chunk(delta: Json, finish: str | None = None) -> Json:
        said = delta.get("content")
        told = _logprobs(ask, form, said if isinstance(said, str) else "")
        choice = {"index": index, "delta": delta, "finish_reason": finish, **form.choice, **told}
        return _envelope(ask, form, "chat.completion.chunk", [choice])

    deltas = list(_deltas(answer, form))
    for number, delta in enumerate(deltas):
        if form.role_everywhere or number == 0:
            deltas[number] = {"role": "assistant", **delta}
    last = chunk({}, form.finish.get(answer.finish, answer.finish))
    if form.usage == "last":
        last["usage"] = _usage(answer, ask, form, 1)
    return [*(chunk(delta) for delta in deltas), last]


def _deltas(answer: Answer, form: Form) -> Iterator[Json]:
    if form.opening is not None:
        yield dict(form.opening)
    thoughts = pieces(answer.reasoning)
    for number, piece in enumerate(thoughts, 1):
        signature = SIGNATURE if number == len(thoughts) else ""
        yield {"content": [_thought(piece, signature)]} if form.reasoning_parts else {"reasoning_content": piece}
    for piece in pieces(answer.text):
        yield {"content": piece}
    for piece in pieces(answer.refusal):
        yield {"refusal": piece}
    yield from _call_deltas(answer)


def _call_deltas(answer: Answer) -> Iterator[Json]:
    """Every call's name first, then the pieces of their arguments, the calls taking turns."""
    for index, call in enumerate(answer.calls):
        function = {"name": call.name, "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]}
    for turn in zip_longest(*(re.findall(r".{1,6}", call.arguments, re.DOTALL) for call in answer.calls)):
        for index, piece in enumerate(turn):
            if piece is not None:
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _thought(text: str, signature: str) -> Json:
    return {"type": "reasoning", "summary": [{"type": "summary_text", "text": text, "signature": signature}]}


def _usage(answer: Answer, ask: Ask, form: Form, choices: int) -> Json:
    """Words stand for tokens."""
    read = sum(len(text_of(message).split()) for message in ask.messages) + 1
    thoughts = len(pieces(answer.reasoning)) * choices
    said = chain(pieces(answer.text), pieces(answer.refusal), _call_deltas(answer))
    written = len(list(said)) * choices + thoughts
    usage: Json = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    if thoughts and form.reasoning_parts:
        usage["reasoning_tokens"] = thoughts
    elif thoughts:
        usage["completion_tokens_details"] = {"reasoning_tokens": thoughts}
    return usage
