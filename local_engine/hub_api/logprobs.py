"""Log probabilities in hub form: a list of tokens for chat, parallel lists for completions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dragoman.adapters.call import JsonObject
from dragoman.local_engine.generation import TokenLogprob

__all__ = ["CompletionLogprobs", "write_chat_logprobs"]

MIN_LOGPROB = -9999.0
"""Replaces minus infinity, which JSON cannot represent."""
TokenBytes = Callable[[int], bytes]


def write_chat_logprobs(logprobs: Sequence[TokenLogprob], token_bytes: TokenBytes) -> JsonObject:
    """Write the `logprobs` of a chat chunk."""
    content = [
        {
            **_write_entry(one.token, one.logprob, token_bytes),
            "top_logprobs": [_write_entry(token, value, token_bytes) for token, value in one.top],
        }
        for one in logprobs
    ]
    return {"content": content, "refusal": None}


def _write_entry(token: int, logprob: float, token_bytes: TokenBytes) -> JsonObject:
    raw = token_bytes(token)
    return {"token": raw.decode("utf-8", "replace"), "logprob": max(logprob, MIN_LOGPROB), "bytes": list(raw)}


class CompletionLogprobs:
    """Writes the log probabilities of one completion. `text_offset` counts characters from the start of the text."""

    def __init__(self, token_bytes: TokenBytes, start: int = 0) -> None:
        self._bytes = token_bytes
        self._offset = start

    def write(self, logprobs: Sequence[TokenLogprob]) -> JsonObject:
        found: JsonObject = {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}
        for one in logprobs:
            text = self._decode(one.token)
            found["tokens"].append(text)
            found["token_logprobs"].append(max(one.logprob, MIN_LOGPROB))
            found["top_logprobs"].append(
                {self._decode(token): max(value, MIN_LOGPROB) for token, value in reversed(one.top)}
            )
            found["text_offset"].append(self._offset)
            self._offset += len(self._bytes(one.token).decode("utf-8", "ignore"))
        return found

    def _decode(self, token: int) -> str:
        raw = self._bytes(token)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in raw)
