"""Gemini 3 refuses calls without a signature, and many agents send back only the keys of a call that they know."""

from __future__ import annotations

from copy import deepcopy

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Target
from dragoman.adapters.changes import Receipt
from dragoman.contract.json_types import JsonObject

GOOGLE = "generativelanguage.googleapis.com"
PLACEHOLDER = {"extra_content": {"google": {"thought_signature": "skip_thought_signature_validator"}}}
SIGNED = {"extra_content": {"google": {"thought_signature": "CtcBAVSoXO4"}}}
VERTEX = {"extra_content": {"vertex": {"thought_signature": "AY89a18"}}}


def make_call(name: str, **keys: object) -> JsonObject:
    return {"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}, **keys}


def write(calls: list[JsonObject], model: str, host: str) -> tuple[list[JsonObject], Receipt]:
    said = [{"role": "user", "content": "x"}, {"role": "assistant", "content": None, "tool_calls": calls}]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in calls]
    body: JsonObject = {"model": "m", "messages": [*said, *results]}
    before, receipt = deepcopy(body), Receipt()
    ctx = Context("actual", Call("POST", "/", body), receipt, Target(model, host=host), body)
    made = dialects["openai"].called["chat"].write_request(body, ctx).body
    assert body == before, "the client's request was altered"
    return list(made["messages"][1]["tool_calls"]), receipt


@pytest.mark.parametrize("model", ["gemini-3-pro-preview", "models/gemini-3-flash-preview", "google/gemini-3.1-pro"])
def test_the_first_of_the_calls_that_lost_their_signature_gets_the_placeholder(model: str) -> None:
    found, receipt = write([make_call("a"), make_call("b")], model, GOOGLE)
    assert found == [make_call("a", **PLACEHOLDER), make_call("b")]
    assert [change.after for change in receipt.losses] == [("messages", 1, "tool_calls", 0, "extra_content")]


@pytest.mark.parametrize("keys", [SIGNED, VERTEX])
def test_a_signature_that_came_back_stays(keys: JsonObject) -> None:
    calls = [make_call("a", **keys), make_call("b")]
    found, receipt = write(calls, "gemini-3-pro-preview", GOOGLE)
    assert found == calls and not receipt.losses


@pytest.mark.parametrize(
    ("model", "host"),
    [("gemini-2.5-pro", GOOGLE), ("gemini-3-pro-preview", "openrouter.ai"), ("gpt-5", "api.openai.com")],
)
def test_other_models_and_services_get_no_placeholder(model: str, host: str) -> None:
    found, receipt = write([make_call("a")], model, host)
    assert found == [make_call("a")] and not receipt.losses
