"""Texts of white space toward Messages: Anthropic refuses them, and other models write them next to their calls."""

from __future__ import annotations

from copy import deepcopy

import pytest

from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.translate.message_requests import to_messages_request
from dragoman.contract.json_types import JsonObject

ASK = {"role": "user", "content": "hi"}
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
USED = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
RESULT = {"role": "tool", "tool_call_id": "a", "content": "ok"}
BLANKS = [" ", "\n\n", "\u3000", [{"type": "text", "text": "\n"}], [{"type": "text", "text": ""}]]


def to_turns(messages: list[JsonObject]) -> tuple[JsonObject, Receipt]:
    request: JsonObject = {"model": "m", "messages": messages}
    before, receipt = deepcopy(request), Receipt()
    ctx = Context("actual", Call("POST", "/", request), receipt, Target("m", policy=Policy()), request)
    made = to_messages_request(request, ctx)
    assert request == before, "the client's request was altered"
    return made, receipt


@pytest.mark.parametrize("blank", BLANKS, ids=repr)
def test_a_blank_text_next_to_a_call_is_left_out(blank: object) -> None:
    made, receipt = to_turns([ASK, {"role": "assistant", "content": blank, "tool_calls": [CALL]}, RESULT])
    assert made["messages"][1] == {"role": "assistant", "content": [USED]}
    assert [change.weight for change in receipt.changes if change.action == "dropped"] == ["form"]


@pytest.mark.parametrize("blank", BLANKS, ids=repr)
def test_a_message_of_white_space_says_nothing(blank: object) -> None:
    made, receipt = to_turns([{"role": "system", "content": blank}, ASK, {"role": "assistant", "content": blank}])
    assert made["messages"] == [ASK] and "system" not in made
    assert not receipt.losses


def test_white_space_around_a_text_stays() -> None:
    made, _ = to_turns([{"role": "user", "content": [{"type": "text", "text": " a\n"}, {"type": "text", "text": " "}]}])
    assert made["messages"] == [{"role": "user", "content": " a\n"}]
