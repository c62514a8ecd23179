"""What dragoman emulates for Messages clients: stop sequences, and one call at a time; whole and streamed."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.call import Call, Context, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.emulated_fields import name_emulated_field
from dragoman.adapters.emulation.interface import Emulation
from dragoman.adapters.emulation.message_calls import MESSAGE_CALLS
from dragoman.adapters.emulation.message_stops import MESSAGE_STOPS
from dragoman.adapters.emulation.registry import find_obstacle
from dragoman.adapters.messages.events import INPUT, TEXT, block_delta, block_start, block_stop
from dragoman.adapters.messages.restream import restream_message
from dragoman.adapters.streams import Chunk, DeltaRun, End, Output, expand
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.adapters.translate.message_oracles import accumulate_message, check_events, coalesce

TOOLS = [{"name": name, "input_schema": {"type": "object"}} for name in ("f", "g")]
ASK: JsonObject = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]}


def make_context(**request: JsonValue) -> Context:
    asked = {**ASK, **request}
    return Context("actual", Call("POST", "/", asked), Receipt(), Target("m"), asked)


def message(*content: JsonObject, reason: str = "end_turn") -> JsonObject:
    usage = {"input_tokens": 0, "output_tokens": 5}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [*content]}
    return {**head, "stop_reason": reason, "stop_sequence": None, "usage": usage}


def text(said: str) -> JsonObject:
    return {"type": "text", "text": said}


def call(name: str, **given: JsonValue) -> JsonObject:
    return {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": given}


def cut_whole(emulation: Emulation, reply: JsonObject, ctx: Context) -> JsonObject:
    return emulation.join([reply], ctx)


def cut_stream(emulation: Emulation, outputs: list[Output], ctx: Context) -> list[Output]:
    assert emulation.merge is not None
    merger = emulation.merge(ctx, 1)
    return [made for output in outputs for made in merger.feed(0, [output])]


def stream(reply: JsonObject, size: int = 1) -> list[Output]:
    """The events of a message; its texts and inputs come in pieces."""
    events: list[Output] = []
    for event in restream_message(reply):
        delta = event.get("delta", {})
        key = {TEXT: "text", INPUT: "partial_json"}.get(delta.get("type"))
        said = delta[key] if key else ""
        cuts = [*range(0, len(said), size), len(said)] if key else []
        events += [Chunk(block_delta(event["index"], delta["type"], said[a:b])) for a, b in pairwise(cuts)]
        events += [] if key else [Chunk(event)]
    return [*events, End()]


def without_usage(reply: JsonObject) -> JsonObject:
    return {
        key: value for key, value in reply.items() if key != "usage" and (value is not None or key == "stop_sequence")
    }


def test_the_text_ends_before_the_first_stop_sequence() -> None:
    ctx = make_context(stop_sequences=["END", "#"])
    said = message(text("one"), text("two EN"), call("f"), text("three # END"), call("g"), reason="tool_use")
    whole = cut_whole(MESSAGE_STOPS, said, ctx)
    assert whole["content"] == [text("one"), text("two EN"), call("f"), text("three ")]
    assert (whole["stop_reason"], whole["stop_sequence"]) == ("stop_sequence", "#")
    streamed = accumulate_message(check_events(cut_stream(MESSAGE_STOPS, stream(said), ctx)))
    assert without_usage(streamed) == without_usage(whole)


def test_the_usage_of_a_cut_stream_is_an_estimate() -> None:
    ctx = make_context(stop_sequences=["#"])
    events = check_events(cut_stream(MESSAGE_STOPS, stream(message(text("12345678#9"))), ctx))
    assert events[-2]["usage"] == {"input_tokens": 3, "output_tokens": 11}
    assert [change.before for change in ctx.receipt.losses] == [("usage",)]


def test_an_answer_without_a_stop_sequence_is_as_it_came() -> None:
    ctx, said = make_context(stop_sequences=["END"]), message(text("one"))
    assert cut_whole(MESSAGE_STOPS, said, ctx) is said
    outputs = stream(said, size=3)
    assert cut_stream(MESSAGE_STOPS, outputs, ctx) == outputs


@given(
    texts=st.lists(st.text("ab#", min_size=1, max_size=8), max_size=3),
    stops=st.lists(st.sampled_from(["a#", "#b", "ab#", "ba"]), min_size=1, max_size=3),
    size=st.integers(1, 4),
)
def test_a_cut_stream_says_what_the_whole_message_says(texts: list[str], stops: list[str], size: int) -> None:
    ctx, said = make_context(stop_sequences=stops), message(*map(text, texts))
    whole, outputs = cut_whole(MESSAGE_STOPS, said, ctx), stream(said, size)
    singles = cut_stream(MESSAGE_STOPS, outputs, ctx)
    streamed = accumulate_message(check_events(singles))
    streamed["content"] = [block for block in streamed["content"] if block["text"]]
    assert without_usage(streamed) == without_usage(whole)
    runs = accumulate_message(check_events(cut_stream(MESSAGE_STOPS, coalesce(outputs), ctx)))
    runs["content"] = [block for block in runs["content"] if block["text"]]
    assert without_usage(runs) == without_usage(whole)


def test_the_request_that_is_sent_has_no_stop_sequences() -> None:
    (made,) = MESSAGE_STOPS.split(ctx := make_context(stop_sequences=["END"]))
    assert made.request == ASK
    assert [(change.action, change.before) for change in ctx.receipt.changes] == [("emulated", ("stop_sequences",))]


@pytest.mark.parametrize("reason", ["tool_use", "max_tokens"])
def test_further_calls_are_left_out(reason: str) -> None:
    ctx = make_context(tools=TOOLS, tool_choice={"type": "auto", "disable_parallel_tool_use": True})
    said = message(text("one"), call("f", a=1), call("g", b=2), text("two"), reason=reason)
    whole = cut_whole(MESSAGE_CALLS, said, ctx)
    assert whole["content"] == [text("one"), call("f", a=1), text("two")]
    assert whole["stop_reason"] == "tool_use"
    assert [change.before for change in ctx.receipt.losses] == [("content", 2)]
    streamed = make_context(tools=TOOLS)
    events = check_events(cut_stream(MESSAGE_CALLS, stream(said), streamed))
    assert without_usage(accumulate_message(events)) == without_usage(whole)
    assert streamed.receipt.losses == ctx.receipt.losses


def test_runs_after_a_call_that_is_left_out_keep_one_body() -> None:
    last = [DeltaRun(block_delta(2, TEXT, ""), ("delta", "text"), [b"x"]) for _ in range(2)]
    last[1].body = last[0].body
    outputs: list[Output] = [
        *[Chunk(event) for event in restream_message(message(call("f"), call("g")))[:-2]],
        Chunk(block_start(2, text(""))),
        *last,
        Chunk(block_stop(2)),
    ]
    runs = [one for one in cut_stream(MESSAGE_CALLS, outputs, make_context()) if isinstance(one, DeltaRun)]
    assert runs[0].body is runs[1].body and runs[0].body["index"] == 1
    assert len(expand(runs)) == 2


def test_one_call_is_enough_and_nothing_is_left_out() -> None:
    ctx, said = make_context(tools=TOOLS), message(call("f"), reason="tool_use")
    assert cut_whole(MESSAGE_CALLS, said, ctx) is said
    assert cut_stream(MESSAGE_CALLS, outputs := stream(said), ctx) == outputs
    assert ctx.receipt.losses == []


@pytest.mark.parametrize(
    ("choice", "tools", "action"),
    [("auto", TOOLS, "emulated"), ("auto", TOOLS[:1], "dropped"), ("none", TOOLS, "dropped"), ("any", None, "dropped")],
)
def test_the_choice_that_is_sent_says_nothing_of_parallel_calls(choice: str, tools: JsonValue, action: str) -> None:
    asked = {"tool_choice": {"type": choice, "disable_parallel_tool_use": True}, "tools": tools}
    (made,) = MESSAGE_CALLS.split(ctx := make_context(**asked))
    assert made.request["tool_choice"] == {"type": choice}
    assert [change.action for change in ctx.receipt.changes] == [action] and ctx.receipt.losses == []


def test_what_is_emulated_is_found_by_its_place() -> None:
    assert name_emulated_field(("stop_sequences", 4)) == "stop_sequences"
    assert name_emulated_field(("tool_choice", "disable_parallel_tool_use")) == "disable_parallel_tool_use"
    assert name_emulated_field(("tool_choice", "type")) == "tool_choice"
    assert name_emulated_field(()) == ""
    one = {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}, "tools": TOOLS}
    assert find_obstacle("disable_parallel_tool_use", one, exactly=False) is None
    assert find_obstacle("disable_parallel_tool_use", one, exactly=True) == "dragoman could emulate it, but not exactly"
    assert find_obstacle("disable_parallel_tool_use", ASK, exactly=True) == ""
    assert find_obstacle("stop_sequences", {"stop_sequences": ["x"] * 17}, exactly=False) is not None
