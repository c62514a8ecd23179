"""The tokens of an exchange, in every protocol's form."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.proxy.telemetry.record import ExchangeRecord, Outcome
from dragoman.proxy.telemetry.token_counts import TokenCounts, read_token_counts


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        (None, (None, None, None)),
        ({}, (None, None, None)),
        ({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}, (3, 4, None)),
        ({"prompt_tokens": 3, "total_tokens": 3}, (3, None, None)),
        ({"prompt_tokens": 3, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 2}}, (3, 4, 2)),
        ({"input_tokens": 3, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 0}}, (3, 4, 0)),
        ({"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 10}, (13, 4, 10)),
        ({"input_tokens": 3, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 5}, (18, None, 10)),
        ({"input_tokens": 3, "output_tokens": 4, "cache_creation_input_tokens": 5}, (8, 4, None)),
        ({"prompt_tokens": 10**19, "completion_tokens": -1}, (None, None, None)),
        ({"prompt_tokens": "3", "completion_tokens": True, "prompt_tokens_details": []}, (None, None, None)),
    ],
)
def test_usages_of_every_protocol(usage: dict[str, Any] | None, counts: tuple[int | None, ...]) -> None:
    assert read_token_counts(usage) == TokenCounts(*counts)


@pytest.mark.parametrize(
    ("outcome", "events", "usage", "target", "counts"),
    [
        ("client_left", 0, None, "p/m", (3, 0)),
        ("client_left", 5, None, "p/m", (3, 5)),
        ("client_left", 5, {"prompt_tokens": 7, "completion_tokens": 8}, "p/m", (7, 8)),
        ("client_left", 5, {"input_tokens": 7, "output_tokens": 1}, "p/m", (7, 5)),
        ("client_left", 5, {"input_tokens": 0, "output_tokens": 0}, "p/m", (3, 5)),
        ("fault", 5, {"input_tokens": 7, "output_tokens": 1, "cache_read_input_tokens": 2}, "p/m", (9, 5)),
        ("fault", 0, {"prompt_tokens": 7, "completion_tokens": 8}, "p/m", (7, 8)),
        ("client_left", 0, None, None, (None, None)),
        ("fault", 5, None, "p/m", (3, 5)),
        ("fault", 0, None, "p/m", (None, None)),
        ("ok", 5, None, "p/m", (None, None)),
    ],
)
def test_an_answer_that_did_not_come_to_its_usage_is_estimated(
    outcome: Outcome, events: int, usage: dict[str, Any] | None, target: str | None, counts: tuple[int | None, ...]
) -> None:
    record = ExchangeRecord("id", "openai", "chat")
    record.outcome, record.events, record.usage, record.target = outcome, events, usage, target
    record.request_bytes = 10
    record.end()
    assert (record.tokens.input, record.tokens.output) == counts
