"""Whole messages: what is read as it came, what is repaired, and what is a fault."""

from __future__ import annotations

import pytest
from anthropic.types import Message
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.call import Reply
from dragoman.adapters.changes import Receipt
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.faults import Fault
from dragoman.adapters.messages.accumulator import assemble_message
from dragoman.adapters.messages.endings import FINISH_REASONS, STOP_REASONS
from dragoman.adapters.messages.reply import read_message
from dragoman.adapters.messages.restream import restream_message
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.schemas import load
from tests.tables import for_each

from .streaming import VALUES, Replies, make_context

USE = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}
TEXT = {"type": "text", "text": "Hello"}
USAGE = {"input_tokens": 3, "output_tokens": 2}
DEEP = '{"a":' * 200 + "1" + "}" * 200
MESSAGE: JsonObject = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-x",
    "content": [TEXT],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": USAGE,
}


def read(body: JsonObject, replies: Replies = "repair") -> tuple[JsonObject, Receipt]:
    ctx = make_context(replies)
    return read_message(Reply(200, body), ReplyRules("anthropic"), ctx), ctx.receipt


def repaired(**keys: JsonValue) -> JsonObject:
    made, _ = read({**MESSAGE, **keys})
    Message.model_validate(made, strict=True)
    return made


@for_each("replies", ["off", "report", "repair", "strict"])
@for_each(
    "body",
    [
        MESSAGE,
        {**MESSAGE, "content": [TEXT, USE], "stop_reason": "tool_use", "container": None, "news": 1},
        {**MESSAGE, "stop_reason": "stop_sequence", "stop_sequence": "X"},
        {**MESSAGE, "content": [{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "news", "a": 1}]},
        {**MESSAGE, "usage": {**USAGE, "cache_read_input_tokens": 7, "service_tier": "standard", "speed": None}},
        {**MESSAGE, "content": []},
    ],
)
def test_a_message_is_read_as_it_came(body: JsonObject, replies: Replies) -> None:
    if replies == "strict" and body["content"] and body["content"][-1]["type"] == "news":
        replies = "repair"
    made, receipt = read({**body}, replies)
    assert made == body and receipt.changes == []


@for_each("replies", ["off", "report", "repair", "strict"])
@for_each(
    ("body", "kind"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, None),
        ({**MESSAGE, "stop_reason": None}, "upstream_truncated"),
        ({key: value for key, value in MESSAGE.items() if key != "stop_reason"}, "upstream_truncated"),
        ({**MESSAGE, "stop_reason": "abort"}, "upstream_aborted"),
        ({"choices": []}, None),
        ({}, None),
    ],
)
def test_what_is_no_complete_message_is_a_fault(body: JsonObject, kind: str | None, replies: Replies) -> None:
    with pytest.raises(Fault) as raised:
        read({**body}, replies)
    assert kind is None or raised.value.code == kind


def test_an_envelope_that_is_missing_is_made() -> None:
    made, receipt = read({"content": [{**TEXT}], "stop_reason": "end_turn"})
    assert made == {
        **MESSAGE,
        "id": "msg_new1",
        "model": "upstream-model",
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }
    assert {change.action for change in receipt.changes} == {"filled"}


def test_text_as_content_is_a_block() -> None:
    assert repaired(content="Hello")["content"] == [TEXT]
    assert repaired(content=None)["content"] == []


def test_blocks_get_what_they_lack() -> None:
    content = [{"thinking": "t"}, {"type": "text", "text": None}, {"name": "f"}, {**USE, "input": '{"b": 2}'}, {**USE}]
    made = repaired(content=content, stop_reason="tool_use")["content"]
    assert made[:3] == [
        {"type": "thinking", "thinking": "t", "signature": ""},
        {"type": "text", "text": ""},
        {"type": "tool_use", "id": "toolu_new1", "name": "f", "input": {}},
    ]
    assert made[3] == {**USE, "input": {"b": 2}} and made[4] == {**USE, "id": "toolu_new2"}


@pytest.mark.parametrize(
    "content",
    [["x"], [{"type": "tool_use", "id": "a", "input": {}}], [{**USE, "input": "{"}], [{**USE, "input": DEEP}], 5],
)
def test_what_cannot_be_repaired_is_a_fault(content: JsonValue) -> None:
    with pytest.raises(Fault) as raised:
        read({**MESSAGE, "content": content})
    assert raised.value.code == "upstream_invalid_response"


