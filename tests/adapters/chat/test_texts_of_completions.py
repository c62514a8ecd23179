"""Chunks of a chat stream that have a text, as completions have it, and no delta: what they say is the answer."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.faults import Fault
from dragoman.adapters.sse import encode
from dragoman.adapters.streams import Chunk, Output, expand
from tests.adapters.conftest import MakeContext
from tests.dialects import DIALECTS

TEXTS = ["", "Once", ' "upon"', "\n", "a time"]
ENDING = {"index": 0, "text": ".", "finish_reason": "stop", "logprobs": None}


def stream(*choices: dict[str, Any]) -> bytes:
    head = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m"}
    return b"".join(encode(orjson.dumps({**head, "choices": [choice]})) for choice in choices) + encode(b"[DONE]")


def read(dialect: str, data: bytes, context: MakeContext, size: int, **policy: str) -> list[Output]:
    reader = dialects[dialect].called["chat"].read_stream(context(policy=policy))
    pieces = [data[i : i + size] for i in range(0, len(data), size)]
    return [*(output for piece in pieces for output in reader.receive(piece)), *reader.close()]


@pytest.mark.parametrize("size", [40, 10_000])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_text_instead_of_a_delta_is_the_content(dialect: str, size: int, context: MakeContext) -> None:
    choices = [{"index": 0, "text": text, "finish_reason": None} for text in TEXTS]
    outputs = read(dialect, stream(*choices, ENDING), context, size)
    chunks = [one.body for one in expand(outputs) if isinstance(one, Chunk)]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert "".join(delta.get("content") or "" for delta in deltas) == "".join(TEXTS) + "."
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert not any("text" in chunk["choices"][0] for chunk in chunks)
    assert not isinstance(outputs[-1], Fault)


@pytest.mark.parametrize("text", [["Once"], {"value": "Once"}, 5])
def test_a_text_that_is_no_string_is_a_fault(text: Any, context: MakeContext) -> None:
    *_, fault = read("openai", stream({**ENDING, "text": text}), context, 10_000)
    assert isinstance(fault, Fault)
    assert "choices[0] has a text that is no string" in fault.message
