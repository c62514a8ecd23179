"""Read how long a provider asks clients to wait, from the headers of its response."""

from __future__ import annotations

import math
from email.utils import parsedate_to_datetime

from .call import Headers

__all__ = ["MAX_SECONDS", "read_retry_after"]

MAX_SECONDS = 3600.0


def read_retry_after(headers: Headers, now: float) -> float | None:
    """Return the seconds to wait, at most an hour; None without a valid header. `now` is in Unix seconds.

    Reads `retry-after-ms`, else `retry-after`, which holds seconds or an HTTP date (RFC 9110).
    """
    seconds = _parse_seconds(headers.get("retry-after-ms"))
    if seconds is not None:
        seconds /= 1000
    elif (text := headers.get("retry-after")) is not None:
        seconds = _parse_seconds(text)
        if seconds is None:
            seconds = _seconds_until(text, now)
    return None if seconds is None else min(seconds, MAX_SECONDS)


def _parse_seconds(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _seconds_until(date: str, now: float) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - now)
    except (ValueError, OverflowError):
        return None
