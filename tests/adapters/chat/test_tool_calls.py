from __future__ import annotations

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Reply
from dragoman.adapters.changes import Receipt
from dragoman.adapters.chat.tool_call_assembler import ToolCallAssembler
from dragoman.adapters.chat.tool_calls import normalize_calls
from dragoman.adapters.sse import encode
from dragoman.adapters.streams import Chunk
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.adapters.conftest import MakeContext


def piece(
    index: int | None = None, call_id: str | None = None, name: str | None = None, arguments: JsonValue = None
) -> JsonObject:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    made: JsonObject = {"function": function}
    if index is not None:
        made["index"] = index
    if call_id is not None:
        made |= {"id": call_id, "type": "function"}
    return made


def added_up(deltas: list[list[JsonObject]]) -> list[JsonObject]:
    """What a client makes of the pieces: every string concatenated, by index."""
    calls: dict[int, JsonObject] = {}
    for delta in deltas:
        for one in delta:
            call = calls.setdefault(one["index"], {"id": "", "name": "", "arguments": ""})
            call["id"] += one.get("id", "")
            call["name"] += one["function"].get("name", "")
            call["arguments"] += one["function"].get("arguments", "")
    return [calls[index] for index in sorted(calls)]


def stream(context: MakeContext, deltas: list[list[JsonObject]]) -> tuple[list[JsonObject], bool]:
    calls = ToolCallAssembler(context(), Receipt())
    made = [calls.add(delta) for delta in deltas]
    changed = any(one is not delta for one, delta in zip(made, deltas, strict=True))
    return added_up([*made, calls.finish("tool_calls")]), changed


def test_pieces_in_order_are_left_alone(context: MakeContext) -> None:
    deltas = [[piece(0, "a", "f", "")], [piece(0, arguments='{"x"')], [piece(0, arguments=":1}")]]
    assert stream(context, deltas) == ([{"id": "a", "name": "f", "arguments": '{"x":1}'}], False)


def test_interleaved_parallel_calls_keep_apart(context: MakeContext) -> None:
    deltas = [[piece(0, "a", "f", "")], [piece(1, "b", "g", "")], [piece(0, arguments="1")], [piece(1, arguments="2")]]
    calls, changed = stream(context, deltas)
    assert [(call["id"], call["arguments"]) for call in calls] == [("a", "1"), ("b", "2")]
    assert not changed


def test_calls_that_share_an_index_are_told_apart_by_their_ids(context: MakeContext) -> None:
    deltas = [
        [piece(0, "a", "f", "1")],
        [piece(0, "b", "g", "2")],
        [piece(0, "a", "f", "3")],
        [piece(0, arguments="4")],
    ]
    calls, _ = stream(context, deltas)
    assert [(call["id"], call["arguments"]) for call in calls] == [("a", "134"), ("b", "2")]


def test_a_missing_index_is_found_by_id_or_by_order(context: MakeContext) -> None:
    deltas = [
        [piece(None, "a", "f", "1")],
        [piece(None, "b", "g", "2")],
        [piece(arguments="3")],
        [piece(None, "a", arguments="4")],
    ]
    calls, changed = stream(context, deltas)
    assert [(call["id"], call["arguments"]) for call in calls] == [("a", "14"), ("b", "23")]
    assert changed


def test_indexes_start_at_zero_and_have_no_gaps(context: MakeContext) -> None:
    deltas = [[piece(1, "a", "f", "1")], [piece(4, "b", "g", "2")], [piece(1, arguments="3")]]
    assembler = ToolCallAssembler(context(), Receipt())
    assert [one["index"] for delta in deltas for one in assembler.add(delta)] == [0, 1, 0]
    calls, _ = stream(context, deltas)
    assert [call["arguments"] for call in calls] == ["13", "2"]


def test_parallel_calls_that_all_claim_index_zero_are_told_apart_by_id(context: MakeContext) -> None:
    deltas = [[piece(0, "a", "f", "1")], [piece(0, "b", "g", "2")], [piece(0, arguments="3")]]
    calls, _ = stream(context, deltas)
    assert [(call["id"], call["arguments"]) for call in calls] == [("a", "1"), ("b", "23")]


def test_id_and_name_repeated_in_each_piece_come_once(context: MakeContext) -> None:
    deltas = [[piece(0, "c", "f", "1")], [piece(0, "c", "f", "2")], [piece(0, "c", "", "3")]]
    calls, changed = stream(context, deltas)
    assert calls == [{"id": "c", "name": "f", "arguments": "123"}]
    assert changed


def test_missing_ids_are_made_up_once(context: MakeContext) -> None:
    calls, _ = stream(context, [[piece(0, None, "f", "1")], [piece(0, arguments="2")]])
    assert calls == [{"id": "call-1", "name": "f", "arguments": "12"}]


