"""What `dragoman validate` finds in payloads of every dialect and side."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from typer.testing import Result

from tests.dialects import DIALECTS

Run = Callable[..., Result]

FILES = {"request": "request.json", "reply": "reply.json", "stream": "stream.sse"}


@pytest.mark.parametrize(("dialect", "side"), list(product(DIALECTS, FILES)))
def test_valid(dialect: str, side: str, run: Run, fixtures: Path) -> None:
    result = run("validate", f"{dialect}/chat/{side}", "--profile", "actual", fixtures / dialect / FILES[side])
    assert (result.exit_code, result.stdout, result.stderr) == (0, "valid\n", "")


@pytest.mark.parametrize("what", ["openai/chat.request", "hub/chat/request", "hub/chat.request"])
def test_names(what: str, run: Run, fixtures: Path) -> None:
    assert run("validate", what, fixtures / "openai" / "request.json").stdout == "valid\n"


REQUEST = '{"model": "m", "messages": [{"role": "user", "content": "x"}], %s}'
REFERENCE = "MindIE OpenAI-compatible API reference, request parameters"

VIOLATIONS = [
    ("mindie/chat/request", REQUEST % '"temperature": 9', "temperature", "must be at most 2, got 9", 9, REFERENCE),
    ("mindie/chat/request", REQUEST % '"temperature": 0', "temperature", "must be greater than 0", 0, REFERENCE),
    ("mindie/chat/request", '{"model": "m"}', "messages", "messages is required", None, REFERENCE),
    (
        "databricks/chat/request",
        '{"messages": [{"role": "user", "content": 1}]}',
        "messages[0].content",
        "messages[0].content",
        1,
        "Databricks Foundation Model API reference, ChatMessage",
    ),
    (
        "azure/chat/request",
        '{"messages": [{"role": "user", "content": "x", "seed": 1}]}',
        "messages[0].seed",
        "messages[0].seed is not a known parameter",
        1,
        "Azure AI model inference REST reference",
    ),
    (
        "databricks/chat/request",
        '{"messages": [{"role": "user", "content": "x"}], "tools": [{"type": "function", "function": {"x": 1}}]}',
        "tools[0].function.name",
        "is required",
        None,
        "Databricks Foundation Model API reference, FunctionObject",
    ),
    (
        "openai/chat/reply",
        '{"id": "x", "object": "x", "created": 1, "model": "m", "choices": []}',
        "object",
        "chat.completion",
        "x",
        "OpenAI OpenAPI 2.3",
    ),
    ("openai/chat/event", "[]", "", "The body must be of type object, got array", [], None),
    ("openai/chat/error", '{"error": {"message": 1}}', "error.message", "string", 1, "OpenAI OpenAPI 2.3"),
]


@pytest.mark.parametrize(("what", "payload", "path", "message", "value", "source"), VIOLATIONS)
def test_violations(
    what: str, payload: str, path: str, message: str, value: object, source: str | None, run: Run
) -> None:
    result = run("validate", what, "--format", "json", stdin=payload)
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert told["valid"] is False
    assert told["profile"] == "documented"
    found = {violation["path"]: violation for violation in told["violations"]}
    assert message in found[path]["message"]
    assert found[path]["value"] == value
    assert found[path]["source"] == [] if source is None else source in " ".join(found[path]["source"])


def test_text(run: Run) -> None:
    result = run("validate", "mindie/chat/request", stdin=REQUEST % '"temperature": 9, "top_p": "x"')
    assert result.exit_code == 1
    assert result.stdout == (
        "temperature must be at most 2, got 9\n"
        "  value: 9\n"
        f"  source: {REFERENCE}; the reference recommends at least 0.001\n"
        'top_p must be of type number or null, got string "x"\n'
        '  value: "x"\n'
        f"  source: {REFERENCE}\n"
    )


def test_valid_as_json(run: Run) -> None:
    result = run("validate", "mindie/chat/request", "--format", "json", stdin=REQUEST % '"seed": 1')
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "valid": True,
        "schema": "mindie/chat.request",
        "profile": "documented",
        "violations": [],
    }


def test_long_values_are_cut_in_text_only(run: Run) -> None:
    payload = REQUEST % f'"temperature": "{"x" * 500}"'
    shown = run("validate", "mindie/chat/request", stdin=payload).stdout.splitlines()[1]
    assert shown.startswith('  value: "xxx')
    assert len(shown) < 100
    whole = json.loads(run("validate", "mindie/chat/request", "--format", "json", stdin=payload).stdout)
    assert whole["violations"][0]["value"] == "x" * 500


def test_profiles_differ(run: Run) -> None:
    payload = REQUEST % '"stop": [1, 2]'
    for profile, code in (("documented", 0), ("actual", 1), ("native", 1)):
        assert run("validate", "mindie/chat/request", "--profile", profile, stdin=payload).exit_code == code


def test_what_no_schema_says(run: Run) -> None:
    """Rules that span several fields hold as in the proxy."""
    tool = '"tools": [{"type": "function", "function": {"name": "a"}}]'
    choice = '"tool_choice": {"type": "function", "function": {"name": "b"}}'
    result = run("validate", "openai/chat/request", "--format", "json", stdin=REQUEST % f"{tool}, {choice}")
    assert result.exit_code == 1
    [violation] = json.loads(result.stdout)["violations"]
    assert violation["path"] == "tool_choice.function.name"
    assert violation["value"] == "b"


@pytest.mark.parametrize(
    ("what", "payload", "told"),
    [
        ("openai/chat/request", '{"a": 1, "a": 2}', "has the key a more than once"),
        ("openai/chat/request", "{", "The body is not valid JSON"),
        ("openai/chat/request", "", "The body is empty"),
        ("openai/chat/reply", "{", "The payload is not valid JSON"),
        ("openai/chat/error", "Service Unavailable", "The payload is not valid JSON"),
    ],
)
def test_what_is_no_json(what: str, payload: str, told: str, run: Run) -> None:
    result = run("validate", what, stdin=payload)
    assert result.exit_code == 1
    assert told in result.stdout


CHUNK = (
    'data: {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",'
    ' "choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": %s}]}\n\n'
)
STREAMS = [
    (CHUNK % "null", [(None, "no finish reason came")]),
    (CHUNK % "null" + "data: [DONE]\n\n", [(None, "no finish reason came")]),
    ("", [(None, "no finish reason came")]),
    (CHUNK % '"stop"' + "data: [DONE]\n\n", []),
    (CHUNK % '"stop"', []),
    ("data: {\n\n", [(1, "is not valid JSON"), (None, "is not a chunk of an answer")]),
    (CHUNK % "null" + "oh no\n\n", [(2, "The line does not belong to an event"), (None, "oh no")]),
    (CHUNK % '"stop"' + CHUNK.replace('"created": 1', '"created": "x"') % '"stop"', [(2, "created must be")]),
]


@pytest.mark.parametrize(("stream", "expected"), STREAMS)
def test_stream(stream: str, expected: list[tuple[int | None, str]], run: Run) -> None:
    result = run("validate", "openai/chat/stream", "--format", "json", stdin=stream)
    assert result.exit_code == (1 if expected else 0)
    found = json.loads(result.stdout)["violations"]
    assert [violation.get("event") for violation in found] == [event for event, _ in expected]
    for violation, (_, told) in zip(found, expected, strict=True):
        assert told in violation["message"]


def test_stream_as_text(run: Run) -> None:
    result = run("validate", "openai/chat/stream", stdin=CHUNK % "null" + "oh no\n\n")
    assert result.stdout == (
        "event 2: The line does not belong to an event\n"
        '  value: "oh no"\n'
        "The provider sent a text that belongs to no event: oh no\n"
    )
