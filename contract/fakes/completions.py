"""The completions of each dialect: n texts for each prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import zip_longest
from typing import Literal

from dragoman.contract.dialects import load_dialect
from dragoman.contract.json_types import JsonObject, JsonValue

from .answers import Answer, ModelRequest, split_words
from .forms import CREATED

__all__ = ["build_completion_documents"]


@dataclass(frozen=True, slots=True)
class CompletionForm:
    """The properties of a dialect's completions. `by_prompt`: an index counts prompts, not choices. `usage` says where
    a stream has the usage, as in `ReplyForm`. `named`: a reply has the name of its model. `appends_suffix`: the suffix
    is part of the text; OpenAI's models only read it."""

    by_prompt: bool = False
    usage: Literal["asked", "last", "never"] = "asked"
    named: bool = True
    logprobs: bool = False
    appends_suffix: bool = False
    top: Mapping[str, JsonValue] = field(default_factory=dict)
    choice: Mapping[str, JsonValue] = field(default_factory=dict)


@cache
def _load_form(dialect: str, profile: str) -> CompletionForm:
    return CompletionForm(**load_dialect(dialect).reply_form("completions", profile))


def build_completion_documents(answer: Answer, request: ModelRequest) -> list[JsonObject]:
    """Build the JSON documents of the reply: the chunks of a stream, or one completion. The caller may alter them."""
    form = _load_form(request.dialect, request.profile)
    return _build_chunks(answer, request, form) if request.stream else [_build_completion(answer, request, form)]


def _build_completion(answer: Answer, request: ModelRequest, form: CompletionForm) -> JsonObject:
    choices = [
        {
            **_build_choice_head(request, form, number),
            "text": "".join(words),
            **_build_logprobs(request, form, words, 0),
            "finish_reason": answer.finish,
        }
        for number, words in enumerate(_list_texts(answer, request, form))
    ]
    usage = _build_usage(request, range(len(request.prompts)), _list_texts(answer, request, form))
    return {**_build_envelope(request, form, choices), "usage": usage, **(answer.extra or {})}


def _build_chunks(answer: Answer, request: ModelRequest, form: CompletionForm) -> list[JsonObject]:
    """Build the chunks of all choices; the choices alternate."""
    choices = [
        _build_choice_chunks(answer, request, form, number, words)
        for number, words in enumerate(_list_texts(answer, request, form))
    ]
    found = [chunk for turn in zip_longest(*choices) for chunk in turn if chunk is not None]
    found[-1].update(answer.extra or {})
    if form.usage == "asked" and request.include_usage:
        for chunk in found:
            chunk["usage"] = None
        usage = _build_usage(request, range(len(request.prompts)), _list_texts(answer, request, form))
        found.append({**_build_envelope(request, form, []), "usage": usage})
    return found


def _build_choice_chunks(
    answer: Answer, request: ModelRequest, form: CompletionForm, number: int, words: list[str]
) -> list[JsonObject]:
    def chunk(text: str, finish: str | None, **more: JsonValue) -> JsonObject:
        choice = {**_build_choice_head(request, form, number), "text": text, **more, "finish_reason": finish}
        return _build_envelope(request, form, [choice])

    offsets = [len("".join(words[:position])) for position in range(len(words))]
    chunks = [
        chunk(piece, None, **_build_logprobs(request, form, [piece], offset))
        for piece, offset in zip(words, offsets, strict=True)
    ]
    last = chunk("", answer.finish)
    if form.usage == "last":
        last["usage"] = _build_usage(request, [number // request.choices], [words])
    return [*chunks, last]


def _list_texts(answer: Answer, request: ModelRequest, form: CompletionForm) -> list[list[str]]:
    """List the pieces of every choice's text, n choices for each prompt."""
    words = split_words(answer.text)
    return [
        [*([prompt] if prompt and request.body.get("echo") else []), *words, *_list_suffix(request, form)]
        for prompt in request.prompts
        for _ in range(request.choices)
    ]


def _list_suffix(request: ModelRequest, form: CompletionForm) -> list[str]:
    """List the suffix if the dialect appends it to the text."""
    suffix = request.body.get("suffix")
    return [suffix] if form.appends_suffix and isinstance(suffix, str) and suffix else []


def _build_choice_head(request: ModelRequest, form: CompletionForm, number: int) -> JsonObject:
    return {"index": number // request.choices if form.by_prompt else number, **form.choice}


def _build_envelope(request: ModelRequest, form: CompletionForm, choices: list[JsonObject]) -> JsonObject:
    head = {"id": f"cmpl-fake{request.number:06d}", "object": "text_completion", "created": CREATED}
    return {**head, **({"model": request.model} if form.named else {}), "choices": choices, **form.top}


def _build_logprobs(request: ModelRequest, form: CompletionForm, words: list[str], offset: int) -> JsonObject:
    """Build log probabilities with each piece as a token, and as many alternatives as requested."""
    wanted = request.body.get("logprobs")
    if not form.logprobs or not isinstance(wanted, int):
        return {}
    others = {f"other{number}": -1.5 - number for number in range(wanted - 1)} if wanted else {}
    return {
        "logprobs": {
            "tokens": words,
            "token_logprobs": [-0.25] * len(words),
            "top_logprobs": [{piece: -0.25, **others} for piece in words],
            "text_offset": [offset + len("".join(words[:position])) for position in range(len(words))],
        }
    }


def _build_usage(request: ModelRequest, prompts: JsonValue, texts: list[list[str]]) -> JsonObject:
    """Count one token for each word."""
    read = sum(len(request.prompts[number].split()) + 1 for number in prompts)
    written = sum(map(len, texts))
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
