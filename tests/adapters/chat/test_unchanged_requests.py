"""A request that its target takes as it is: the short way of writing it has the result of the long way."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.call import Call, Context, JsonObject, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.common import request_writer
from dragoman.adapters.faults import Fault
from dragoman.adapters.openai import DIALECT
from dragoman.adapters.validation import load_validator

VALIDATOR = load_validator("openai/chat.request", "actual")
SAID: JsonObject = {"role": "user", "content": "hi"}
CALLED = {"role": "assistant", "content": None, "tool_calls": [], "reasoning_content": "so", "x": 1}
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "messages": st.sampled_from([[SAID], [SAID, CALLED], [{**SAID, "role": "developer"}], [{**SAID, "name": "n"}]]),
    "max_tokens": st.sampled_from([None, 5, 10**9]),
    "max_completion_tokens": st.sampled_from([None, 5, 10**9]),
    "temperature": st.sampled_from([None, 0.5, 1]),
    "reasoning_effort": st.sampled_from([None, "low", "minimal"]),
    "seed": st.just(3),
    "stream": st.booleans(),
    "top_k": st.just(4),
    "x_unknown": st.just(1),
}
TARGETS: dict[str, st.SearchStrategy[Any]] = {
    "model": st.sampled_from(["own", "gpt-4o", "gpt-5", "o3-mini", "claude-sonnet-4-5", ""]),
    "lacks": st.sampled_from([frozenset(), frozenset({"seed"})]),
    "takes": st.sampled_from([frozenset(), frozenset({"top_k"}), frozenset({"max_tokens"})]),
    "limits": st.sampled_from([{}, {"max_tokens": 4}]),
    "max_tokens_name": st.sampled_from([None, "max_tokens", "max_completion_tokens"]),
    "host": st.sampled_from(["", "api.openai.com"]),
    "address": st.sampled_from([None, "azure-openai"]),
}
POLICIES: dict[str, st.SearchStrategy[Any]] = {
    "extra_parameters": st.sampled_from(["error", "drop", "pass-through"]),
    "unsupported": st.sampled_from(["refuse", "drop"]),
    "out_of_range": st.sampled_from(["error", "clamp"]),
}


def write(request: JsonObject, target: Target, *, is_accepted: bool) -> object:
    """The call or the fault, and what the receipt has of it."""
    receipt = Receipt()
    receipt.mark_canonical()
    call = Call("POST", "/chat/completions", request)
    accepted = VALIDATOR if is_accepted else None
    ctx = Context("actual", call, receipt, target, request, accepted_by=accepted)
    try:
        made = DIALECT.called["chat"].write_request(request, ctx)
        found: object = (made, [*made.body])
    except Fault as fault:
        found = (fault.kind, fault.code, fault.message, fault.path)
    return found, [change.public() for change in receipt.changes]


@given(st.fixed_dictionaries({}, optional=FIELDS), st.fixed_dictionaries({}, optional=TARGETS), st.data())
def test_the_short_way_has_the_result_of_the_long_way(
    fields: JsonObject, target: JsonObject, data: st.DataObject
) -> None:
    request = {"model": "fast", "messages": [SAID], **fields}
    policy = Policy(**data.draw(st.fixed_dictionaries({}, optional=POLICIES)))
    made = Target(**{"model": "own", **target}, dialect="openai", policy=policy)
    is_accepted = VALIDATOR.accepts(request)
    before = deepcopy(request)
    short = write(request, made, is_accepted=is_accepted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(request_writer, "_needs_no_change", lambda *_: False)
        assert write(request, made, is_accepted=is_accepted) == short
    assert request == before


def test_a_plain_request_gets_only_the_name_of_the_targets_model() -> None:
    (call, _), changes = write({"model": "fast", "messages": [SAID]}, Target("own"), is_accepted=True)  # type: ignore[misc]
    assert call.body == {"model": "own", "messages": [SAID]}
    assert not changes
