"""How long a provider asks to wait."""

from __future__ import annotations

import math
from email.utils import parsedate_to_datetime

from .call import Headers

__all__ = ["MAX_SECONDS", "read_retry_after"]

MAX_SECONDS = 3600.0


def read_retry_after(headers: Headers, now: float) -> float | None:
    """Seconds from `retry-after-ms`, or from `retry-after` as seconds or as an HTTP date; `now` is in Unix seconds.

    At most an hour. None where there is no such header, or nothing in it that can be believed.
    """
    seconds = _number(headers.get("retry-after-ms"))
    if seconds is not None:
        seconds /= 1000
    elif (text := headers.get("retry-after")) is not None:
        seconds = _number(text)
        if seconds is None:
            seconds = _until(text, now)
    return None if seconds is None else min(seconds, MAX_SECONDS)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _until(date: str, now: float) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - now)
    except (ValueError, OverflowError):
        return None
