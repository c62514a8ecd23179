"""The ways in which servers deal out tool calls: the pieces of each stream, and the calls that a client joins."""

from __future__ import annotations

import json
from itertools import pairwise

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.adapters import dialects
from dragoman.adapters.call import Reply
from dragoman.adapters.faults import Fault
from dragoman.adapters.sse import encode
from dragoman.adapters.streams import Chunk, Output
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.contract.quirk_files import load_quirks
from tests.adapters.conftest import MakeContext
from tests.tables import for_each

NAMES = ("read", "write_file", "search")
REQUEST: JsonObject = {
    "tools": [{"type": "function", "function": {"name": name, "parameters": {}}} for name in NAMES],
    "stream": True,
}

# name: (source, the lists of pieces, the calls as (id, name, arguments); an id of None is generated)
CASES: dict[str, tuple[str, list[str], list[tuple[str | None, str, str]]]] = {
    "as OpenAI does": (
        "OpenAI reference",
        [
            '[{"index":0,"id":"a","type":"function","function":{"name":"read","arguments":""}}]',
            '[{"index":0,"function":{"arguments":"{\\"x\\""}}]',
            '[{"index":0,"function":{"arguments":":1}"}}]',
            '[{"index":1,"id":"b","type":"function","function":{"name":"search","arguments":""}}]',
            '[{"index":1,"function":{"arguments":"{}"}}]',
        ],
        [("a", "read", '{"x":1}'), ("b", "search", "{}")],
    ),
    "the same call twice, without ids": (
        "one tool may be called twice with the same arguments",
        [
            '[{"function":{"name":"read","arguments":"{}"}}]',
            '[{"function":{"name":"read","arguments":"{}"}}]',
        ],
        [(None, "read", "{}"), (None, "read", "{}")],
    ),
    "a piece of white space, and an id of its own for each piece": (
        "tokens of models that put a space behind each colon",
        [
            '[{"id":"a","function":{"name":"read","arguments":"{\\"x\\":"}}]',
            '[{"id":"b","function":{"name":"read","arguments":" "}}]',
            '[{"id":"c","function":{"name":"read","arguments":"1}"}}]',
        ],
        [("a", "read", '{"x": 1}')],
    ),
    "the id after the arguments have begun": (
        "the same, later",
        [
            '[{"index":0,"function":{"name":"read","arguments":"{\\"x\\""}}]',
            '[{"index":0,"id":"call_123","function":{"arguments":":1}"}}]',
        ],
        [(None, "read", '{"x":1}')],
    ),
    "the name growing": (
        "as arguments do in some servers",
        [
            '[{"index":0,"id":"a","type":"function","function":{"name":"write"}}]',
            '[{"index":0,"function":{"name":"write_file"}}]',
            '[{"index":0,"function":{"arguments":"{\\"x\\":1}"}}]',
        ],
        [("a", "write_file", '{"x":1}')],
    ),
    "empty objects before the arguments of calls that alternate": (
        "the same with two calls",
        [
            '[{"index":0,"id":"a","type":"function","function":{"name":"read","arguments":"{}"}}]',
            '[{"index":1,"id":"b","type":"function","function":{"name":"search","arguments":"{}"}}]',
            '[{"index":0,"function":{"arguments":"{\\"x\\":1}"}}]',
            '[{"index":1,"function":{"arguments":"{\\"y\\":1}"}}]',
        ],
        [("a", "read", '{"x":1}'), ("b", "search", '{"y":1}')],
    ),
    "an object in itself is no repetition": (
        "valid JSON whose parts look alike",
        [
            '[{"index":0,"id":"a","type":"function","function":{"name":"read","arguments":"{\\"x\\":"}}]',
            '[{"index":0,"function":{"arguments":"{\\"x\\":1}"}}]',
            '[{"index":0,"function":{"arguments":"}"}}]',
        ],
        [("a", "read", '{"x":{"x":1}}')],
    ),
    "one call instead of a list": (
        "a list of one that was unpacked",
        ['{"index":0,"id":"a","function":{"name":"read","arguments":"{}"}}'],
        [("a", "read", "{}")],
    ),
    "an empty piece of a call that never comes": (
        "trailing pieces",
        [
            '[{"index":0,"id":"a","type":"function","function":{"name":"read","arguments":"{\\"x\\":1}"}}]',
            '[{"index":1,"function":{"arguments":""}}]',
        ],
        [("a", "read", '{"x":1}')],
    ),
}


