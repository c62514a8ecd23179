"""The parameter that an error names only in its sentence."""

from __future__ import annotations

import pytest

from dragoman.adapters.error_texts import find_hint
from dragoman.adapters.faults import Kind
from dragoman.adapters.paths import Path


@pytest.mark.parametrize(
    ("sentence", "kind", "path"),
    [
        ("temperature: Extra inputs are not permitted", "extra_parameter", ("temperature",)),
        (
            "messages.3.reasoning_details: Extra inputs are not permitted",
            "extra_parameter",
            ("messages", 3, "reasoning_details"),
        ),
        ("max_tokens: Field required", None, ("max_tokens",)),
        (
            "messages.0.role: Input should be 'user', 'assistant' or 'system'",
            None,
            ("messages", 0, "role"),
        ),
        ("max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens", None, ("max_tokens",)),
        (
            "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1.",
            None,
            ("messages", 2),
        ),
        ("tools.0.custom.input_schema: JSON schema is invalid", None, ("tools", 0, "custom", "input_schema")),
    ],
)
def test_anthropic_writes_the_path_before_a_colon(sentence: str, kind: Kind | None, path: Path) -> None:
    hint = find_hint(sentence)
    assert (hint.kind, hint.path) == (kind, path)


@pytest.mark.parametrize(
    "sentence",
    [
        "error: something went wrong",
        "litellm.BadRequestError: Extra work",
        "the message: Field required",
        "Overloaded",
        "prompt is too long: 205000 tokens > 200000 maximum",
    ],
)
def test_other_sentences_with_a_colon_name_no_path(sentence: str) -> None:
    assert find_hint(sentence).path == ()
