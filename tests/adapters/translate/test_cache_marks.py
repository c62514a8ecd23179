"""Marks and options of prompt caching, which OpenAI has in chat and in Responses alike."""

from __future__ import annotations

import pytest

from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.translate.requests import to_chat_request, to_responses_request
from dragoman.contract.json_types import JsonObject

MARK = {"prompt_cache_breakpoint": {"mode": "explicit"}}
OPTIONS = {"mode": "explicit", "ttl": "30m"}
IMAGE, FILE = "data:image/png;base64,aGk=", {"file_data": "data:application/pdf;base64,aGk=", "filename": "a.pdf"}
CHAT = [
    {"type": "text", "text": "a", **MARK},
    {"type": "image_url", "image_url": {"url": IMAGE, "detail": "auto"}, **MARK},
    {"type": "file", "file": FILE, **MARK},
    {"type": "text", "text": "b"},
]
RESPONSES = [
    {"type": "input_text", "text": "a", **MARK},
    {"type": "input_image", "image_url": IMAGE, "detail": "auto", **MARK},
    {"type": "input_file", **FILE, **MARK},
    {"type": "input_text", "text": "b"},
]


def context(request: JsonObject) -> Context:
    return Context("actual", Call("POST", "/", request), Receipt(), Target("m", policy=Policy()), request)


@pytest.mark.parametrize("count", [1, 4])
def test_marks_and_options_of_prompt_caching_are_kept(count: int) -> None:
    keys: JsonObject = {"model": "m", "prompt_cache_options": OPTIONS}
    chat = {**keys, "messages": [{"role": "user", "content": CHAT[-count:] if count > 1 else CHAT[:1]}]}
    responses = {**keys, "input": [{"role": "user", "content": RESPONSES[-count:] if count > 1 else RESPONSES[:1]}]}
    ctx = context(responses)
    made = to_chat_request(responses, ctx)
    assert (made["messages"], made["prompt_cache_options"]) == (chat["messages"], OPTIONS)
    assert not ctx.receipt.losses
    ctx = context(chat)
    made = to_responses_request(chat, ctx)
    assert made["input"][0]["content"] == responses["input"][0]["content"]
    assert made["prompt_cache_options"] == OPTIONS
    assert not ctx.receipt.losses


def test_texts_without_a_mark_are_one_string() -> None:
    request: JsonObject = {"model": "m", "input": [{"role": "user", "content": [RESPONSES[3], RESPONSES[3]]}]}
    assert to_chat_request(request, context(request))["messages"] == [{"role": "user", "content": "bb"}]