QUIRKS = {name: quirk for name, quirk in load_quirks().items() if "calls" in quirk.expect and quirk.streamed}


def read(context: MakeContext, *choices: JsonObject, request: JsonObject = REQUEST) -> list[Output]:
    reader = dialects["openai"].called["chat"].read_stream(context(request=request))
    outputs = [
        output
        for choice in choices
        for output in reader.receive(encode(orjson.dumps({"id": "1", "choices": [{"index": 0, **choice}]})))
    ]
    return [*outputs, *reader.receive(b"data: [DONE]\n\n"), *reader.close()]


def deltas(outputs: list[Output]) -> list[JsonObject]:
    return [choice["delta"] for one in outputs if isinstance(one, Chunk) for choice in one.body["choices"]]


def put_together(outputs: list[Output]) -> list[tuple[str, str, str]]:
    """The calls as a client joins them. The first piece of each has its id, its type and its whole name."""
    calls: dict[int, list[str]] = {}
    for delta in deltas(outputs):
        for piece in delta.get("tool_calls", ()):
            said = piece["function"]
            if piece["index"] not in calls:
                assert piece["index"] == len(calls)
                assert piece["type"] == "function"
                calls[piece["index"]] = [piece["id"], said["name"], said.get("arguments", "")]
            else:
                assert "id" not in piece and "name" not in said
                calls[piece["index"]][2] += said.get("arguments", "")
    return [(call[0], call[1], call[2]) for call in calls.values()]


FINISH: JsonObject = {"delta": {}, "finish_reason": "tool_calls"}


def pieces(text: str) -> JsonObject:
    return {"delta": {"tool_calls": json.loads(text)}, "finish_reason": None}


@pytest.mark.parametrize("name", CASES)
def test_each_way_to_deal_out_calls(context: MakeContext, name: str) -> None:
    _, lists, expected = CASES[name]
    found = put_together(read(context, *map(pieces, lists), FINISH))
    generated = [f"call-{number}" for number in range(1, 10)]
    assert [(None if call[0] in generated else call[0], *call[1:]) for call in found] == expected
    assert len({call_id for call_id, _, _ in found}) == len(found)


@for_each("name", QUIRKS)
def test_each_quirk_gives_its_calls_with_the_ids_of_the_server(context: MakeContext, name: str) -> None:
    expected = [(call.get("id"), call["name"], call["arguments"]) for call in QUIRKS[name].expect["calls"]]
    found = put_together(read(context, *QUIRKS[name].streamed))
    generated = [f"call-{number}" for number in range(1, 10)]
    assert [(None if call[0] in generated else call[0], *call[1:]) for call in found] == expected


@pytest.mark.parametrize("finish", ["tool_calls", "stop"])
def test_the_last_piece_comes_with_the_finish(context: MakeContext, finish: str) -> None:
    text = '[{"function":{"name":"read","arguments":"{}"}},{"function":{"name":"read","arguments":"{}"}}]'
    outputs = read(context, {**pieces(text), "finish_reason": finish})
    assert [call[1:] for call in put_together(outputs)] == [("read", "{}"), ("read", "{}")]
    last = outputs[-2]
    assert isinstance(last, Chunk) and last.body["choices"][0]["finish_reason"] == "tool_calls"


