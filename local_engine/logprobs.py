"""Log probabilities in the hub's forms: chat's list of tokens, completions' parallel lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dragoman.adapters.call import JsonObject

from .requests import TokenLogprob

__all__ = ["Offsets", "chat_logprobs"]

LOWEST = -9999.0
"""Stands for minus infinity, which JSON has no word for."""
Bytes = Callable[[int], bytes]


def chat_logprobs(found: Sequence[TokenLogprob], token_bytes: Bytes) -> JsonObject:
    content = [
        {
            **_entry(one.token, one.logprob, token_bytes),
            "top_logprobs": [_entry(token, value, token_bytes) for token, value in one.top],
        }
        for one in found
    ]
    return {"content": content, "refusal": None}


def _entry(token: int, logprob: float, token_bytes: Bytes) -> dict[str, Any]:
    raw = token_bytes(token)
    return {"token": raw.decode("utf-8", "replace"), "logprob": max(logprob, LOWEST), "bytes": list(raw)}


class Offsets:
    """Completions' log probabilities of one choice; `text_offset` counts characters from the text's beginning."""

    def __init__(self, token_bytes: Bytes, start: int = 0) -> None:
        self._bytes = token_bytes
        self._at = start

    def take(self, found: Sequence[TokenLogprob]) -> JsonObject:
        told: JsonObject = {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}
        for one in found:
            word = self._word(one.token)
            told["tokens"].append(word)
            told["token_logprobs"].append(max(one.logprob, LOWEST))
            told["top_logprobs"].append({self._word(token): max(value, LOWEST) for token, value in reversed(one.top)})
            told["text_offset"].append(self._at)
            self._at += len(self._bytes(one.token).decode("utf-8", "ignore"))
        return told

    def _word(self, token: int) -> str:
        raw = self._bytes(token)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in raw)
