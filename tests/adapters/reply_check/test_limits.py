"""Of most requests only the limit on tokens matters: the short way of comparing it agrees with the check."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.adapters.call import JsonObject
from dragoman.adapters.reply_check import create_reply_check, keeps_to_limit

LIMIT = st.sampled_from([None, 0, 5, 10, True, 7.5, "5"])
ASKED: dict[str, st.SearchStrategy[Any]] = {
    "max_tokens": LIMIT,
    "max_completion_tokens": LIMIT,
    "max_output_tokens": LIMIT,
    "n": st.sampled_from([None, 1, 2]),
    "stop": st.sampled_from(["hi", "no"]),
    "tool_choice": st.just({"type": "any"}),
    "temperature": st.just(1),
}
COUNT = st.sampled_from([None, 4, 5, 6, True, 5.0])
USAGES = st.none() | st.fixed_dictionaries({}, optional={"completion_tokens": COUNT, "output_tokens": COUNT})
SAID: dict[str, JsonObject] = {
    "chat": {"choices": [{"index": 0, "message": {"content": "hi"}, "finish_reason": "stop"}]},
    "completions": {"choices": [{"index": 0, "text": "hi", "finish_reason": "stop"}]},
    "responses": {"status": "completed", "output": []},
    "messages": {"content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"},
    "embeddings": {"data": []},
}


@example("completions", {"max_tokens": 5, "max_completion_tokens": 0}, {"completion_tokens": 4}, "report")
@given(
    st.sampled_from([*SAID]),
    st.fixed_dictionaries({}, optional=ASKED),
    USAGES,
    st.sampled_from(["report", "repair", "strict"]),
)
def test_a_reply_within_the_limit_has_no_mismatch(
    protocol: str, request: JsonObject, usage: JsonObject | None, policy: str
) -> None:
    check = create_reply_check(protocol, request, policy)
    if not keeps_to_limit(protocol, request, usage) or check is None:
        return
    check.add_reply({**SAID[protocol], "usage": usage})
    assert [*check.find_mismatches()] == []


@pytest.mark.parametrize(
    ("protocol", "request_", "usage"),
    [
        ("chat", {"model": "m"}, None),
        ("chat", {"max_tokens": 5}, {"completion_tokens": 5}),
        ("chat", {"max_completion_tokens": 5}, {"completion_tokens": 5}),
        ("responses", {"max_output_tokens": 5}, {"output_tokens": 5}),
        ("messages", {"max_tokens": 5}, {"output_tokens": 5}),
        ("embeddings", {"input": "hi"}, None),
    ],
)
def test_the_usual_requests_take_the_short_way(protocol: str, request_: JsonObject, usage: JsonObject | None) -> None:
    assert keeps_to_limit(protocol, request_, usage)


@pytest.mark.parametrize("request_", [{"max_tokens": 4}, {"max_tokens": 5, "n": 2}, {"stop": "hi"}])
def test_what_is_not_certain_is_left_to_the_check(request_: JsonObject) -> None:
    assert not keeps_to_limit("chat", request_, {"completion_tokens": 5})
