"""The pace of a run: the time between requests, and the pauses that a busy server asks for."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from .exchange import Response

__all__ = ["Pacer", "find_wait", "is_busy"]

_TOO_MANY, _UNAVAILABLE = 429, 503
_WAIT_HEADERS = ("retry-after-ms", "retry-after", "x-ratelimit-reset-requests", "x-ratelimit-reset-tokens")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SHORTEST, _LONGEST = 0.5, 30.0


def is_busy(response: Response) -> bool:
    """Whether the server asks the client to send the request again later: 429, or 503 with Retry-After."""
    return response.status == _TOO_MANY or (
        response.status == _UNAVAILABLE and response.header("retry-after") is not None
    )


def find_wait(response: Response) -> float | None:
    """Return how many seconds the server asks to wait, None if it does not say.

    Sources: RFC 9110, section 10.2.3 (seconds or a date); OpenAI API reference, rate limits in headers (`6m0s`).
    """
    for name in _WAIT_HEADERS:
        seconds = _parse_wait(response.header(name) or "")
        if seconds is not None:
            return max(0.0, seconds / 1000 if name.endswith("-ms") else seconds)
    return None


def _parse_wait(text: str) -> float | None:
    text = text.strip()
    if re.fullmatch(r"\d+(?:\.\d+)?", text):
        return float(text)
    if _DURATION.fullmatch(text):
        return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds()


class Pacer:
    """Keeps `delay` seconds between requests. A request that meets a busy server waits at most `max_wait` seconds.
    `waited` is how many seconds the busy server has asked for in all."""

    def __init__(
        self,
        delay: float = 0.0,
        max_wait: float = 0.0,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.max_wait, self.waited = max_wait, 0.0
        self._delay, self._sleep = delay, sleep
        self._next = 0.0

    async def wait_turn(self) -> None:
        """Wait until the next request may be sent."""
        now = time.monotonic()
        mine = max(now, self._next)
        self._next = mine + self._delay
        if mine > now:
            await self._sleep(mine - now)

    def observe(self, response: Response) -> None:
        """Hold requests back if the server says that none is left, and names the time of the next one."""
        if response.header("x-ratelimit-remaining-requests") == "0":
            wait = _parse_wait(response.header("x-ratelimit-reset-requests") or "")
            if wait is not None and wait <= self.max_wait:
                self._hold(wait)

    def plan_retry(self, response: Response, attempt: int, waited: float) -> float | None:
        """Hold all requests back until the busy server may be asked again, and return the seconds; None if the request
        would wait longer than `max_wait` in all. `attempt` counts from 0."""
        wait: float = max(find_wait(response) or 0.0, min(_SHORTEST * 2.0**attempt, _LONGEST))
        if waited + wait > self.max_wait:
            return None
        self._hold(wait)
        self.waited += wait
        return wait

    def _hold(self, seconds: float) -> None:
        self._next = max(self._next, time.monotonic() + seconds)
