"""Requests that real Messages clients send are served by every provider, by default."""

from __future__ import annotations

import json
from pathlib import Path as File

import pytest

from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.registry import dialects
from dragoman.adapters.translate.bridge import BRIDGES
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject
from tests.tables import for_each

CLIENTS = File(__file__).parents[1] / "messages" / "fixtures" / "clients"
THREADS = "thread"  # messages that the server keeps: a provider of another protocol has no such thing
PDF = "claude_code_images_and_errors"
PROVIDERS = [
    (name, called)
    for name, dialect in dialects.items()
    for called in [bridge.called for bridge in BRIDGES["messages"]]
    if called in dialect.called
]
HABITS = {"cache_control", "user_id", "is_error", "thinking", "signature", "effort"}
"""What these clients send in every request, and what no provider of another protocol has."""


def load_body(name: str) -> JsonObject:
    found = json.loads((CLIENTS / f"{name}.json").read_text("utf-8"))
    body: JsonObject = found["body"]
    return body


NAMES = [file.stem for file in sorted(CLIENTS.glob("*.json"))]
ORDINARY = [name for name in NAMES if THREADS not in name and name != PDF]


def write(name: str, dialect: str, called: str) -> tuple[JsonObject, Context]:
    body = load_body(name)
    bridge = next(one for one in BRIDGES["messages"] if one.called == called)
    ctx = Context("actual", Call("POST", "/", body), Receipt(), Target("m", policy=Policy()), body)
    try:
        made = bridge.request(ctx)
        assert [one.message for one in load_validator(f"hub/{called}.request").violations(made.request)] == []
        return dialects[dialect].called[called].write_request(made.request, made).body, made
    except Fault as fault:
        raise fault.locate(ctx.receipt, body) from None


@for_each(("dialect", "called"), PROVIDERS)
@for_each("name", ORDINARY)
def test_a_request_is_served_and_loses_only_habits(name: str, dialect: str, called: str) -> None:
    body, made = write(name, dialect, called)
    assert body
    assert {change.before[-1] for change in made.receipt.losses} <= HABITS


@pytest.mark.parametrize(("dialect", "called"), PROVIDERS)
def test_a_document_is_refused_where_there_are_none(dialect: str, called: str) -> None:
    if dialect == "openai" or called == "responses":
        assert b"application/pdf" in json.dumps(write(PDF, dialect, called)[0]).encode()
        return
    with pytest.raises(Fault) as caught:
        write(PDF, dialect, called)
    assert caught.value.path[:1] == ("messages",)


@pytest.mark.parametrize("name", [name for name in NAMES if THREADS in name])
def test_messages_that_the_server_keeps_are_refused_by_name(name: str) -> None:
    with pytest.raises(Fault) as caught:
        write(name, "openai", "chat")
    assert caught.value.param == "thread"
