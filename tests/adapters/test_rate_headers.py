"""Headers about limits, in the forms of the dialects."""

from __future__ import annotations

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.rate_headers import RateLeft, format_duration, write_headers
from dragoman.adapters.retry_after import parse_wait
from dragoman.adapters.routes import RouteTable


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0ms"), (0.0204, "21ms"), (1.0, "1s"), (7.66, "7.66s"), (59.94, "59.9s"), (59.99, "1m0s"), (61.0, "1m1s")],
)
def test_durations(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize("seconds", [0.5, 3.25, 59.97, 119.99, 3600.0])
def test_a_duration_is_never_much_too_short(seconds: float) -> None:
    assert parse_wait(format_duration(seconds), None) == pytest.approx(seconds, abs=1)


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/v1/responses", {"x-ratelimit-reset-requests": "1m30s"}),
        ("/openai/responses", {"x-ratelimit-reset-requests": "90", "x-ratelimit-renewalperiod-requests": "60"}),
        ("/embeddings", {"x-ratelimit-reset-requests": "90", "x-ratelimit-renewalperiod-requests": "60"}),
        ("/serving-endpoints/m/invocations", None),
        ("/mindie/v1/chat/completions", None),
    ],
)
def test_forms(path: str, headers: dict[str, str] | None) -> None:
    route = RouteTable(dialects, {}).match(path)
    assert route is not None
    counts = {"x-ratelimit-limit-requests": "600", "x-ratelimit-remaining-requests": "7"}
    wanted = {} if headers is None else {**counts, **headers}
    assert write_headers(route.rate_headers, [RateLeft("requests", 600, 7, 90.0, 0.0)]) == wanted
