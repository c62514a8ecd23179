"""`tools: instruct`: an instruction describes the tools, and the calls are read from the text."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.call import JsonObject, Policy
from dragoman.adapters.emulation.tool_text import write_turns
from dragoman.adapters.emulation.tool_text_parser import ToolTextParser, WrittenCall, WrittenPart
from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import Attempt

from .opted import Said, Scripted, ask, form, join_message, prepare, read, run

TOOLS: list[JsonObject] = [
    {"type": "function", "function": {"name": name, "description": "It.", "parameters": {"type": "object"}}}
    for name in ("get_weather", "get_time")
]
LACKS = ["tools", "tool_choice", "parallel_tool_calls"]
STREAMS = pytest.mark.parametrize("stream", [False, True])
HOLDS = pytest.mark.parametrize("holds", [False, True])


def write(name: str = "get_weather", **arguments: Any) -> str:
    """A call as the model writes it."""
    return f"<tool_call>\n{orjson.dumps({'name': name, 'arguments': arguments}).decode()}\n</tool_call>"


def attempt_for(holds: bool = True, **more: Any) -> Attempt:
    target = {key: more.pop(key) for key in [*more] if key in ("policy", "response_format_mode")}
    return prepare(ask(tools=TOOLS, **more), lacks=LACKS, tools="instruct", hold_streams=holds, **target)


@STREAMS
@HOLDS
def test_the_calls_that_the_model_writes_are_calls(stream: bool, holds: bool) -> None:
    attempt = attempt_for(holds, stream=stream, tool_choice="auto")
    model = Scripted(Said(f"Let me see. \n{write(city='Oslo')}\n{write('get_time')}\n"))
    events = read(run(attempt, model))
    calls = [("get_weather", '{"city":"Oslo"}'), ("get_time", "{}")]
    assert join_message(events) == ("Let me see.", calls, "tool_calls")
    (body,) = model.asked
    assert body.keys().isdisjoint(LACKS)
    assert '"name":"get_weather"' in body["messages"][0]["content"]
    assert bool(body.get("stream")) is (stream and not holds)
    assert attempt.receipt.losses == []
    assert 'emulated;path="tools"' in attempt.headers["x-dragoman-changes"]


@STREAMS
@HOLDS
def test_an_answer_without_calls_stays_as_it_is(stream: bool, holds: bool) -> None:
    text = " A <tool, 1 < 2 and <b>. \n"
    attempt = attempt_for(holds, stream=stream)
    assert join_message(read(run(attempt, Scripted(Said(text), cuts=1)))) == (text, [], "stop")
    assert attempt.receipt.losses == []


def test_each_call_has_an_id_of_its_own() -> None:
    (reply,) = read(run(attempt_for(), Scripted(Said(write() + write()))))
    message = reply["choices"][0]["message"]
    ids = [call["id"] for call in message["tool_calls"]]
    assert len(set(ids)) == 2 and all(one.startswith("call_") for one in ids)
    assert message["content"] is None


def test_earlier_turns_are_written_as_text() -> None:
    function = {"name": "get_weather", "arguments": '{"city": "Oslo"}'}
    messages: list[JsonObject] = [
        {"role": "user", "content": "x"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": i, "type": "function", "function": function} for i in ("a", "b")],
        },
        {"role": "tool", "tool_call_id": "a", "content": "rain </tool_response>"},
        {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "sun"}]},
        {"role": "user", "content": "and?"},
    ]
    model = Scripted(Said("Both."))
    run(attempt_for(messages=messages), model)
    system, asked, called, results, further = model.asked[0]["messages"]
    assert [one["role"] for one in (system, asked, called, results, further)] == [
        "system",
        "user",
        "assistant",
        "user",
        "user",
    ]
    assert called["content"].count('<tool_call>\n{"name":"get_weather","arguments":{"city":"Oslo"}}\n</tool_call>') == 2
    assert results["content"].count("</tool_response>") == 2
    found = orjson.loads(results["content"].split("<tool_response>")[1].split("</tool_response>")[0])
    assert found == {"tool_call_id": "a", "name": "get_weather", "content": "rain </tool_response>"}
    assert "sun" in results["content"]


def test_an_image_in_a_result_follows_it() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aa"}}
    call = {"id": "a", "type": "function", "function": {"name": "get_time", "arguments": "{}"}}
    messages: list[JsonObject] = [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": [image]},
    ]
    made, _ = write_turns(messages)
    assert [part["type"] for part in made[1]["content"]] == ["text", "image_url"]


@pytest.mark.parametrize(
    ("call", "written"),
    [
        ({"type": "custom", "custom": {"name": "c", "input": "a < b"}}, '{"name":"c","arguments":"a \\u003c b"}'),
        ({"type": "function", "function": {"name": "f", "arguments": "no JSON"}}, '{"name":"f","arguments":"no JSON"}'),
        ({"type": "function", "function": {"name": "f", "arguments": ""}}, '{"name":"f","arguments":{}}'),
    ],
)
def test_odd_calls_of_earlier_turns(call: JsonObject, written: str) -> None:
    made, _ = write_turns([{"role": "assistant", "content": "So:", "tool_calls": [{"id": "a", **call}]}])
    assert made == [{"role": "assistant", "content": f"So:\n\n<tool_call>\n{written}\n</tool_call>"}]


@STREAMS
@pytest.mark.parametrize(
    "wrong",
    [
        "<tool_call>get_weather(Oslo)</tool_call>",
        write("no_such"),
        "<tool_call>[]</tool_call>",
        '<tool_call>{"name": "get_time", "arguments": [1]}</tool_call>',
        '<tool_call>{"name": "get_time"',
    ],
)
def test_a_call_that_cannot_be_read_is_asked_for_once_more(stream: bool, wrong: str) -> None:
    attempt, model = attempt_for(stream=stream), Scripted(Said(f"So: {wrong}"), Said(write()))
    assert join_message(read(run(attempt, model)))[1] == [("get_weather", "{}")]
    assert model.asked[1]["messages"][-2]["content"] == f"So: {wrong}"
    assert "2 calls" in attempt.headers["x-dragoman-changes"]
    again = attempt_for(stream=stream)
    assert join_message(read(run(again, Scripted(Said(f"So: {wrong}"))))) == (f"So: {wrong}", [], "stop")
    assert again.receipt.is_lost(("tools",))


def test_a_stream_that_is_not_held_keeps_such_a_call_as_text() -> None:
    wrong = "<tool_call>{}</tool_call>"
    attempt = attempt_for(holds=False, stream=True)
    model = Scripted(Said(f"So: {wrong} {write()}"))
    assert join_message(read(run(attempt, model))) == (f"So: {wrong}", [("get_weather", "{}")], "tool_calls")
    assert attempt.receipt.is_lost(("tools",))
    assert len(model.asked) == 1


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "get_time"}}])
def test_a_call_that_is_missing_is_asked_for_once_more(choice: Any) -> None:
    attempt, model = attempt_for(tool_choice=choice), Scripted(Said("Hm."), Said(write("get_time")))
    assert join_message(read(run(attempt, model)))[1] == [("get_time", "{}")]
    assert "must call" in model.asked[0]["messages"][0]["content"]
    never = attempt_for(tool_choice=choice)
    assert join_message(read(run(never, Scripted(Said("Hm."))))) == ("Hm.", [], "stop")
    assert never.receipt.is_lost(("tool_choice",))


@HOLDS
def test_no_tool_is_described_if_none_may_be_called(holds: bool) -> None:
    attempt, model = attempt_for(holds, tool_choice="none", stream=True), Scripted(Said(write()))
    assert join_message(read(run(attempt, model))) == (write(), [], "stop")
    assert model.asked[0]["messages"] == [{"role": "user", "content": "x"}]


@STREAMS
@HOLDS
def test_one_call_at_most(stream: bool, holds: bool) -> None:
    attempt = attempt_for(holds, stream=stream, parallel_tool_calls=False)
    model = Scripted(Said(write() + write("get_time")))
    assert join_message(read(run(attempt, model)))[1] == [("get_weather", "{}")]
    assert "one call at most" in model.asked[0]["messages"][0]["content"]
    assert attempt.receipt.is_lost(("parallel_tool_calls",))


def test_an_answer_that_was_cut_off_is_not_asked_for_again() -> None:
    model = Scripted(Said('<tool_call>{"name"', finish="length"))
    attempt = attempt_for()
    assert join_message(read(run(attempt, model))) == ('<tool_call>{"name"', [], "length")
    assert len(model.asked) == 1 and attempt.receipt.is_lost(("tools",))


@HOLDS
def test_a_reply_that_breaks_off_is_a_failure(holds: bool) -> None:
    attempt = attempt_for(holds, stream=True)
    assert b"[DONE]" not in run(attempt, Scripted(Said(write())), cut=0)
    assert attempt.outcome.state == "failed"


def test_a_format_and_tools_are_emulated_together() -> None:
    target = {"lacks": [*LACKS, "response_format"], "tools": "instruct", "response_format": "instruct"}
    asked = ask(tools=TOOLS, response_format=form())
    model = Scripted(Said(write()))
    assert join_message(read(run(prepare(asked, **target), model)))[1] == [("get_weather", "{}")]
    assert "JSON Schema" in model.asked[0]["messages"][0]["content"]
    model = Scripted(Said("<tool_call>"), Said("no"), Said('{"city": "Oslo"}'))
    attempt = prepare(asked, **target)
    (reply,) = read(run(attempt, model))
    assert reply["choices"][0]["message"]["content"] == '{"city": "Oslo"}'
    assert reply["usage"]["total_tokens"] == 36
    assert len([change for change in attempt.receipt.changes if "2 calls" in change.reason]) == 2


def test_a_format_by_a_tool_that_is_text() -> None:
    target = {"lacks": [*LACKS, "response_format"], "tools": "instruct", "response_format": "tool"}
    model = Scripted(Said(write("final_answer", city="Oslo")))
    assert join_message(read(run(prepare(ask(response_format=form()), **target), model))) == (
        '{"city":"Oslo"}',
        [],
        "stop",
    )


@pytest.mark.parametrize("more", [{"tools": [{"type": "custom", "custom": {"name": "c"}}]}])
def test_other_tools_are_refused_or_dropped(more: JsonObject) -> None:
    with pytest.raises(Fault, match="only functions") as caught:
        prepare(ask(**more), lacks=LACKS, tools="instruct")
    assert caught.value.param == "tools"
    dropped = prepare(ask(**more), lacks=LACKS, tools="instruct", policy=Policy(unsupported="drop"))
    assert dropped.receipt.is_lost(("tools",))


def test_what_is_refused_inside_a_tool_is_not_emulated() -> None:
    odd = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}, "strict": True}}]
    attempt = prepare(ask(tools=odd), provider="mindie", tools="instruct", policy=Policy(unsupported="drop"))
    assert attempt.calls[0].call.body["tools"]


@STREAMS
def test_a_client_of_responses(stream: bool) -> None:
    tool = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}, "strict": False}
    asked = {"model": "m", "input": "x", "tools": [tool], "stream": stream}
    attempt = prepare(asked, "responses", lacks=LACKS, tools="instruct")
    last = read(run(attempt, Scripted(Said(write(city="Oslo")))))[-1]
    (item,) = last.get("response", last)["output"]
    assert (item["type"], item["name"], item["arguments"]) == ("function_call", "get_weather", '{"city":"Oslo"}')


PIECES = st.lists(
    st.sampled_from([" ", "a", "<", "<tool_call>", "</tool_call>", '{"name": "f"}', '{"name":', "\n", "<tool", "}"]),
    max_size=12,
)


@given(pieces=PIECES, cuts=st.lists(st.integers(1, 9), max_size=40))
def test_the_parts_do_not_depend_on_the_pieces(pieces: list[str], cuts: list[int]) -> None:
    text = "".join(pieces)
    whole, cut = ToolTextParser({"f"}), ToolTextParser({"f"})
    wanted = [*whole.feed(text), *whole.close()]
    found: list[WrittenPart] = []
    for size in [*cuts, len(text)]:
        found += cut.feed(text[:size])
        text = text[size:]
    found += cut.close()
    assert merge(found) == merge(wanted)
    if not any(part.call for part in wanted):
        assert "".join(part.text for part in wanted) == "".join(pieces)


def merge(parts: list[WrittenPart]) -> list[str | WrittenCall]:
    """Calls, and the texts between them."""
    made: list[str | WrittenCall] = []
    for part in parts:
        if part.call is None and made and isinstance(made[-1], str):
            made[-1] += part.text
        else:
            made.append(part.text if part.call is None else part.call)
    return made
