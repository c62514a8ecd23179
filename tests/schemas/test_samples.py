"""The documents' own samples are valid in the documented profile, and in the wider ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dragoman.schemas import profiles

from .conftest import FindErrors, ReadFixture

FIXTURES = Path(__file__).parent / "fixtures"
SAMPLES = [
    ("azure.request.json", "azure/chat.request"),
    ("azure.reply.json", "azure/chat.reply"),
    ("mindie.request.one_turn.json", "mindie/chat.request"),
    ("mindie.request.two_turns.json", "mindie/chat.request"),
    ("mindie.reply.json", "mindie/chat.reply"),
]


@pytest.mark.parametrize(("sample", "name"), SAMPLES)
def test_a_sample_body_is_valid(sample: str, name: str, fixture: ReadFixture, errors: FindErrors) -> None:
    for profile in profiles(name):
        assert not errors(name, fixture(sample), profile)


def test_every_event_of_the_sample_stream_is_valid(errors: FindErrors) -> None:
    lines = (FIXTURES / "mindie.stream.sse").read_text("utf-8").split("\n\n")
    datas = [line.removeprefix("data: ") for line in lines if line]
    assert datas.pop() == "[DONE]" and len(datas) == 20
    for profile in profiles("mindie/chat.event"):
        assert not [error for data in datas for error in errors("mindie/chat.event", json.loads(data), profile)]


@pytest.mark.parametrize("side", ["request", "reply"])
def test_completions_of_databricks_with_every_documented_default(
    side: str, fixture: ReadFixture, errors: FindErrors
) -> None:
    for profile in ("documented", "actual"):
        assert not errors(f"databricks/completions.{side}", fixture("databricks.completions.json")[side], profile)


def test_inline_examples_of_databricks_are_valid(fixture: ReadFixture, errors: FindErrors) -> None:
    inline = fixture("databricks.inline.json")
    tools = [{"type": "function", "function": {"name": "my_function", "description": "does it"}}]
    body = {"messages": [{"role": "user", "content": "x"}], "tools": tools, "tool_choice": inline["tool_choice"]}
    for profile in ("documented", "actual"):
        assert not errors("databricks/chat.request", body, profile)
        for form in ("json_object", "json_schema"):
            assert not errors("databricks/chat.request", {**body, "response_format": inline[form]}, profile)


def test_the_samples_are_what_the_other_dialects_would_refuse(fixture: ReadFixture, errors: FindErrors) -> None:
    """The schemas do tell the dialects apart: a MindIE reply is no OpenAI reply."""
    [finish] = [
        e for e in errors("openai/chat.reply", fixture("mindie.reply.json")) if "finish_reason" in e.instance_path
    ]
    assert finish.kind.name == "enum"
