"""Replies of nothing but a text, and tools that are all functions: the short way has the result of the long way."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from itertools import count
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.call import Call, Context, JsonObject
from dragoman.adapters.changes import Receipt
from dragoman.adapters.translate import message_replies, replies, requests, tools

REQUEST: JsonObject = {"model": "m", "input": [], "messages": [], "temperature": 0.5, "metadata": {"a": "b"}}
URL = {"type": "url_citation", "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 1}}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
MESSAGES = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": st.sampled_from(["hi", "hi", "", None])},
    optional={
        "refusal": st.sampled_from([None, None, "no"]),
        "annotations": st.sampled_from([[], [URL]]),
        "tool_calls": st.sampled_from([None, [], [CALL]]),
        "reasoning_content": st.sampled_from([None, "", "hm"]),
        "mood": st.sampled_from([None, "good"]),
    },
)
CHOICES = st.fixed_dictionaries(
    {"index": st.just(0), "message": MESSAGES, "finish_reason": st.sampled_from(["stop", "length"])},
    optional={
        "logprobs": st.sampled_from([None, {"content": [{"token": "hi", "logprob": 0.0, "bytes": None}]}]),
        "speed": st.sampled_from([None, 1]),
    },
)
FUNCTIONS = st.fixed_dictionaries(
    {"type": st.just("function"), "name": st.sampled_from(["f", "g"])},
    optional={
        "description": st.sampled_from([None, "It does."]),
        "parameters": st.sampled_from([None, {"type": "object"}]),
        "strict": st.sampled_from([None, True, False]),
        "color": st.sampled_from([None, "red"]),
    },
)


def make_context() -> Context:
    numbers: Iterator[int] = count()
    return Context(
        "actual", Call("POST", "/", {}), Receipt(), clock=lambda: 5.0, new_id=lambda prefix: f"{prefix}_{next(numbers)}"
    )


def translate_reply(module: ModuleType, choice: JsonObject, extra: JsonObject) -> object:
    ctx = make_context()
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    reply = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    if module is replies:
        made = replies.to_responses_reply({**reply, **extra}, REQUEST, "resp_1", ctx)
    else:
        made = message_replies.to_message({**reply, **extra}, REQUEST, ctx)
    return made, ctx.receipt.changes


@pytest.mark.parametrize("module", [replies, message_replies])
@given(CHOICES, st.sampled_from([{}, {"service_tier": "default"}, {"service_tier": "flex"}, {"usage": None}]))
def test_a_reply_of_a_text_is_translated_as_any_other(module: ModuleType, choice: Any, extra: JsonObject) -> None:
    before = deepcopy(choice)
    short = translate_reply(module, choice, extra)
    assert choice == before
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "says_only_text", lambda _: False)
        assert translate_reply(module, choice, extra) == short


def convert_tools(given_tools: list[JsonObject]) -> tuple[list[JsonObject], object, object]:
    ctx = make_context()
    placed: list[Any] = [(("tools", i), tool) for i, tool in enumerate(given_tools)]
    made = tools.to_chat_tools(placed, None, ctx)
    paths = [("tools", i, "function", key) for i, tool in enumerate(made) for key in sorted(tool["function"])]
    return made, ctx.receipt.changes, [ctx.receipt.unmap(path) for path in paths]


@given(st.lists(FUNCTIONS, min_size=1, max_size=3))
def test_tools_that_are_all_functions_are_converted_as_among_others(given_tools: list[JsonObject]) -> None:
    before = deepcopy(given_tools)
    short = convert_tools(given_tools)
    assert given_tools == before
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tools, "_are_functions", lambda _: False)
        assert convert_tools(given_tools) == short
    for tool, one in zip(given_tools, short[0], strict=True):
        known = ("name", "description", "parameters", "strict")
        assert one == {"type": "function", "function": {key: tool[key] for key in known if tool.get(key) is not None}}


@given(st.lists(st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": st.just("hi")})))
def test_plain_items_are_in_the_form_of_providers(items: list[JsonObject]) -> None:
    request = {"model": "m", "input": [*items, {"role": "user", "content": "so"}]}
    full = requests.to_full_chat_request(request, make_context())
    assert requests.to_chat_request(request, make_context()) == requests.to_plain_chat(full, make_context())
