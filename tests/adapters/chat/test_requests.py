"""What any request becomes for any provider: nothing is lost that the receipt does not name, and nothing is altered
that belongs to the client."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import lookup
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject
from tests.adapters.conftest import FindDifferences
from tests.dialects import DIALECTS

CALLED = [(name, profile) for name in DIALECTS for profile in dialects[name].profiles]
TEXT = st.sampled_from(["hello", "a", "é ü 漢字", 'quote " and \\'])

parts = st.lists(TEXT.map(lambda text: {"type": "text", "text": text}), min_size=1, max_size=3)
image = st.just([{"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}}])
contents = st.one_of(TEXT, parts, image)
calls = st.lists(
    st.builds(
        lambda i, name: {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": '{"x":1}'}},
        st.integers(0, 3),
        st.sampled_from(["f", "g"]),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda call: call["id"],
)
messages = st.one_of(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "developer"]), "content": st.one_of(TEXT, parts)},
        optional={"name": st.just("n")},
    ),
    st.fixed_dictionaries({"role": st.just("user"), "content": contents}, optional={"name": st.just("n")}),
    st.fixed_dictionaries(
        {"role": st.just("assistant"), "content": TEXT},
        optional={
            "refusal": st.none(),
            "annotations": st.just([]),
            "reasoning_content": TEXT,
            "reasoning_signature": TEXT,
            "tool_calls": calls,
        },
    ),
    st.fixed_dictionaries({"role": st.just("assistant"), "content": st.none(), "tool_calls": calls}),
    st.fixed_dictionaries(
        {"role": st.just("tool"), "content": TEXT, "tool_call_id": st.sampled_from(["call_0", "call_1", "call_2"])}
    ),
)
functions = st.fixed_dictionaries(
    {"name": st.sampled_from(["f", "g"])},
    optional={
        "description": TEXT,
        "strict": st.booleans(),
        "parameters": st.just({"type": "object", "properties": {"x": {"type": "integer"}}}),
    },
)
requests = st.fixed_dictionaries(
    {"model": st.just("public"), "messages": st.lists(messages, min_size=1, max_size=6)},
    optional={
        "temperature": st.sampled_from([0, 0.5, 2, None]),
        "top_p": st.sampled_from([0, 0.5, 1]),
        "n": st.sampled_from([1, 2, None]),
        "stop": st.sampled_from(["END", ["a", "b"], None]),
        "max_tokens": st.integers(1, 5000),
        "max_completion_tokens": st.integers(1, 5000),
        "presence_penalty": st.sampled_from([0, 1.5]),
        "logprobs": st.just(False),
        "seed": st.integers(-1, 5),
        "user": TEXT,
        "metadata": st.just({"k": "v"}),
        "store": st.booleans(),
        "stream": st.booleans(),
        "parallel_tool_calls": st.booleans(),
        "reasoning_effort": st.sampled_from(["none", "minimal", "low", "medium", "high", "xhigh"]),
        "tools": st.lists(functions.map(lambda f: {"type": "function", "function": f}), min_size=1, max_size=3),
        "response_format": st.sampled_from([{"type": "text"}, {"type": "json_object"}]),
        "top_k": st.sampled_from([-1, 0, 5]),
        "made_up": st.sampled_from([1, None, {"deep": [1, 2]}]),
    },
)
policies = st.builds(
    Policy,
    extra_parameters=st.sampled_from(["error", "drop", "pass-through"]),
    unsupported=st.sampled_from(["refuse", "drop"]),
    out_of_range=st.sampled_from(["error", "clamp", "drop"]),
)


def ctx_for(request: JsonObject, profile: str, policy: Policy) -> Context:
    return Context(profile, Call("POST", "/", request), Receipt(), Target("upstream", profile, policy), request)


@pytest.mark.parametrize(("dialect", "profile"), CALLED)
@given(request=requests, policy=policies)
def test_a_request_loses_exactly_what_its_receipt_says(
    dialect: str, profile: str, differences: FindDifferences, request: JsonObject, policy: Policy
) -> None:
    before, ctx = copy.deepcopy(request), ctx_for(request, profile, policy)
    try:
        call = dialects[dialect].called["chat"].write_request(request, ctx)
    except Fault as fault:
        path = fault.locate(ctx.receipt).path
        assert fault.owner == "client"
        assert lookup(before, path[:-1]) is not None, f"{path} leads nowhere in the client's request"
        return
    finally:
        assert request == before, "the client's request was altered"
    assert load_validator(f"{dialect}/chat.request", profile).accepts(call.body)
    assert differences(before, call.body, ctx.receipt) == []


@pytest.mark.parametrize(("dialect", "profile"), CALLED)
def test_the_simplest_request_needs_no_loss(dialect: str, profile: str) -> None:
    request = {
        "model": "public",
        "messages": [{"role": "user", "content": "hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "max_tokens": 10,
    }
    ctx = ctx_for(request, profile, Policy())
    dialects[dialect].called["chat"].write_request(request, ctx)
    lost = {"stream_options"} if (dialect, profile) == ("azure", "documented") else set()  # it has no usage in streams
    assert {str(change.before[0]) for change in ctx.receipt.losses} == lost
