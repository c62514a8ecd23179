"""Short lines of log events, for people."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.proxy.telemetry.short_line import format_short

EXCHANGE: dict[str, Any] = {
    "timestamp": "12:01:07",  # what is no timestamp stays as it is
    "level": "info",
    "event": "exchange",
    "path": "/v1/chat/completions",
    "model": "fast",
    "target": "lakehouse/llama-4",
    "status": 200,
    "outcome": "ok",
    "attempts": 1,
    "duration_ms": 1234.5,
    "tokens_in": 312,
    "tokens_out": 88,
    "changes": [
        {"action": "dropped", "weight": "loss", "reason": "r", "before": "seed"},
        {"action": "renamed", "weight": "form", "reason": "r", "before": "max_completion_tokens", "after": "x"},
    ],
}


def show(**fields: Any) -> str:
    line = {name: value for name, value in {**EXCHANGE, **fields}.items() if value is not None}
    return format_short(line).removeprefix("12:01:07 ")


def test_an_exchange_is_one_short_line() -> None:
    assert format_short(EXCHANGE) == "12:01:07 fast -> lakehouse 200 1.2 s 312+88 tok -seed"


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"key": "ci", "changes": None}, "fast -> lakehouse [ci] 200 1.2 s 312+88 tok"),
        ({"tokens_in": None, "tokens_out": None, "changes": None}, "fast -> lakehouse 200 1.2 s"),
        ({"tokens_out": None, "changes": None, "duration_ms": 41.7}, "fast -> lakehouse 200 42 ms 312+? tok"),
        ({"changes": None, "duration_ms": 128_400}, "fast -> lakehouse 200 128 s 312+88 tok"),
        (
            {"attempts": 2, "status": 502, "fault": "upstream_unreachable", "message": "p: no\nmore", "changes": None},
            "fast -> lakehouse 502 1.2 s 312+88 tok 2 tries upstream_unreachable: p: no",
        ),
        (
            {"outcome": "client_left", "status": None, "changes": None},
            "fast -> lakehouse - 1.2 s 312+88 tok the client left",
        ),
        (
            {"model": None, "target": None, "status": 401, "tokens_in": None, "tokens_out": None, "changes": None},
            "/v1/chat/completions 401 1.2 s",
        ),
    ],
)
def test_what_else_happened_is_said(fields: dict[str, Any], shown: str) -> None:
    assert show(**fields) == shown


def test_only_losses_and_emulations_are_shown_and_only_some() -> None:
    def change(action: str, path: str, weight: str = "loss") -> dict[str, str]:
        return {"action": action, "weight": weight, "reason": "r", "before": path}

    changes = [
        change("clamped", "temperature"),
        change("emulated", "n", "form"),
        {"action": "converted"},
        *[change("dropped", f"f{number}") for number in range(7)],
    ]
    assert show(changes=changes).partition("tok ")[2] == "~temperature *n -f0 -f1 -f2 and 4 more"


@pytest.mark.parametrize(
    ("losses", "shown"),
    [([{"action": "dropped", "weight": "loss", "before": "seed"}], "-seed and 1 more"), (None, "2 lost")],
)
def test_a_running_proxy_counts_losses_and_lists_the_first(losses: object, shown: str) -> None:
    assert show(changes={"form": 3, "loss": 2}, losses=losses).partition("tok ")[2] == shown


@pytest.mark.parametrize(("key", "shown"), [(None, ""), ("team-a", " [team-a]")])
def test_a_list_of_models_is_short(key: str | None, shown: str) -> None:
    line = {"timestamp": "12:01:07", "event": "model_list", "level": "info", "request_id": "x", "bytes": 495}
    assert format_short({**line, "dialect": "openai", "key": key}) == f"12:01:07 list of models for openai{shown}"


def test_a_refused_request_names_its_path() -> None:
    line = {"timestamp": "12:01:07", "event": "refused", "method": "POST", "path": "/v1/no", "status": 404}
    text = format_short({**line, "level": "info", "fault": "unknown_path", "message": "nothing is here"})
    assert text == "12:01:07 POST /v1/no 404 unknown_path nothing is here"


@pytest.mark.parametrize(
    "odd", [{"changes": "x"}, {"changes": [1, {}]}, {"duration_ms": "x"}, {"target": 7}, {"status": []}]
)
def test_lines_of_other_programs_are_shown_too(odd: dict[str, Any]) -> None:
    assert show(**odd)


def test_an_event_without_anything_is_shown() -> None:
    assert format_short({}) == " None"