def test_calls_in_a_whole_message_of_the_last_chunk(context: MakeContext) -> None:
    message = {"role": "assistant", "content": "hi", "tool_calls": [{"function": {"name": "read", "arguments": {}}}]}
    outputs = read(
        context,
        {"delta": {"role": "assistant", "content": "hi"}, "finish_reason": None},
        {"delta": {}, "message": message, "finish_reason": "tool_calls"},
    )
    assert [call[1:] for call in put_together(outputs)] == [("read", "{}")]
    assert "".join(delta.get("content") or "" for delta in deltas(outputs)) == "hi"


def test_a_stream_of_one_whole_message(context: MakeContext) -> None:
    message = {"role": "assistant", "content": "hi", "tool_calls": [{"function": {"name": "read", "arguments": {}}}]}
    outputs = read(context, {"message": message, "finish_reason": "tool_calls"})
    assert [call[1:] for call in put_together(outputs)] == [("read", "{}")]
    assert "".join(delta.get("content") or "" for delta in deltas(outputs)) == "hi"


LEGACY = [
    {"delta": {"function_call": {"name": "read", "arguments": ""}}, "finish_reason": None},
    {"delta": {"function_call": {"arguments": '{"x"'}}, "finish_reason": None},
    {"delta": {"function_call": {"arguments": ":1}"}}, "finish_reason": None},
    {"delta": {}, "finish_reason": "function_call"},
]


def test_a_function_call_is_a_tool_call_if_the_request_has_tools(context: MakeContext) -> None:
    outputs = read(context, *LEGACY)
    assert put_together(outputs) == [("call-1", "read", '{"x":1}')]
    assert [choice["finish_reason"] for choice in last_choices(outputs)] == ["tool_calls"]


def test_a_function_call_stays_if_the_request_has_functions(context: MakeContext) -> None:
    outputs = read(context, *LEGACY, request={"functions": [{"name": "read"}]})
    assert "".join(delta.get("function_call", {}).get("arguments", "") for delta in deltas(outputs)) == '{"x":1}'
    assert [choice["finish_reason"] for choice in last_choices(outputs)] == ["function_call"]


def last_choices(outputs: list[Output]) -> list[JsonObject]:
    last = [one for one in outputs if isinstance(one, Chunk)][-1]
    choices: list[JsonObject] = last.body["choices"]
    return choices


@pytest.mark.parametrize("finish", ["tool_calls", "stop"])
def test_a_call_without_a_name_is_a_fault(context: MakeContext, finish: str) -> None:
    said = pieces('[{"index":0,"id":"a","function":{"arguments":"{\\"x\\":1}"}}]')
    outputs = read(context, said, {"delta": {}, "finish_reason": finish})
    assert put_together(outputs) == []
    fault = outputs[-1]
    assert isinstance(fault, Fault) and fault.code == "upstream_invalid_response"


def test_a_call_that_is_cut_off_before_its_name_is_a_loss(context: MakeContext) -> None:
    ctx = context(request=REQUEST)
    reader = dialects["openai"].called["chat"].read_stream(ctx)
    for choice in (
        pieces('[{"index":0,"function":{"arguments":"{\\"x\\""}}]'),
        {"delta": {}, "finish_reason": "length"},
    ):
        reader.receive(encode(orjson.dumps({"id": "1", "choices": [{"index": 0, **choice}]})))
    assert not any(isinstance(output, Fault) for output in reader.close())
    assert [change.reason for change in ctx.receipt.losses] == ["a call that was cut off before its name"]


def test_keys_of_a_piece_that_nobody_knows_stay(context: MakeContext) -> None:
    extra = {"google": {"thought_signature": "c2ln"}}
    call = {"id": "a", "function": {"name": "read", "arguments": "{}"}, "extra_content": extra}
    [delta, *_] = deltas(read(context, {"delta": {"tool_calls": [call]}, "finish_reason": None}, FINISH))
    assert delta["tool_calls"][0]["extra_content"] == extra


