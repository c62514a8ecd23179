"""What Databricks' models accept by their family, and how hard they may think."""

from __future__ import annotations

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, JsonObject, Target
from dragoman.adapters.changes import Receipt

MARK = {"type": "ephemeral"}
MARKED: JsonObject = {
    "model": "m",
    "messages": [
        {"role": "system", "content": [{"type": "text", "text": "Be brief.", "cache_control": MARK}]},
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, "cache_control": MARK}
            ],
        },
        {"role": "tool", "tool_call_id": "c", "content": "x"},
    ],
    "tools": [
        {
            "type": "function",
            "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}},
            "cache_control": MARK,
        }
    ],
}
PLACES = [
    ("messages", 0, "content", 0, "cache_control"),
    ("messages", 2, "tool_calls", 0, "cache_control"),
    ("tools", 0, "cache_control"),
]


def send(request: JsonObject, model: str, **settings: frozenset[str]) -> tuple[JsonObject, Receipt]:
    target = Target(model, dialect="databricks", **settings)  # type: ignore[arg-type]
    ctx = Context("actual", Call("POST", "/", request), Receipt(), target, request)
    return dialects["databricks"].called["chat"].write_request(request, ctx).body, ctx.receipt


@pytest.mark.parametrize("model", ["databricks-claude-sonnet-4-5", "system.ai.claude-opus-4-8"])
def test_claude_gets_the_marks_of_prompt_caching(model: str) -> None:
    body, receipt = send(MARKED, model)
    assert body["messages"][0]["content"][0]["cache_control"] == MARK
    assert body["messages"][2]["tool_calls"][0]["cache_control"] == MARK
    assert body["tools"][0]["cache_control"] == MARK
    assert not [change for change in receipt.changes if "cache_control" in change.before]


@pytest.mark.parametrize("model", ["databricks-meta-llama-3-3-70b-instruct", "databricks-gpt-5", "my-endpoint"])
def test_other_models_get_no_marks(model: str) -> None:
    body, receipt = send(MARKED, model)
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert "cache_control" not in body["messages"][2]["tool_calls"][0]
    assert "cache_control" not in body["tools"][0]
    dropped = [(change.before, change.weight) for change in receipt.changes if "cache_control" in change.before]
    assert dropped == [(place, "loss") for place in PLACES]
    assert "cache_control" in MARKED["tools"][0]


def test_an_endpoint_may_be_configured_to_take_them() -> None:
    body, _ = send(MARKED, "my-endpoint", takes=frozenset({"cache_control"}))
    assert body["tools"][0]["cache_control"] == MARK


@pytest.mark.parametrize("effort", ["none", "minimal", "low", "medium", "high", "xhigh", "max"])
def test_every_effort_is_sent(effort: str) -> None:
    request = {"model": "m", "messages": [{"role": "user", "content": "go"}], "reasoning_effort": effort}
    body, receipt = send(request, "my-endpoint")
    assert body["reasoning_effort"] == effort
    assert receipt.header() is None
