"""jsonschema, the contract suite's judge, and jsonschema-rs, the proxy's, find the same errors."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TypeAlias

import jsonschema
import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.schemas import Schema, load, names, profiles

from .conftest import Case, Compile, ReadFixture

Places: TypeAlias = list[tuple[tuple[str, ...], str]]
"""Path and keyword of every error, sorted. Steps are texts: jsonschema-rs gives a key made of digits as a number."""


def places(errors: Iterable[tuple[Iterable[str | int], str]]) -> Places:
    return sorted((tuple(str(part) for part in path), keyword) for path, keyword in errors)


def oracle(name: str, profile: str, body: object) -> Places:
    return places((error.absolute_path, _keyword(error)) for error in _slow(name, profile).iter_errors(body))


def _keyword(error: jsonschema.ValidationError) -> str:
    """jsonschema names the rule that a key broke, jsonschema-rs the `propertyNames` that it stands in."""
    return "propertyNames" if "propertyNames" in error.absolute_schema_path else str(error.validator)


def ours(validator: jsonschema_rs.Draft202012Validator, body: object) -> Places:
    return places((error.instance_path, error.kind.name) for error in validator.iter_errors(body))


@cache
def _slow(name: str, profile: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(load(name, profile))


@cache
def _fast(name: str, profile: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(load(name, profile))


def test_both_validators_agree_on_the_boundary_table(cases: list[Case], compiled: Compile) -> None:
    for name, profile, field, body, _ in cases:
        assert ours(compiled(name, profile), body) == oracle(name, profile, body), (
            name,
            profile,
            field,
            str(body)[:300],
        )


SAMPLES = ["azure.request.json", "azure.reply.json", "mindie.request.one_turn.json", "mindie.reply.json"]


@pytest.mark.parametrize("sample", SAMPLES)
def test_both_validators_agree_on_the_samples_in_every_schema(
    sample: str, fixture: ReadFixture, compiled: Compile
) -> None:
    body = fixture(sample)
    for name in names():
        for profile in profiles(name):
            assert ours(compiled(name, profile), body) == oracle(name, profile, body), (name, profile)


SCALARS = st.sampled_from([
    None, True, False, 0, 1, -1, 0.5, 1.0, 3, "", "x", "auto", "function", "user", "text", "json_schema", "message",
    "function_call", "output_text", "input_text", "response", "response.completed", "response.output_item.done",
    "response.output_text.delta", "error",
])  # fmt: skip
KEYS = st.sampled_from([
    "model", "messages", "role", "content", "type", "text", "tools", "function", "name", "tool_calls", "tool_choice",
    "stop", "n", "logprobs", "top_logprobs", "response_format", "json_schema", "choices", "message", "delta",
    "finish_reason", "usage", "index", "error", "detail", "loc", "input", "output", "response", "item", "part",
    "status", "sequence_number", "id", "background", "store", "reasoning",
])  # fmt: skip
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=25
)


@given(st.dictionaries(KEYS, ANYTHING, max_size=6))
def test_both_validators_agree_on_arbitrary_requests(body: Schema) -> None:
    for name in names():
        for profile in profiles(name):
            assert ours(_fast(name, profile), body) == oracle(name, profile, body), (name, profile)
