"""Parse JSON of upstreams, also where it is broken in the ways in which model servers break it.

orjson parses first. Only a text that it refuses is repaired, in one pass over its strings and literals:

    half of a surrogate pair, escaped                         U+FFFD
    bytes that are not UTF-8                                  U+FFFD
    NaN, Infinity, -Infinity, numbers beyond a double         null, but -9999.0 for log probabilities

Integers beyond 64 bits are no repair, but orjson makes floats of them, which is a reason too.

A token may be a part of a character, which is how halves and stray bytes come into a reply. -9999.0 is what OpenAI
sends for a token that is nearly impossible (OpenAI API reference, `logprob`).
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from .jsontext import has_big_integer, read_any

__all__ = ["NO_DIGITS", "NO_NUMBER", "NO_TEXT", "parse_leniently"]

NO_TEXT = "text that is not Unicode, as half of a surrogate pair, becomes U+FFFD"
NO_NUMBER = "numbers that JSON does not have, as NaN and -Infinity, become null, or -9999.0 in log probabilities"
NO_DIGITS = "integers that do not fit in 64 bits keep about 16 digits"

_STRING = r'"(?:[^"\\]++|\\.)*+"'
_WORD = r"(?:NaN|-?Infinity|-?\d[\d.]*+[eE]\+?\d{3,})"
_TOKEN = re.compile(rf"(?P<key>{_STRING}\s*+:\s*+)?(?P<word>{_WORD})|{_STRING}")
_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\.")
_HALF = 6
_UNLIKELY = "-9999.0"


def parse_leniently(raw: bytes) -> tuple[Any, list[str]]:
    """The value of a JSON text that may need repair, and the reasons of the changes. Raises ValueError."""
    try:
        return read_any(raw), [NO_DIGITS] if has_big_integer(raw) else []
    except orjson.JSONDecodeError:
        text = raw.decode("utf-8", "replace")
    repair = _Repair()
    repaired = _TOKEN.sub(repair.replace, text)
    reasons = [NO_TEXT] if repair.has_halves or "�" in text else []
    if repair.has_words:
        reasons.append(NO_NUMBER)
    if not reasons:
        raise ValueError("not JSON, and nothing that can be repaired")
    data = repaired.encode()
    return read_any(data), [*reasons, NO_DIGITS] if has_big_integer(data) else reasons


class _Repair:
    """The replacements of one text, and which kinds there were."""

    def __init__(self) -> None:
        self.has_halves = False
        self.has_words = False

    def replace(self, found: re.Match[str]) -> str:
        """The text instead of a string, or of a literal with the key before it."""
        word, key = found["word"], found["key"] or ""
        if word is None:
            return self._replace_halves(found[0])
        self.has_words = True
        return self._replace_halves(key) + (_UNLIKELY if "logprob" in key or word == "-Infinity" else "null")

    def _replace_halves(self, string: str) -> str:
        return _ESCAPE.sub(self._replace_half, string) if "\\u" in string else string

    def _replace_half(self, found: re.Match[str]) -> str:
        if len(found[0]) != _HALF:
            return found[0]
        self.has_halves = True
        return "\\ufffd"
