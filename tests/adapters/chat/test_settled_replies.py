"""A reply in settled form is left as it is: the short way has the result of the long way."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.call import Call, Context, JsonObject, Reply, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.chat.normalizer import ChatNormalizer
from dragoman.adapters.chat.reply import read_chat_reply
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.faults import Fault
from dragoman.adapters.validation import load_validator

SETTLED = load_validator("hub/chat.settled_reply")
RULES = ReplyRules("openai")
OWN_RULES = ReplyRules("openai", finish={"length": "stop"})
USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
MESSAGE = {"role": "assistant", "content": "hi", "refusal": None}
CHOICE = {"index": 0, "message": MESSAGE, "logprobs": None, "finish_reason": "stop"}
REPLY = {"id": "c", "object": "chat.completion", "created": 7, "model": "m", "choices": [CHOICE], "usage": USAGE}

ODD: st.SearchStrategy[Any] = st.sampled_from([None, "", "hi", 0, 1, 1.0, 2.5, -1, True, [], [{}], {}, {"a": None}])
KEYS = {
    "reply": (*REPLY, "error", "system_fingerprint", "service_tier", "detail", "base_resp", "x"),
    "choice": (*CHOICE, "error", "native_finish_reason", "stop_reason", "x"),
    "message": (*MESSAGE, "annotations", "reasoning_content", "reasoning", "tool_calls", "function_call", "audio", "x"),
    "usage": (*USAGE, "prompt_tokens_details", "completion_tokens_details", "reasoning_tokens", "x"),
}
WORDS = st.sampled_from(["stop", "length", "content_filter", "tool_calls", "eos", "error", None])


@st.composite
def draw_reply(draw: st.DrawFn) -> JsonObject:
    """A reply in settled form with a few keys altered or removed."""
    reply = deepcopy(REPLY)
    if draw(st.booleans()):
        reply["choices"].append({**deepcopy(CHOICE), "index": draw(st.integers(0, 2))})
    reply["choices"][0]["finish_reason"] = draw(WORDS)
    holders = {"reply": reply, "choice": reply["choices"][0], "message": reply["choices"][0]["message"]}
    for _ in range(draw(st.integers(0, 2))):
        holders["usage"] = reply["usage"] if isinstance(reply.get("usage"), dict) else {}
        name = draw(st.sampled_from([*KEYS]))
        key = draw(st.sampled_from(KEYS[name]))
        if name == "reply" and key == "choices":
            continue
        if draw(st.booleans()):
            holders[name][key] = draw(ODD)
        else:
            holders[name].pop(key, None)
    return reply


def make_context(*, tags: bool = False, needs_first: bool = False) -> Context:
    call, target = Call("POST", "/v1/chat/completions", {}), Target("m", reasoning_tags=tags)
    return Context("actual", call, Receipt(), target, {}, lambda: 9.0, lambda _: "new", needs_first)


def read(body: JsonObject, rules: ReplyRules, ctx: Context) -> object:
    """What reading gives, and what the receipt has of it."""
    try:
        found: object = read_chat_reply(Reply(200, deepcopy(body)), rules, ctx)
    except Fault as fault:
        found = (fault.kind, fault.code, fault.message)
    return found, [change.public() for change in ctx.receipt.changes], ctx.receipt.violations


@given(draw_reply(), st.sampled_from([RULES, OWN_RULES]), st.booleans(), st.booleans())
def test_the_short_way_has_the_result_of_the_long_way(
    body: JsonObject, rules: ReplyRules, tags: bool, needs_first: bool
) -> None:
    short = read(body, rules, make_context(tags=tags, needs_first=needs_first))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChatNormalizer, "settled", None)
        long = read(body, rules, make_context(tags=tags, needs_first=needs_first))
    assert short == long
    assert repr(short) == repr(long)  # 1 is not 1.0


def test_what_is_settled_is_in_hub_form() -> None:
    assert SETTLED.accepts(REPLY)
    assert load_validator("hub/chat.reply").accepts(REPLY)


@pytest.mark.parametrize("altered", [{"id": ""}, {"usage": None}, {"error": None}, {"object": "text_completion"}])
def test_what_a_rule_is_about_is_not_settled(altered: JsonObject) -> None:
    assert not SETTLED.accepts({**REPLY, **altered})


def test_a_settled_reply_has_no_changes() -> None:
    ctx = make_context()
    body = deepcopy(REPLY)
    assert read_chat_reply(Reply(200, body), RULES, ctx) is body
    assert not ctx.receipt.changes
