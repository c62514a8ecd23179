"""Arrays of tokens toward providers that take only text."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from dragoman.adapters.emulation.token_arrays import make_token_arrays
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import End

from .made import chunk, make_context

INPUT = make_token_arrays("input")
HELLO, WORLD = 15339, 1917  # "hello" and " world" in cl100k_base


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ([HELLO, WORLD], "hello world"),
        ([[HELLO], [HELLO, WORLD]], ["hello", "hello world"]),
        (["text", [HELLO]], ["text", "hello"]),
    ],
)
def test_tokens_are_sent_as_text(given: Any, sent: Any) -> None:
    ctx = make_context(model="text-embedding-3-small", input=given, dimensions=4)
    assert INPUT.find_obstacle(ctx.request) is None
    (part,) = INPUT.split(ctx)
    assert part.request == {"model": "text-embedding-3-small", "input": sent, "dimensions": 4}
    assert [(change.action, change.weight) for change in ctx.receipt.changes] == [("emulated", "form")]


@pytest.mark.parametrize("given", ["text", ["a", "b"], [], [[]], None, [1, "a"], [-1]])
def test_text_is_nothing_to_decode(given: Any) -> None:
    assert INPUT.find_obstacle({"input": given}) == ""


@pytest.mark.parametrize("model", ["gpt-4o", "openai/gpt-4.1-mini", "o3", "gpt-5"])
def test_newer_models_have_another_encoding(model: str) -> None:
    ctx = make_context(model=model, prompt=[24912, 2375])
    (part,) = make_token_arrays("prompt").split(ctx)
    assert part.request["prompt"] == "hello world"
    assert ctx.receipt.losses == []


def test_the_encoding_of_another_model_is_a_guess_and_a_loss() -> None:
    ctx = make_context(model="bge-m3", input=[HELLO])
    (part,) = INPUT.split(ctx)
    assert part.request["input"] == "hello"
    assert ctx.receipt.is_lost(("input",))


def test_half_a_character_is_a_loss() -> None:
    ctx = make_context(model="text-embedding-ada-002", input=[HELLO, 160])
    (part,) = INPUT.split(ctx)
    assert part.request["input"] == "hello�"
    assert ctx.receipt.is_lost(("input",))


def test_a_token_that_nobody_knows_is_refused() -> None:
    with pytest.raises(Fault) as caught:
        INPUT.split(make_context(input=[[HELLO], [10**9]]))
    assert (caught.value.kind, caught.value.path) == ("unsupported_parameter", ("input", 1))


def test_without_the_tables_the_refusal_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bpe_openai", None)
    assert ".[tokens]" in str(INPUT.find_obstacle({"input": [HELLO]}))


def test_a_stream_of_completions_stays_as_it_is() -> None:
    assert INPUT.merge is not None
    outputs = [chunk({"content": "x"}), End()]
    assert INPUT.merge(make_context(), 1).feed(0, [*outputs]) == outputs