WHOLE: dict[str, tuple[JsonValue, list[tuple[str, str, str]]]] = {
    "one id for several calls": (
        [
            {"id": "a", "type": "function", "function": {"name": "read", "arguments": '{"x":1}'}},
            {"id": "a", "type": "function", "function": {"name": "read", "arguments": '{"x":2}'}},
        ],
        [("a", "read", '{"x":1}'), ("call-1", "read", '{"x":2}')],
    ),
    "one call instead of a list": ({"id": "a", "function": {"name": "read", "arguments": {}}}, [("a", "read", "{}")]),
    "name and arguments next to the id": ([{"name": "read", "arguments": {"x": 1}}], [("call-1", "read", '{"x":1}')]),
    "no id, no type, null": ([{"function": {"name": "read", "arguments": None}}], [("call-1", "read", "{}")]),
    "an empty id and an index": (
        [{"index": 0, "id": "", "type": "function", "function": {"name": "read"}}],
        [("call-1", "read", "{}")],
    ),
    "an unknown type, a number as id": (
        [{"id": 7, "type": "tool_call", "function": {"name": "read", "arguments": "{}"}}],
        [("7", "read", "{}")],
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_calls(context: MakeContext, name: str) -> None:
    calls, expected = WHOLE[name]
    assert whole(context, {"tool_calls": calls}, "stop") == (expected, "tool_calls")


def test_a_whole_function_call_is_a_tool_call_if_the_request_has_tools(context: MakeContext) -> None:
    said = {"function_call": {"name": "read", "arguments": "{}"}}
    assert whole(context, said, "function_call") == ([("call-1", "read", "{}")], "tool_calls")
    reply = read_whole(context, said, "function_call", {})
    assert reply["choices"][0]["message"]["function_call"] == said["function_call"]


@pytest.mark.parametrize(
    ("said", "finish", "arguments"),
    [
        ({}, "function_call", "{}"),
        ({"arguments": None}, "function_call", "{}"),
        ({"arguments": ""}, "function_call", "{}"),
        ({"arguments": {"x": 1}}, "function_call", '{"x":1}'),
        ({"arguments": '{"x"'}, "length", '{"x"'),
        ({}, "length", ""),
    ],
)
def test_the_arguments_of_a_whole_function_call_are_text(
    context: MakeContext, said: JsonObject, finish: str, arguments: str
) -> None:
    reply = read_whole(context, {"function_call": {"name": "read", **said}}, finish, {"functions": [{"name": "read"}]})
    [choice] = reply["choices"]
    assert choice["message"]["function_call"] == {"name": "read", "arguments": arguments}
    assert choice["finish_reason"] == finish


@pytest.mark.parametrize("arguments", [{"x": 1}, None])
def test_the_arguments_of_a_piece_of_a_function_call_are_text(context: MakeContext, arguments: JsonObject) -> None:
    pieces = [
        {"delta": {"function_call": {"name": "read"}}, "finish_reason": None},
        {"delta": {"function_call": {"arguments": arguments}}, "finish_reason": "function_call"},
    ]
    outputs = read(context, *pieces, request={"functions": [{"name": "read"}]})
    said = "".join(delta.get("function_call", {}).get("arguments", "") for delta in deltas(outputs))
    assert said == ("" if arguments is None else '{"x":1}')


def whole(context: MakeContext, said: JsonObject, finish: str) -> tuple[list[tuple[str, str, str]], str]:
    [choice] = read_whole(context, said, finish, REQUEST)["choices"]
    calls = choice["message"]["tool_calls"]
    return [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls], choice[
        "finish_reason"
    ]


def read_whole(context: MakeContext, said: JsonObject, finish: str, request: JsonObject) -> JsonObject:
    message = {"role": "assistant", "content": None, **json.loads(json.dumps(said))}
    body = {"id": "1", "choices": [{"index": 0, "message": message, "finish_reason": finish}]}
    return dialects["openai"].called["chat"].read_reply(Reply(200, body), context(request=request))


# Any dealing-out of the same calls

VALUES = st.recursive(
    st.none() | st.integers(-9, 9) | st.text('{}[]":,\\ axé\n', max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text('{}":\\ab', max_size=3), inner, max_size=2),
    max_leaves=4,
)
ARGUMENTS = st.dictionaries(st.text('{}":\\ab', max_size=3), VALUES, min_size=1, max_size=3).map(json.dumps)
CALLS = st.lists(st.tuples(st.sampled_from(NAMES), ARGUMENTS), min_size=1, max_size=4, unique=True)


def split(data: st.DataObject, text: str) -> list[str]:
    cuts = sorted(data.draw(st.sets(st.integers(1, max(len(text) - 1, 1)), max_size=3), label="cuts"))
    edges = [0, *(cut for cut in cuts if cut < len(text)), len(text)]
    return [text[start:end] for start, end in pairwise(edges)]


def deal(data: st.DataObject, number: int, name: str, arguments: str, style: dict[str, str]) -> list[JsonObject]:
    """The pieces of one call in a style."""
    texts = [arguments] if style["arguments"] == "object" else split(data, arguments)
    if style["arguments"] == "growing":
        texts = ["{", *(arguments[: len("".join(texts[: k + 1]))] for k in range(len(texts)))]
    heads = split(data, name) if style["name"] == "in pieces" else [name]
    if any(head in NAMES for head in heads[:-1]):
        heads = [name]
    made: list[JsonObject] = []
    for k, (head, text) in enumerate([*((head, "") for head in heads), *(("", text) for text in texts)]):
        said: JsonObject = {"arguments": json.loads(text) if style["arguments"] == "object" and text else text}
        if head or style["name"] == "always":
            said["name"] = head or name
        one: JsonObject = {"function": said}
        if style["index"] != "none":
            one["index"] = {"own": number, "zero": 0, "null": None}[style["index"]]
        if style["id"] == "always" or (style["id"] == "first" and not k) or (style["id"] == "late" and k == 1):
            one["id"] = f"id-{number}"
        elif style["id"] == "new":
            one["id"] = f"id-{number}-{k}"
        made.append(one)
    return made


STYLES = st.fixed_dictionaries(
    {
        "index": st.sampled_from(["own", "none", "zero", "null"]),
        "id": st.sampled_from(["first", "always", "never", "late", "new"]),
        "name": st.sampled_from(["first", "always", "in pieces"]),
        "arguments": st.sampled_from(["text", "object", "growing"]),
    }
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CALLS, STYLES, st.booleans(), st.data())
def test_any_dealing_out_gives_the_same_calls(
    context: MakeContext, calls: list[tuple[str, str]], style: dict[str, str], interleaved: bool, data: st.DataObject
) -> None:
    if style["id"] == "new" and style["name"] == "in pieces":
        style = {**style, "name": "first"}  # nothing would hold the pieces of a name together
    dealt = [deal(data, number, name, text, style) for number, (name, text) in enumerate(calls)]
    if interleaved and (style["index"] == "own" or style["id"] == "always"):
        order = [call for call in dealt for _ in call]
        order = data.draw(st.permutations(order), label="order")
        stream = [call.pop(0) for call in order]
    else:
        stream = [one for call in dealt for one in call]
    made = put_together(read(context, *({"delta": {"tool_calls": [one]}} for one in stream), FINISH))
    expected = [(name, json.loads(text)) for name, text in calls]
    found = [(name, json.loads(text)) for _, name, text in made]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert {text for _, _, text in made} == {text for _, text in calls} or style["arguments"] == "object"
    if not interleaved:
        assert found == expected
    if style["id"] in ("first", "always"):
        assert {call_id for call_id, _, _ in made} == {f"id-{number}" for number in range(len(calls))}
