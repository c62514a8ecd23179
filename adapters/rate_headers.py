"""The headers that tell a client what its limits on requests and tokens leave it.

form                         limit, remaining   reset                       more
---------------------------  -----------------  --------------------------  ---------------------------------------
OpenAI                       numbers            a duration: `20ms`, `1m0s`
Azure OpenAI, AI inference   numbers            whole seconds               x-ratelimit-renewalperiod-*, in seconds
Anthropic                    numbers            an RFC 3339 time

Databricks and MindIE document none, and their packages read none. Every dialect has `retry-after` on 429.

Sources: OpenAI API reference, rate limits in headers; replies of Azure OpenAI and of GitHub Models;
Anthropic API reference, rate limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias

__all__ = [
    "ANTHROPIC_RATE_HEADERS",
    "AZURE_RATE_HEADERS",
    "OPENAI_RATE_HEADERS",
    "RateHeaders",
    "RateLeft",
    "format_duration",
    "write_headers",
]

_MINUTE = "60"


class RateLeft(NamedTuple):
    """What is left of a limit of so many units a minute: requests or tokens. `reset` is in how many seconds all of them
    are there again, `now` the time in seconds since 1970."""

    unit: str
    limit: int
    remaining: int
    reset: float
    now: float


RateHeaders: TypeAlias = Mapping[str, Callable[[RateLeft], str]]
"""Maps names of headers, with `{unit}` for requests or tokens, to what makes their values."""


def format_duration(seconds: float) -> str:
    """Return a duration as OpenAI writes it: 20ms, 1.5s, 1m30s."""
    if seconds < 1:
        return f"{math.ceil(seconds * 1000)}ms"
    if seconds < 59.95:  # which has one decimal, as 59.9s
        return f"{seconds:.3g}s"
    minutes, rest = divmod(math.ceil(seconds), 60)
    return f"{minutes}m{rest}s"


_COUNTS: RateHeaders = {
    "x-ratelimit-limit-{unit}": lambda left: str(left.limit),
    "x-ratelimit-remaining-{unit}": lambda left: str(left.remaining),
}

OPENAI_RATE_HEADERS: RateHeaders = {
    **_COUNTS,
    "x-ratelimit-reset-{unit}": lambda left: format_duration(left.reset),
}

AZURE_RATE_HEADERS: RateHeaders = {
    **_COUNTS,
    "x-ratelimit-reset-{unit}": lambda left: str(math.ceil(left.reset)),
    "x-ratelimit-renewalperiod-{unit}": lambda _left: _MINUTE,
}


ANTHROPIC_RATE_HEADERS: RateHeaders = {
    "anthropic-ratelimit-{unit}-limit": lambda left: str(left.limit),
    "anthropic-ratelimit-{unit}-remaining": lambda left: str(left.remaining),
    "anthropic-ratelimit-{unit}-reset": lambda left: _format_time(math.ceil(left.now + left.reset)),
}


def _format_time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def write_headers(form: RateHeaders, lefts: Iterable[RateLeft]) -> dict[str, str]:
    """Return the headers for these limits."""
    return {name.format(unit=left.unit): value(left) for left in lefts for name, value in form.items()}
