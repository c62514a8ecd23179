"""Read how long a provider asks clients to wait: from headers, from a value in the body of an error, from its sentence.

retry-after, retry-after-ms, x-ms-retry-after-ms    RFC 9110; OpenAI; Azure
x-ratelimit-reset-requests and -tokens              OpenAI, Groq: "1m2.5s"; others: seconds
x-ratelimit-reset                                   OpenRouter: Unix milliseconds; others: Unix seconds, seconds
anthropic-ratelimit-requests-reset and others       Anthropic: RFC 3339
google.rpc.RetryInfo retryDelay                     Gemini: "13s"
metadata.retry_after, retry_after_seconds           OpenRouter
estimated_time                                      Hugging Face, for a model that is loading: seconds
"Please try again in 7.66s", "retry after 60 seconds", "try again in 1 minute"
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from .call import Headers

__all__ = ["MAX_SECONDS", "find_wait", "parse_wait", "read_reset", "read_retry_after", "read_wait"]

MAX_SECONDS = 3600.0
_LATEST_WAIT = 1e9  # a greater number of seconds is a time in Unix seconds
_LATEST_TIME = 1e11  # a greater time is one in Unix milliseconds
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = (
    r"\d{1,9}(?:\.\d{1,12})?\s?(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![a-z])"
)
_DURATION = re.compile(rf"(?:{_PART}\s?)+", re.IGNORECASE)
_NUMBER_AND_UNIT = re.compile(r"([\d.]+)\s?(ms|milli|[smhd])", re.IGNORECASE)
_SENTENCE = re.compile(
    rf"\b(?:try(?:ing)? again|retry(?:ing)?|wait)(?: your request)?(?: (?:in|after|for))?(?: about)? ((?:{_PART}\s?)+)",
    re.IGNORECASE,
)
# key in the body of an error -> how many seconds its unit has
_KEYS: Mapping[str, float] = {
    "retryDelay": 1.0,
    "retry_delay": 1.0,
    "retry_after": 1.0,
    "retryAfter": 1.0,
    "retry_after_seconds": 1.0,
    "retryAfterSeconds": 1.0,
    "retry_after_ms": 0.001,
    "estimated_time": 1.0,
}


def read_retry_after(headers: Headers, now: float | None) -> float | None:
    """Return the seconds to wait, at most an hour; None without a valid header. `now` is in Unix seconds, or not known.

    Reads `retry-after-ms`, else `retry-after`, which holds seconds or an HTTP date (RFC 9110).
    """
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        if (milliseconds := _parse_number(headers.get(name))) is not None:
            return _bound(milliseconds / 1000)
    text = headers.get("retry-after")
    if text is None:
        return None
    seconds = _parse_number(text)
    return _bound(_seconds_until(text, now) if seconds is None else seconds)


def read_reset(headers: Headers, now: float | None) -> float | None:
    """Return the seconds until a limit is reset, from the headers about rate limits; None if no header says it.

    Limits of which nothing remains decide, and the one that is reset last. If no header says what remains, the first
    reset decides.
    """
    resets: list[float] = []
    exhausted: list[float] = []
    for name, text in headers.items():
        name = name.lower()
        if "ratelimit" not in name or "reset" not in name or (seconds := parse_wait(text, now)) is None:
            continue
        resets.append(seconds)
        if _parse_number(headers.get(name.replace("reset", "remaining"))) == 0:
            exhausted.append(seconds)
    return max(exhausted) if exhausted else min(resets, default=None)


def read_wait(body: Mapping[str, Any]) -> float | None:
    """Return the seconds to wait that an object in an error names under a known key; None without one."""
    for key, unit in _KEYS.items():
        if (seconds := parse_wait(body.get(key))) is not None:
            return _bound(seconds * unit)
    return None


def find_wait(sentence: str) -> float | None:
    """Return the seconds to wait that a sentence names; None if it names none."""
    found = _SENTENCE.search(sentence)
    return _bound(_parse_duration(found[1])) if found else None


def parse_wait(value: Any, now: float | None = None) -> float | None:
    """Return the seconds of a wait: a number, a duration `1m2.5s`, or, if `now` is known, a time in Unix seconds or
    milliseconds, an RFC 3339 time or an HTTP date; None if it is none of them."""
    if isinstance(value, dict):  # google.protobuf.Duration as an object
        value = value.get("seconds")
    number = _parse_number(value)
    if number is None and isinstance(value, str):
        text = value.strip()
        if _DURATION.fullmatch(text):
            return _bound(_parse_duration(text))
        return _bound(_seconds_until(text, now))
    if number is None or number < _LATEST_WAIT:
        return _bound(number)
    return None if now is None else _bound((number / 1000 if number > _LATEST_TIME else number) - now)


def _bound(seconds: float | None) -> float | None:
    return None if seconds is None else min(max(seconds, 0.0), MAX_SECONDS)


def _parse_duration(text: str) -> float:
    parts = ((number, unit.lower()) for number, unit in _NUMBER_AND_UNIT.findall(text))
    return sum(float(number) * _UNITS["ms" if unit == "milli" else unit] for number, unit in parts)


def _parse_number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _seconds_until(date: str, now: float | None) -> float | None:
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            return None if now is None else parse(date).timestamp() - now
        except (ValueError, OverflowError):
            continue
    return None
