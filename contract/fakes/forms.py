"""The chat replies of each dialect: the form of a dialect is data, and one writer serves all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, zip_longest
from typing import Any, Literal

from dragoman.contract.dialects import load_dialect
from dragoman.contract.json_types import JsonObject

from .answers import Answer, ModelRequest, read_text, split_words

__all__ = [
    "CREATED",
    "DONE",
    "ReplyForm",
    "build_chat_documents",
    "load_reply_form",
    "serialize_documents",
    "serialize_json",
]

CREATED = 1_750_000_000
DONE = b"data: [DONE]\n\n"
SIGNATURE = "ZmFrZS1zaWduYXR1cmU="


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """The properties of a dialect's replies. `opening` is the first delta's content; None means that there is no such
    chunk. `usage` says where a stream has the usage: in an own chunk if requested ("asked"), with the finish reason
    ("last"), or nowhere ("never"). `refusals`: a refusal has its own field. `failure_text` is the key for the text of
    a failure that ends a reply."""

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
def load_reply_form(dialect: str, profile: str) -> ReplyForm:
    """Load the form of a dialect's chat replies in a profile."""
    return ReplyForm(**load_dialect(dialect).reply_form("chat", profile))


def build_chat_documents(answer: Answer, request: ModelRequest) -> list[JsonObject]:
    """Build the JSON documents of the reply: the chunks of a stream, or one completion. The caller may alter them."""
    form = load_reply_form(request.dialect, request.profile)
    return _build_chunks(answer, request, form) if request.stream else [_build_completion(answer, request, form)]


def serialize_documents(found: list[JsonObject], request: ModelRequest) -> list[bytes]:
    """Serialize the documents: SSE events and `[DONE]`, which Messages does not have, or one JSON text."""
    if not request.stream:
        return [serialize_json(document) for document in found]
    frames = [_event_line(document, request) + b"data: " + serialize_json(document) + b"\n\n" for document in found]
    return frames if request.protocol == "messages" else [*frames, DONE]


def _event_line(document: JsonObject, request: ModelRequest) -> bytes:
    return f"event: {document['type']}\n".encode() if request.protocol in _NAMED_EVENTS else b""


_NAMED_EVENTS = ("responses", "messages")


def serialize_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _build_envelope(request: ModelRequest, form: ReplyForm, kind: str, choices: list[JsonObject]) -> JsonObject:
    head = {"id": form.id.format(number=request.number), "object": kind, "created": CREATED, "model": request.model}
    return {**head, "choices": choices, **form.top}


def _build_completion(answer: Answer, request: ModelRequest, form: ReplyForm) -> JsonObject:
    finish = form.finish.get(answer.finish, answer.finish)
    choices: list[JsonObject] = [
        {"index": index, "message": _build_message(answer, form), "finish_reason": finish}
        | {**form.choice, **_build_logprobs(request, form, answer.text)}
        for index in range(request.choices)
    ]
    whole = _build_envelope(request, form, form.completion, choices)
    return {**whole, "usage": _build_usage(answer, request, form, request.choices), **(answer.extra or {})}


def _build_logprobs(request: ModelRequest, form: ReplyForm, text: str) -> JsonObject:
    """Build log probabilities, if the API has them: one word counts as one token, all with the same probability."""
    if request.body.get("logprobs") is not True or not text or not form.logprobs:
        return {}
    tokens: list[JsonObject] = [
        {"token": piece, "logprob": -0.25, "bytes": [*piece.encode()]} for piece in split_words(text)
    ]
    others = int(request.body.get("top_logprobs") or 0)
    return {"logprobs": {"content": [{**token, "top_logprobs": [token] * others} for token in tokens], "refusal": None}}


def _build_message(answer: Answer, form: ReplyForm) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": None, **form.message}
    if answer.text or not (answer.calls or answer.refusal):
        message["content"] = answer.text
    if answer.reasoning and form.reasoning_parts:
        message["content"] = [_build_reasoning_part(answer.reasoning, SIGNATURE), {"type": "text", "text": answer.text}]
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


def _build_chunks(answer: Answer, request: ModelRequest, form: ReplyForm) -> list[JsonObject]:
    """Build the chunks of all choices; the choices alternate."""
    choices = [_build_choice_chunks(answer, request, form, index) for index in range(request.choices)]
    turns: list[JsonObject] = [chunk for turn in zip(*choices, strict=True) for chunk in turn]
    found = [*(dict(first) for first in form.first), *turns]
    found[-1].update(answer.extra or {})
    if form.usage == "asked" and request.include_usage:
        for chunk in found:
            chunk["usage"] = None
        last = _build_envelope(request, form, "chat.completion.chunk", [])
        found.append({**last, "usage": _build_usage(answer, request, form, request.choices)})
    return found


def _build_choice_chunks(answer: Answer, request: ModelRequest, form: ReplyForm, index: int) -> list[JsonObject]:
    def chunk(delta: JsonObject, finish: str | None = None) -> JsonObject:
        content = delta.get("content")
        logprobs = _build_logprobs(request, form, content if isinstance(content, str) else "")
        choice = {"index": index, "delta": delta, "finish_reason": finish, **form.choice, **logprobs}
        return _build_envelope(request, form, "chat.completion.chunk", [choice])

    deltas = list(_iterate_deltas(answer, form))
    for number, delta in enumerate(deltas):
        if form.role_everywhere or number == 0:
            deltas[number] = {"role": "assistant", **delta}
    last = chunk({}, form.finish.get(answer.finish, answer.finish))
    if form.usage == "last":
        last["usage"] = _build_usage(answer, request, form, 1)
    return [*(chunk(delta) for delta in deltas), last]


def _iterate_deltas(answer: Answer, form: ReplyForm) -> Iterator[JsonObject]:
    if form.opening is not None:
        yield dict(form.opening)
    thoughts = split_words(answer.reasoning)
    for number, piece in enumerate(thoughts, 1):
        signature = SIGNATURE if number == len(thoughts) else ""
        yield (
            {"content": [_build_reasoning_part(piece, signature)]}
            if form.reasoning_parts
            else {"reasoning_content": piece}
        )
    for piece in split_words(answer.text):
        yield {"content": piece}
    for piece in split_words(answer.refusal):
        yield {"refusal": piece}
    yield from _iterate_call_deltas(answer)


def _iterate_call_deltas(answer: Answer) -> Iterator[JsonObject]:
    """Iterate over the deltas: first the name of every call, then the pieces of the arguments; the calls alternate."""
    for index, call in enumerate(answer.calls):
        function = {"name": call.name, "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]}
    for turn in zip_longest(*(re.findall(r".{1,6}", call.arguments, re.DOTALL) for call in answer.calls)):
        for index, piece in enumerate(turn):
            if piece is not None:
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _build_reasoning_part(text: str, signature: str) -> JsonObject:
    return {"type": "reasoning", "summary": [{"type": "summary_text", "text": text, "signature": signature}]}


def _build_usage(answer: Answer, request: ModelRequest, form: ReplyForm, choices: int) -> JsonObject:
    """Count one token for each word."""
    read = sum(len(read_text(message).split()) for message in request.messages) + 1
    thoughts = len(split_words(answer.reasoning)) * choices
    pieces = chain(split_words(answer.text), split_words(answer.refusal), _iterate_call_deltas(answer))
    written = len(list(pieces)) * choices + thoughts
    usage: JsonObject = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    if thoughts and form.reasoning_parts:
        usage["reasoning_tokens"] = thoughts
    elif thoughts:
        usage["completion_tokens_details"] = {"reasoning_tokens": thoughts}
    return usage
