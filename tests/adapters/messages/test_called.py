"""Requests to providers of Messages: the limit that is filled in, and the thinking that is left out."""

from __future__ import annotations

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, JsonObject, Target
from dragoman.adapters.changes import Receipt

HELLO: JsonObject = {"role": "user", "content": "Hello"}
CLAUDE, ANY = "claude-opus-4-1", "some-model"
SIGNED = {"type": "thinking", "thinking": "t", "signature": "EqQBCkYIBRgC"}
UNSIGNED = {"type": "thinking", "thinking": "t", "signature": ""}
SEALED = {"type": "redacted_thinking", "data": "EqQBCkYIBRgD"}
OPENAI_S = {"type": "redacted_thinking", "data": "gAAAAABo"}
TEXT = {"type": "text", "text": "hi"}


def write(body: JsonObject, target: Target) -> tuple[JsonObject, Receipt]:
    receipt = Receipt()
    ctx = Context("actual", Call("POST", "/v1/messages", body), receipt, target, body)
    return dialects["anthropic"].called["messages"].write_request(body, ctx).body, receipt


@pytest.mark.parametrize(
    ("target", "limit", "weight"),
    [
        (Target(CLAUDE, limits={"max_tokens": 100}), 100, "form"),
        (Target(CLAUDE), 32000, "form"),
        (Target(ANY), 4096, "loss"),
    ],
)
def test_a_limit_is_filled_in(target: Target, limit: int, weight: str) -> None:
    body, receipt = write({"model": "m", "messages": [HELLO]}, target)
    assert body["max_tokens"] == limit
    assert [(one.action, one.after, one.weight) for one in receipt.changes] == [("filled", ("max_tokens",), weight)]


def test_a_given_limit_stays() -> None:
    body, receipt = write({"model": "m", "max_tokens": 7, "messages": [HELLO]}, Target(CLAUDE))
    assert (body["max_tokens"], receipt.changes) == (7, [])


@pytest.mark.parametrize(
    ("model", "blocks", "kept"),
    [
        (CLAUDE, [SIGNED, SEALED, TEXT], [SIGNED, SEALED, TEXT]),
        (CLAUDE, [UNSIGNED, TEXT], [TEXT]),
        (ANY, [UNSIGNED, TEXT], [UNSIGNED, TEXT]),
        (CLAUDE, [OPENAI_S, TEXT], [TEXT]),
        ("gpt-5", [SIGNED, TEXT], [TEXT]),
    ],
)
def test_thinking_goes_to_models_that_can_read_it(model: str, blocks: list[JsonObject], kept: list[JsonObject]) -> None:
    turns = [HELLO, {"role": "assistant", "content": blocks}, HELLO]
    body, receipt = write({"model": "m", "max_tokens": 7, "messages": turns}, Target(model))
    assert body["messages"][1]["content"] == kept
    assert len(receipt.changes) == len(blocks) - len(kept)
    assert turns[1]["content"] == blocks


def test_a_turn_of_foreign_thinking_alone_is_left_out_and_paths_lead_back() -> None:
    turns = [HELLO, {"role": "assistant", "content": [UNSIGNED]}, HELLO]
    turns += [{"role": "assistant", "content": [UNSIGNED, TEXT]}, HELLO]
    body, receipt = write({"model": "m", "max_tokens": 7, "messages": turns}, Target(CLAUDE))
    assert body["messages"] == [HELLO, HELLO, {"role": "assistant", "content": [TEXT]}, HELLO]
    assert receipt.unmap(("messages", 2, "content", 0, "text")) == ("messages", 3, "content", 1, "text")
    assert receipt.unmap(("messages", 3)) == ("messages", 4)
    assert [one.before for one in receipt.changes] == [("messages", 1, "content", 0), ("messages", 3, "content", 0)]