@pytest.mark.parametrize("replies", ["off", "report", "repair", "strict"])
@given(data=st.data())
def test_whatever_the_values_are_it_is_a_message_or_a_fault(replies: Replies, data: st.DataObject) -> None:
    key = data.draw(st.sampled_from([*MESSAGE]))
    value = data.draw(st.one_of(VALUES, st.lists(VALUES, max_size=3)))
    try:
        made, _ = read({**MESSAGE, key: value}, replies)
    except Fault:
        return
    if replies in ("repair", "strict"):
        assert load_validator("hub/messages.reply").accepts(made)


def test_stop_reasons_agree_with_the_calls() -> None:
    assert repaired(content=[{**USE}])["stop_reason"] == "tool_use"
    made, receipt = read({**MESSAGE, "stop_reason": "tool_use"})
    assert made["stop_reason"] == "end_turn" and [change.weight for change in receipt.changes] == ["loss"]
    assert repaired(content=[{**USE}], stop_reason="max_tokens")["stop_reason"] == "max_tokens"


def test_words_of_other_apis_are_read() -> None:
    assert repaired(stop_reason="length")["stop_reason"] == "max_tokens"
    made, receipt = read({**MESSAGE, "stop_reason": "news"})
    assert made["stop_reason"] == "end_turn" and [change.weight for change in receipt.changes] == ["loss"]
    with pytest.raises(Fault):
        read({**MESSAGE, "stop_reason": "news"}, "strict")
    made, receipt = read({**MESSAGE, "stop_reason": "news"}, "report")
    assert made["stop_reason"] == "news" and receipt.violations > 0


def test_the_stop_reasons_are_those_of_the_schema() -> None:
    assert {*FINISH_REASONS} == {*load("hub/messages.reply")["properties"]["stop_reason"]["enum"]}
    assert {*STOP_REASONS.values()} < {*FINISH_REASONS}


@pytest.mark.parametrize("text", ["{", DEEP])
def test_pieces_of_an_input_that_are_no_object_are_a_fault_unless_they_were_cut_short(text: str) -> None:
    events = restream_message({**MESSAGE, "content": [USE], "stop_reason": "tool_use"})
    broken = [event for event in events if event["type"] != "content_block_delta"]
    broken.insert(
        2, {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": text}}
    )
    with pytest.raises(Fault):
        assemble_message(broken)
    broken[-2] = {**broken[-2], "delta": {"stop_reason": "max_tokens", "stop_sequence": None}}
    assert assemble_message(broken)["content"] == [{**USE, "input": {}}]


def test_counts_that_are_none_are_left_out_though_others_are_missing() -> None:
    made, receipt = read({**MESSAGE, "usage": {"cache_read_input_tokens": -3}})
    assert made["usage"] == {"input_tokens": 0, "output_tokens": 0}
    assert {change.action for change in receipt.changes} == {"converted", "filled"}


def test_counts_of_chat_get_the_names_of_messages() -> None:
    made, receipt = read(
        {**MESSAGE, "usage": {"prompt_tokens": 3.0, "completion_tokens": 2, "cache_read_input_tokens": "x"}}
    )
    assert made["usage"] == USAGE
    assert [change.action for change in receipt.changes] == ["converted"]


def test_a_violation_of_the_providers_schema_is_a_fault_if_strict() -> None:
    with pytest.raises(Fault):
        read({**MESSAGE, "content": 5}, "strict")


@pytest.mark.parametrize(
    "content",
    [
        [TEXT, USE, {**TEXT, "citations": [{"type": "char_location", "cited_text": "c"}]}],
        [{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "redacted_thinking", "data": "d"}],
        [{"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}}],
        [{"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}, {"type": "news", "a": {}}],
        [{"type": "text", "text": ""}, {**USE, "input": {}}],
    ],
)
def test_a_message_as_a_stream_says_the_same(content: list[JsonObject]) -> None:
    details = {
        "stop_details": {"type": "refusal"},
        "container": {"id": "c"},
        "context_management": {"applied_edits": []},
    }
    message = {**MESSAGE, "content": content, "usage": {**USAGE, "cache_read_input_tokens": 4}, **details}
    assert assemble_message(restream_message(message)) == message
