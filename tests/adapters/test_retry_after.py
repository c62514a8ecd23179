"""How long a provider asks to wait, in every form that providers have used."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Reply
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.native_errors import read_error_object
from dragoman.adapters.retry_after import find_wait, parse_wait, read_reset
from tests.dialects import DIALECTS
from tests.tables import for_each

NOW = 1_800_000_000.0
CTX = Context("actual", Call("POST", "/chat/completions", {}), Receipt(), clock=lambda: NOW)
PLAIN = {"error": {"message": "Slow down", "type": "rate_limit_error"}}


def read(status: int, body: Any, headers: dict[str, str], dialect: str = "openai") -> Fault:
    reply = Reply(status, body if isinstance(body, dict) else {}, headers, orjson.dumps(body))
    return dialects[dialect].called["chat"].read_fault(reply, CTX)


@for_each(
    ("headers", "seconds"),
    [
        ({"retry-after": "3", "x-ratelimit-reset-requests": "9s"}, 3.0),
        ({"x-ms-retry-after-ms": "1500"}, 1.5),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s"}, 1.0),
        (
            {
                "x-ratelimit-remaining-requests": "99",
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "1m2.5s",
            },
            62.5,
        ),
        ({"x-ratelimit-reset-tokens": "120ms"}, 0.12),
        ({"x-ratelimit-reset-tokens": "2h3m4s"}, 3600.0),
        ({"x-ratelimit-reset-tokens-minute": "11.38230"}, 11.3823),
        ({"x-ratelimit-reset": "1800000020"}, 20.0),
        ({"x-ratelimit-reset": "1800000020500"}, 20.5),
        ({"x-ratelimit-reset": "1700000000"}, 0.0),
        ({"ratelimit-reset": "30"}, 30.0),
        (
            {
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2027-01-15T08:00:40Z",
                "anthropic-ratelimit-tokens-remaining": "5000",
                "anthropic-ratelimit-tokens-reset": "2027-01-15T08:10:00Z",
            },
            40.0,
        ),
        ({"x-ratelimit-reset": "soon"}, None),
        ({"x-ratelimit-reset": ""}, None),
        ({"x-ratelimit-limit-requests": "60"}, None),
    ],
)
@for_each("dialect", DIALECTS)
def test_headers(headers: dict[str, str], seconds: float | None, dialect: str) -> None:
    assert read(429, PLAIN, headers, dialect).retry_after == seconds


BODIES: list[tuple[str, int, Any, float | None]] = [
    ("Gemini", 429, [{"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED", "details": [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []},
        {"@type": "type.googleapis.com/google.rpc.Help", "links": []},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "13s"}]}}], 13.0),
    ("Gemini", 429, {"error": {"code": 429, "message": "m", "details": [
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.074824224s"}]}}, 34.074824224),
    ("Databricks", 429, {"error_code": "REQUEST_LIMIT_EXCEEDED", "message": "m", "details": [
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retry_delay": {"seconds": 7}}]}, 7.0),
    ("OpenAI", 429, {"error": {"message": "Rate limit reached for gpt-4o on tokens per min: Limit 30000, Used 29000, "
        "Requested 1500. Please try again in 7.66s. Visit https://platform.openai.com/account/rate-limits",
        "code": "rate_limit_exceeded"}}, 7.66),
    ("OpenAI", 429, {"error": {"message": "Limit: 3 / min. Please try again in 20s. Contact us."}}, 20.0),
    ("OpenAI", 429, {"error": {"message": "Please try again in 6m0s."}}, 360.0),
    ("OpenAI", 429, {"error": {"message": "Please try again in 320ms."}}, 0.32),
    ("Groq", 429, {"error": {"message": "Please try again in 7m12.5s. Need more tokens?"}}, 432.5),
    ("Azure", 429, {"error": {"code": "429", "message": "Requests have exceeded the call rate limit of your "
        "current OpenAI S0 pricing tier. Please retry after 60 seconds."}}, 60.0),
    ("Azure", 429, {"error": {"message": "Please retry after 1 second."}}, 1.0),
    ("Azure", 429, {"statusCode": 429, "message": "Rate limit is exceeded. Try again in 43 seconds."}, 43.0),
    ("a gateway", 429, {"message": "Too many requests, please try again in 1 minute"}, 60.0),
    ("GitHub Models", 429, {"error": {"code": "RateLimitReached", "message": "Rate limit of 10 per 60s exceeded for "
        "UserByModelByMinute. Please wait 45 seconds before retrying."}}, 45.0),
    ("Gemini", 429, {"error": {"message": "Please retry in 13.4s."}}, 13.4),
    ("OpenRouter", 429, {"error": {"code": 429, "message": "Rate limit exceeded: free-models-per-min. ", "metadata": {
        "headers": {"X-RateLimit-Limit": "20", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1800000060000"},
        "provider_name": None}}}, 60.0),
    ("OpenRouter", 429, {"error": {"code": 429, "message": "m", "metadata": {"headers": {"Retry-After": "4"}}}}, 4.0),
    ("OpenRouter", 429, {"error": {"code": 429, "message": "m", "metadata": {"retry_after": 17}}}, 17.0),
    ("OpenRouter", 429, {"error": {"code": 429, "message": "m", "metadata": {"retry_after_seconds": 8.5}}}, 8.5),
    ("OpenRouter", 429, {"error": {"code": 429, "message": "Provider returned error", "metadata": {"raw":
        '{"error": {"message": "Rate limited. Please try again in 3s", "code": 429}}'}}}, 3.0),
    ("Hugging Face", 503, {"error": "Model gpt2 is currently loading", "estimated_time": 20.0}, 20.0),
    ("a number that is no wait", 429, {"error": {"message": "m", "retry_after": -5}}, None),
    ("a sentence without a time", 429, {"error": {"message": "Please try again later. Limit: 10s per model"}}, None),
    ("an error that waiting does not help", 400, {"error": {"message": "Please try again in 20s"}}, None),
]  # fmt: skip


@for_each("dialect", DIALECTS)
@for_each(("source", "status", "body", "seconds"), BODIES)
def test_bodies(source: str, status: int, body: Any, seconds: float | None, dialect: str) -> None:
    waits = read(status, body, {}, dialect).retry_after
    assert waits == (pytest.approx(seconds) if seconds is not None else None), source


def test_headers_about_limits_come_with_every_reply_and_count_only_for_a_limit() -> None:
    headers = {"x-ratelimit-reset-requests": "8.64s"}
    assert read(400, {"error": {"message": "No"}}, headers).retry_after is None
    assert read(500, {"error": {"message": "No"}}, headers).retry_after is None
    assert read(400, {"error": {"message": "No"}}, {"retry-after": "1"}).retry_after == 1.0


def test_a_stream_says_when_to_come_again() -> None:
    body = BODIES[14][2]
    assert read_error_object(body, 200, now=NOW).retry_after == 60.0
    assert read_error_object(BODIES[3][2]).retry_after == 7.66


LONG = st.text(st.sampled_from("0123456789.-smhd:TZ retryagainfo"), max_size=40)


@given(
    LONG | st.floats() | st.integers() | st.booleans() | st.none() | st.dictionaries(LONG, st.integers(), max_size=2)
)
def test_any_value_is_a_wait_within_an_hour_or_none(value: Any) -> None:
    for now in (None, NOW):
        waits = parse_wait(value, now)
        assert waits is None or 0 <= waits <= 3600
    assert read_reset({"x-ratelimit-reset": str(value)}, NOW) in (None, parse_wait(str(value), NOW))


@given(LONG)
def test_any_sentence_is_read(text: str) -> None:
    waits = find_wait("please try again in " + text)
    assert waits is None or 0 <= waits <= 3600
