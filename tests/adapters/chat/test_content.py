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
        ([thought({"text": "a"}), thought({"text": "b"})], "a\n\nb", None),
    ],
)
def test_a_signature_goes_with_its_text(blocks: list[JsonValue], text: str, signature: str | None) -> None:
    message = {"content": [*blocks, {"type": "text", "text": "x"}]}
    assert flatten_content(message) == []
    assert (message["content"], message["reasoning_content"]) == ("x", text)
    assert message.get("reasoning_signature") == signature


@pytest.mark.parametrize(
    ("blocks", "signatures"),
    [
        ([thought({"text": "a", "signature": "S1"}), thought({"text": "b", "signature": "S2"})], ["S1", "S2"]),
        ([thought({"text": "a", "signature": "S1"}, {"text": "b"})], ["S1", None]),
        ([thought({"text": "a", "signature": "S1"}, {"signature": "S2"})], ["S1", "S2"]),
    ],
)
def test_of_several_texts_each_keeps_its_signature(blocks: list[JsonValue], signatures: list[str | None]) -> None:
    message: JsonObject = {"content": blocks}
    assert flatten_content(message) == []
    assert [detail.get("signature") for detail in message["reasoning_details"]] == signatures
    assert message["reasoning_content"] == "\n\n".join(text for text in ("a", "b") if text in str(blocks))
