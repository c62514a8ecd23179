"""The estimate of a request's tokens."""

from __future__ import annotations

import pytest

from dragoman.adapters.call import Call, Context, JsonObject, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.emulation.counted_tokens import COUNTED_TOKENS
from dragoman.adapters.faults import Fault


def count(messages: list[JsonObject], model: str = "some-model", **more: object) -> int:
    body = {"model": "m", "messages": messages, **more}
    ctx = Context("actual", Call("POST", "/", body), Receipt(), Target(model), body)
    assert COUNTED_TOKENS.split(ctx) == []
    (change,) = (COUNTED_TOKENS.join([], ctx), ctx.receipt.changes)[1]
    assert (change.action, change.after, change.weight) == ("filled", ("input_tokens",), "loss")
    found = COUNTED_TOKENS.join([], ctx)["input_tokens"]
    assert isinstance(found, int)
    return found


def user(*blocks: JsonObject) -> JsonObject:
    return {"role": "user", "content": [*blocks]}


TEXT = "word " * 70
DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": TEXT}}
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "x" * 99_999}}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "x" * 99_999}}
USE = {"type": "tool_use", "id": "a" * 99, "name": "f", "input": {"text": TEXT}}
RESULT = {"type": "tool_result", "tool_use_id": "a" * 99, "content": [{"type": "text", "text": TEXT}, IMAGE]}


@pytest.mark.parametrize(
    ("messages", "least", "most"),
    [
        ([{"role": "user", "content": ""}], 5, 9),
        ([{"role": "user", "content": TEXT}], 100, 115),
        ([user({"type": "text", "text": TEXT})], 100, 115),
        ([user(DOCUMENT)], 100, 115),
        ([user(PDF)], 5, 9),
        ([user(IMAGE)], 1600, 1610),
        ([{"role": "assistant", "content": [USE]}], 100, 120),
        ([user(RESULT)], 1700, 1720),
    ],
)
def test_texts_and_images_are_counted(messages: list[JsonObject], least: int, most: int) -> None:
    assert least <= count(messages) <= most


def test_system_prompts_and_tools_are_counted() -> None:
    plain, hello = count([{"role": "user", "content": "Hi"}]), [{"role": "user", "content": "Hi"}]
    assert 95 <= count(hello, system=[{"type": "text", "text": TEXT}]) - plain <= 105
    assert 95 <= count(hello, system=TEXT) - plain <= 105
    tool = {"name": "f", "description": TEXT, "input_schema": {"type": "object"}}
    assert 110 <= count(hello, tools=[tool]) - plain <= 140


def test_a_documented_tokenizer_counts_exactly() -> None:
    assert count([{"role": "user", "content": "hello world"}], model="gpt-4o") == 2 + 4 + 3


def test_a_policy_may_ask_for_exact_answers() -> None:
    target = Target("m", policy=Policy(unsupported="refuse-exactly"))
    ctx = Context("actual", Call("POST", "/", {}), Receipt(), target, {"messages": []})
    with pytest.raises(Fault, match="does not count tokens"):
        COUNTED_TOKENS.split(ctx)
