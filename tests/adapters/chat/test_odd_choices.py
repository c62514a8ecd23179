"""Events whose choices are none, replies without a whole one: a fault of the provider, in every dialect."""

from __future__ import annotations

from collections.abc import Callable

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Context, Reply
from dragoman.adapters.faults import Fault
from dragoman.adapters.sse import encode
from dragoman.contract.json_types import JsonValue
from tests.dialects import DIALECTS
from tests.tables import for_each


@for_each("dialect", DIALECTS)
@for_each("replies", ["off", "report", "repair"])
@for_each("choice", [1, "x", None, [], {"index": "0", "delta": {}}, {"index": [0], "delta": {}}])
def test_choices_that_cannot_be_told_apart(
    dialect: str, replies: str, choice: JsonValue, context: Callable[..., Context]
) -> None:
    reader = dialects[dialect].called["chat"].read_stream(context(policy={"replies": replies}))
    [fault] = reader.receive(encode(orjson.dumps({"id": "1", "choices": [choice]})))
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.code) == ("upstream_invalid_response", "upstream_invalid_event")
    assert "an invalid choice" in fault.message
    assert reader.has_ended


@for_each("dialect", DIALECTS)
@for_each("replies", ["off", "report", "repair", "strict"])
@for_each(
    "choices",
    [None, [], [1], [{"index": 0, "message": {"role": "assistant", "content": "par"}, "finish_reason": None}]],
)
def test_replies_without_a_whole_choice(
    dialect: str, replies: str, choices: JsonValue, context: Callable[..., Context]
) -> None:
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": choices}
    with pytest.raises(Fault) as caught:
        dialects[dialect].called["chat"].read_reply(Reply(200, body), context(policy={"replies": replies}))
    assert caught.value.kind == "upstream_invalid_response"
    if replies != "strict" and choices and choices != [1]:
        assert caught.value.code == "upstream_truncated"