def test_an_id_of_an_earlier_turn_is_not_used_again(context: MakeContext) -> None:
    """Some servers count from 0 in each answer, and openai-agents drops a call whose id it knows."""
    earlier = {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    said = [
        {"role": "assistant", "content": None, "tool_calls": [earlier]},
        {"role": "tool", "tool_call_id": "call_0", "content": "x"},
    ]
    request: JsonObject = {"messages": [{"role": "user", "content": "x"}, *said]}
    deltas = [[piece(0, "call_0", "f", "")], [piece(0, "call_0", arguments="{}")], [piece(1, "call_1", "f", "{}")]]
    calls = ToolCallAssembler(context(request=request), Receipt())
    made = [*map(calls.add, deltas), calls.finish("tool_calls")]
    assert [call["id"] for call in added_up(made)] == ["call-1", "call_1"]
    whole = normalize_calls([earlier, {**earlier, "id": "call_1"}], context(request=request))
    assert whole == [{**earlier, "id": "call-1"}, {**earlier, "id": "call_1"}]


def test_arguments_as_an_object_become_text(context: MakeContext) -> None:
    calls, _ = stream(context, [[piece(0, "a", "f", {"x": 1})]])
    assert calls[0]["arguments"] == '{"x":1}'


def test_a_placeholder_gives_way_to_the_real_arguments(context: MakeContext) -> None:
    calls, _ = stream(context, [[piece(0, "a", "f", "{}")], [piece(0, arguments='{"x":1}')]])
    assert calls[0]["arguments"] == '{"x":1}'


def test_a_placeholder_that_was_all_comes_back_at_the_finish(context: MakeContext) -> None:
    calls, _ = stream(context, [[piece(0, "a", "f", "{}")]])
    assert calls[0]["arguments"] == "{}"


def test_a_call_that_told_no_arguments_has_an_empty_object(context: MakeContext) -> None:
    deltas = [[piece(0, "a", "f")], [piece(1, "b", "g", "")], [piece(2, "c", "h", "[]")]]
    calls, _ = stream(context, deltas)
    assert [call["arguments"] for call in calls] == ["{}", "{}", "[]"]
    custom = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "f", "input": ""}}
    tools = ToolCallAssembler(context(), Receipt())
    given = [custom]
    assert tools.add(given) is given
    assert tools.finish("tool_calls") == []


@pytest.mark.parametrize(("finish", "arguments"), [("tool_calls", "{}"), ("stop", "{}"), ("length", "")])
@pytest.mark.parametrize("streamed", [False, True])
def test_only_of_a_call_that_is_whole(context: MakeContext, finish: str, arguments: str, streamed: bool) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}
    said = {"role": "assistant", "tool_calls": [{**call, "index": 0}]}
    if streamed:
        reader = dialects["openai"].called["chat"].read_stream(context())
        choice = {"index": 0, "delta": said, "finish_reason": finish}
        outputs = [*reader.receive(encode(orjson.dumps({"id": "1", "choices": [choice]}))), *reader.close()][:-1]
        pieces = [one for each in outputs for one in each.body["choices"][0]["delta"].get("tool_calls", ())]  # type: ignore[union-attr]
        assert added_up([pieces])[0]["arguments"] == arguments
    else:
        body = {"choices": [{"index": 0, "message": said, "finish_reason": finish}]}
        reply = dialects["openai"].called["chat"].read_reply(Reply(200, body), context())
        assert reply["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == arguments


def test_whole_calls_get_what_they_lack(context: MakeContext) -> None:
    calls = [
        {"function": {"name": "f", "arguments": {"x": 1}}, "index": 0},
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
    ]
    made = normalize_calls(calls, context())
    assert made[0] == {"id": "call-1", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}
    assert made[1] == calls[1]
    assert normalize_calls(made, context()) is made


EMPTY = {"name": "", "arguments": ""}


@pytest.mark.parametrize("offered", [{}, {"tools": [{"type": "function", "function": {"name": "f"}}]}])
def test_an_empty_function_call_is_no_call(context: MakeContext, offered: JsonObject) -> None:
    """Snowflake Cortex writes one into every answer."""
    for calls, finish in ((None, "stop"), ([piece(None, "a", "f", "{}")], "tool_calls")):
        message = {"role": "assistant", "content": "4", "function_call": dict(EMPTY), "tool_calls": calls}
        body = {"id": "c", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": finish}]}
        ctx = context(request=offered)
        [choice] = dialects["openai"].called["chat"].read_reply(Reply(200, body), ctx)["choices"]
        assert choice["finish_reason"] == finish and "function_call" not in choice["message"]
        assert [call["id"] for call in choice["message"].get("tool_calls", ())] == ["a"] * bool(calls)
        assert not ctx.receipt.losses


def test_an_empty_piece_of_a_function_call_is_no_call(context: MakeContext) -> None:
    reader = dialects["openai"].called["chat"].read_stream(context(request={}))
    deltas = [({"content": "4", "function_call": EMPTY}, None), ({"function_call": EMPTY}, "stop")]
    choices = [{"index": 0, "delta": delta, "finish_reason": finish} for delta, finish in deltas]
    outputs = [one for choice in choices for one in reader.receive(encode(orjson.dumps({"choices": [choice]})))]
    outputs += [*reader.receive(b"data: [DONE]\n\n"), *reader.close()]
    made = [choice for one in outputs if isinstance(one, Chunk) for choice in one.body["choices"]]
    assert not any(choice["delta"].keys() & {"function_call", "tool_calls"} for choice in made)
    assert made[-1]["finish_reason"] == "stop"
