"""Judging again what was accepted: whatever the shortcut, the verdict is that of the whole schema."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.adapters.validation import Judge, judge

MESSAGES = [{"role": "user", "content": "hi"}]
CHAT = {"model": "m", "messages": MESSAGES, "temperature": 1}
BODIES = {
    "openai/chat.request": CHAT,
    "databricks/chat.request": CHAT,
    "azure/chat.request": CHAT,
    "mindie/chat.request": CHAT,
    "openai/responses.request": {"model": "m", "input": "hi", "temperature": 1},
}
CHANGES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "the name": {"model": "other"},
    "a name that is none": {"model": ""},
    "a name of another type": {"model": 7},
    "another value": {"temperature": 0.5},
    "a bad value": {"temperature": True},
    "one more key": {"top_p": 2},
    "a name and a bad value": {"model": "other", "temperature": "hot"},
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", BODIES)
def test_judging_again(name: str, change: str) -> None:
    rules, accepted = judge(name, "actual"), BODIES[name]
    body = {**accepted, **CHANGES[change]}
    assert rules.ok(accepted)
    assert rules.ok_again(body, accepted) == rules.ok(body)
    without = {key: value for key, value in body.items() if key != "model"}
    assert rules.ok_again(without, accepted) == rules.ok(without)


def test_only_the_name_is_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = judge("openai/chat.request", "actual")
    monkeypatch.setattr(rules, "ok", lambda body: pytest.fail("the whole body was judged"))
    assert rules.ok_again({**CHAT, "model": "other"}, CHAT)
    assert not rules.ok_again({**CHAT, "model": ""}, CHAT)


def test_a_schema_with_a_rule_about_the_name_and_others(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = {"if": {"properties": {"model": {"const": "b"}}}, "then": {"required": ["x"]}}
    schema = {"properties": {"model": {"type": "string"}}, "allOf": [rule]}
    monkeypatch.setattr("dragoman.adapters.validation.load", lambda *_: schema)
    rules = Judge("made", "up")
    assert not rules.ok_again({"model": "b"}, {"model": "a"})
