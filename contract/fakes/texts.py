"""How a dialect writes completions: a text for each prompt, n times over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import zip_longest
from typing import Any, Literal

from dragoman.contract.dialects import dialect

from .answers import Answer, Ask, Json, pieces
from .forms import CREATED

__all__ = ["text_documents"]


@dataclass(frozen=True, slots=True)
class TextForm:
    """What is special about a dialect's completions. `by_prompt`: an index counts prompts, not choices. `usage` is
    where a stream carries it, as in `Form`. `named`: a reply names its model.
    `appends_suffix`: the suffix is a part of the text; OpenAI's models only know what comes after."""

    by_prompt: bool = False
    usage: Literal["asked", "last", "never"] = "asked"
    named: bool = True
    logprobs: bool = False
    appends_suffix: bool = False
    top: Mapping[str, Any] = field(default_factory=dict)
    choice: Mapping[str, Any] = field(default_factory=dict)


@cache
def _form(name: str, profile: str) -> TextForm:
    return TextForm(**dialect(name).reply_form("completions", profile))


def text_documents(answer: Answer, ask: Ask) -> list[Json]:
    """The reply's JSON documents: a stream's chunks, or the one completion. Fresh, so the caller may alter them."""
    form = _form(ask.dialect, ask.profile)
    return _chunks(answer, ask, form) if ask.stream else [_completion(answer, ask, form)]


def _completion(answer: Answer, ask: Ask, form: TextForm) -> Json:
    choices = [
        {
            **_head(ask, form, number),
            "text": "".join(said),
            **_logprobs(ask, form, said, 0),
            "finish_reason": answer.finish,
        }
        for number, said in enumerate(_all(answer, ask, form))
    ]
    usage = _usage(ask, range(len(ask.prompts)), _all(answer, ask, form))
    return {**_envelope(ask, form, choices), "usage": usage, **(answer.extra or {})}


def _chunks(answer: Answer, ask: Ask, form: TextForm) -> list[Json]:
    """Each choice's pieces, the choices taking turns."""
    made = [_choice_chunks(answer, ask, form, number, said) for number, said in enumerate(_all(answer, ask, form))]
    found = [chunk for turn in zip_longest(*made) for chunk in turn if chunk is not None]
    found[-1].update(answer.extra or {})
    if form.usage == "asked" and ask.include_usage:
        for chunk in found:
            chunk["usage"] = None
        usage = _usage(ask, range(len(ask.prompts)), _all(answer, ask, form))
        found.append({**_envelope(ask, form, []), "usage": usage})
    return found


def _choice_chunks(answer: Answer, ask: Ask, form: TextForm, number: int, said: list[str]) -> list[Json]:
    def chunk(text: str, finish: str | None, **more: Any) -> Json:
        choice = {**_head(ask, form, number), "text": text, **more, "finish_reason": finish}
        return _envelope(ask, form, [choice])

    offsets = [len("".join(said[:place])) for place in range(len(said))]
    told = [chunk(piece, None, **_logprobs(ask, form, [piece], at)) for piece, at in zip(said, offsets, strict=True)]
    last = chunk("", answer.finish)
    if form.usage == "last":
        last["usage"] = _usage(ask, [number // ask.choices], [said])
    return [*told, last]


def _all(answer: Answer, ask: Ask, form: TextForm) -> list[list[str]]:
    """The pieces of every choice's text, n for each prompt."""
    told = pieces(answer.text)
    return [
        [*([prompt] if prompt and ask.body.get("echo") else []), *told, *_suffix(ask, form)]
        for prompt in ask.prompts
        for _ in range(ask.choices)
    ]


def _suffix(ask: Ask, form: TextForm) -> list[str]:
    suffix = ask.body.get("suffix")
    return [suffix] if form.appends_suffix and isinstance(suffix, str) and suffix else []


def _head(ask: Ask, form: TextForm, number: int) -> Json:
    return {"index": number // ask.choices if form.by_prompt else number, **form.choice}


def _envelope(ask: Ask, form: TextForm, choices: list[Json]) -> Json:
    head = {"id": f"cmpl-fake{ask.number:06d}", "object": "text_completion", "created": CREATED}
    return {**head, **({"model": ask.model} if form.named else {}), "choices": choices, **form.top}


def _logprobs(ask: Ask, form: TextForm, said: list[str], offset: int) -> Json:
    """Each piece as a token, and as many others as were asked for."""
    wanted = ask.body.get("logprobs")
    if not form.logprobs or not isinstance(wanted, int):
        return {}
    others = {f"other{number}": -1.5 - number for number in range(wanted - 1)} if wanted else {}
    return {
        "logprobs": {
            "tokens": said,
            "token_logprobs": [-0.25] * len(said),
            "top_logprobs": [{piece: -0.25, **others} for piece in said],
            "text_offset": [offset + len("".join(said[:place])) for place in range(len(said))],
        }
    }


def _usage(ask: Ask, prompts: Any, texts: list[list[str]]) -> Json:
    """Words stand for tokens."""
    read = sum(len(ask.prompts[number].split()) + 1 for number in prompts)
    written = sum(map(len, texts))
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
