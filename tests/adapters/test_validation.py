"""Validating again what was accepted: the shortcut finds what the whole schema finds."""

from __future__ import annotations

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.validation import Validator, load_validator, request_validator
from dragoman.contract.json_types import JsonObject
from tests.tables import for_each

MESSAGES = [{"role": "user", "content": "hi"}]
CHAT = {"model": "m", "messages": MESSAGES, "temperature": 1}
BODIES = {
    "openai/chat.request": CHAT,
    "databricks/chat.request": CHAT,
    "azure/chat.request": CHAT,
    "mindie/chat.request": CHAT,
    "openai/responses.request": {"model": "m", "input": "hi", "temperature": 1},
}
CHANGES: dict[str, JsonObject] = {
    "nothing": {},
    "the name": {"model": "other"},
    "a name that is none": {"model": ""},
    "a name of another type": {"model": 7},
    "another value": {"temperature": 0.5},
    "a bad value": {"temperature": True},
    "one more key": {"top_p": 2},
    "a name and a bad value": {"model": "other", "temperature": "hot"},
}


@for_each("change", CHANGES)
@for_each("name", BODIES)
def test_validating_again(name: str, change: str) -> None:
    rules, accepted = load_validator(name, "actual"), BODIES[name]
    body = {**accepted, **CHANGES[change]}
    assert rules.accepts(accepted)
    assert rules.accepts_again(body, accepted) == rules.accepts(body)
    without = {key: value for key, value in body.items() if key != "model"}
    assert rules.accepts_again(without, accepted) == rules.accepts(without)


def test_only_the_name_is_validated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = load_validator("openai/chat.request", "actual")
    monkeypatch.setattr(rules, "accepts", lambda body: pytest.fail("the whole body was validated"))
    assert rules.accepts_again({**CHAT, "model": "other"}, CHAT)
    assert not rules.accepts_again({**CHAT, "model": ""}, CHAT)


def test_a_schema_with_a_rule_about_the_name_and_others(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = {"if": {"properties": {"model": {"const": "b"}}}, "then": {"required": ["x"]}}
    schema = {"properties": {"model": {"type": "string"}}, "allOf": [rule]}
    monkeypatch.setattr("dragoman.adapters.validation.load", lambda *_: schema)
    rules = Validator("made", "up")
    assert not rules.accepts_again({"model": "b"}, {"model": "a"})


@pytest.mark.parametrize(("accepted_by", "calls"), [(None, 1), ("openai/chat.request", 0), ("azure/chat.request", 1)])
def test_a_target_with_the_schema_that_accepted_the_body_does_not_validate_it_again(
    accepted_by: str | None, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    validator = load_validator("openai/chat.request", "actual")
    accepts, validated = validator.accepts, []
    monkeypatch.setattr(validator, "accepts", lambda body: validated.append(body) or accepts(body))
    known = load_validator(accepted_by, "actual") if accepted_by else None
    ctx = Context("actual", Call("POST", "/", CHAT), Receipt(), Target("up"), CHAT, accepted_by=known)
    call = dialects["openai"].called["chat"].write_request(CHAT, ctx)
    assert (call.body["model"], len(validated)) == ("up", calls)


@pytest.mark.parametrize("profile", ["documented", "actual"])
def test_the_validator_of_a_dialects_requests(profile: str) -> None:
    for name, dialect in dialects.items():
        for protocol in dialect.served:
            assert request_validator(name, protocol, profile) is load_validator(f"{name}/{protocol}.request", profile)
    assert request_validator("made up", "chat", profile) is None
