"""Content blocks of a reply as the hub's text, reasoning and signature."""

from __future__ import annotations

import pytest

from dragoman.adapters.chat.content import flatten_content
from dragoman.contract.json_types import JsonObject, JsonValue


def thought(*parts: JsonObject) -> JsonObject:
    return {"type": "reasoning", "summary": [{"type": "summary_text", **part} for part in parts]}


@pytest.mark.parametrize(
    ("blocks", "text", "signature"),
    [
        ([thought({"text": "a", "signature": "S1"})], "a", "S1"),
        ([thought({"text": "a"}, {"text": "", "signature": "S1"})], "a", "S1"),
        ([{"type": "thinking", "thinking": "a", "signature": "S1"}], "a", "S1"),
        ([thought({"text": "a"}), thought({"text": "b"})], "ab", None),
    ],
)
def test_a_signature_goes_with_its_text(blocks: list[JsonValue], text: str, signature: str | None) -> None:
    message = {"content": [*blocks, {"type": "text", "text": "x"}]}
    assert flatten_content(message) == []
    assert (message["content"], message["reasoning_content"]) == ("x", text)
    assert message.get("reasoning_signature") == signature


@pytest.mark.parametrize(
    "blocks",
    [
        [thought({"text": "a", "signature": "S1"}), thought({"text": "b", "signature": "S2"})],
        [thought({"text": "a", "signature": "S1"}, {"text": "b"})],
        [thought({"text": "a", "signature": "S1"}, {"signature": "S2"})],
    ],
)
def test_of_several_texts_that_became_one_the_signatures_are_left_out(blocks: list[JsonValue]) -> None:
    message: JsonObject = {"content": blocks}
    assert flatten_content(message) == ["reasoning.signature"]
    assert message["reasoning_content"].startswith("a") and "reasoning_signature" not in message
