"""`parallel_tool_calls: false` by giving the first call."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.emulation.interface import StreamMerger
from dragoman.adapters.emulation.single_tool_call import SINGLE_TOOL_CALL
from dragoman.adapters.responses.events import ARGUMENTS, item_added, item_done, lifecycle_event, text_delta
from dragoman.adapters.streams import Chunk, DeltaRun, End, Output

from .made import chunk, finish, make_context, make_reply, merge_pieces, run

TOOLS = [{"type": "function", "function": {"name": name}} for name in ("f", "g")]
FORCED = {"type": "function", "function": {"name": "f"}}


def context(**request: Any) -> Context:
    return make_context(**{"parallel_tool_calls": False, "tools": TOOLS, **request})


def merger(ctx: Context) -> StreamMerger:
    assert SINGLE_TOOL_CALL.merge is not None
    return SINGLE_TOOL_CALL.merge(ctx, 1)


def call(index: int, name: str = "f") -> JsonObject:
    return {"index": index, "id": f"call_{index}", "type": "function", "function": {"name": name, "arguments": "{}"}}


@pytest.mark.parametrize(
    "void", [{"tools": TOOLS[:1]}, {"tool_choice": "none"}, {"tool_choice": FORCED}, {"tools": None}]
)
def test_a_model_that_can_call_one_tool_at_most_needs_no_emulation(void: JsonObject) -> None:
    ctx = context(**void)
    (part,) = SINGLE_TOOL_CALL.split(ctx)
    assert "parallel_tool_calls" not in part.request
    assert [(change.action, change.weight) for change in ctx.receipt.changes] == [("dropped", "form")]
    assert SINGLE_TOOL_CALL.is_exact(ctx.request)


def test_with_several_tools_the_receipt_names_the_emulation() -> None:
    ctx = context()
    SINGLE_TOOL_CALL.split(ctx)
    assert [(change.action, change.before) for change in ctx.receipt.changes] == [
        ("emulated", ("parallel_tool_calls",))
    ]
    assert not SINGLE_TOOL_CALL.is_exact(ctx.request)


def test_the_first_of_several_calls_is_given() -> None:
    ctx = context()
    message = {"role": "assistant", "content": None, "tool_calls": [call(0), call(1, "g")]}
    reply = make_reply({"index": 0, "message": message, "finish_reason": "tool_calls"})
    (choice,) = SINGLE_TOOL_CALL.join([reply], ctx)["choices"]
    assert choice["message"]["tool_calls"] == [call(0)]
    assert choice["finish_reason"] == "tool_calls"
    assert [change.before for change in ctx.receipt.losses] == [("choices", 0, "message", "tool_calls", 1)]


def test_one_call_stays_as_it_is() -> None:
    ctx = context()
    choice = {"index": 0, "message": {"role": "assistant", "tool_calls": [call(0)]}, "finish_reason": "tool_calls"}
    assert SINGLE_TOOL_CALL.join([make_reply(choice)], ctx)["choices"] == [choice]
    assert ctx.receipt.losses == []


def test_in_a_stream_further_calls_are_not_written() -> None:
    ctx = context()
    arguments = chunk({"tool_calls": [{"index": 1, "function": {"arguments": ""}}]}).body
    outputs: list[Output] = [
        chunk({"role": "assistant", "content": "so"}),
        chunk({"tool_calls": [call(0)]}),
        chunk({"tool_calls": [call(1, "g")]}),
        DeltaRun(arguments, ("choices", 0, "delta", "tool_calls", 0, "function", "arguments"), [b"1", b"2"]),
        chunk({"content": "!", "tool_calls": [call(2)]}),
        finish("tool_calls"),
        End(),
    ]
    made = merger(ctx).feed(0, outputs)
    assert merge_pieces(made) == {
        0: {"role": "assistant", "content": "so!", "tool_calls": [call(0)], "finish": "tool_calls"}
    }
    assert len(ctx.receipt.losses) == 1
    assert [made[0], made[1], made[-1]] == [outputs[0], outputs[1], outputs[-1]]


def test_a_stream_of_text_is_not_touched() -> None:
    given: list[Output] = [run("a", "b"), finish(), End()]
    assert merger(context()).feed(0, given) == given


def response(*items: JsonObject) -> JsonObject:
    return {"id": "r", "object": "response", "output": [*items]}


ITEMS: list[JsonObject] = [
    {"type": "reasoning", "id": "i0"},
    {"type": "function_call", "id": "i1", "name": "f", "arguments": "{}"},
    {"type": "custom_tool_call", "id": "i2", "name": "g", "input": "x"},
    {"type": "message", "id": "i3", "content": []},
]


def test_a_response_has_the_first_call() -> None:
    ctx = context(input="x")
    assert SINGLE_TOOL_CALL.join([response(*ITEMS)], ctx)["output"] == [ITEMS[0], ITEMS[1], ITEMS[3]]
    assert [change.before for change in ctx.receipt.losses] == [("output", 2)]


def test_a_stream_of_responses_leaves_the_items_of_further_calls_out() -> None:
    ctx = context(input="x")
    delta = text_delta(ARGUMENTS, "i3", 3, 0, "")
    outputs: list[Output] = [Chunk(lifecycle_event("created", response()))]
    for i, item in enumerate(ITEMS):
        outputs += [Chunk(item_added(i, item)), Chunk(item_done(i, item))]
    later = DeltaRun(delta, ("delta",), [b"x"])
    outputs += [later, later, DeltaRun({**delta, "output_index": 2}, ("delta",), [b"y"])]
    outputs += [Chunk(lifecycle_event("completed", response(*ITEMS))), End()]
    made = merger(ctx).feed(0, outputs)
    events = [one.body for one in made if isinstance(one, Chunk | DeltaRun)]
    added = [(one["output_index"], one["item"]["id"]) for one in events if one["type"].endswith("item.added")]
    assert added == [(0, "i0"), (1, "i1"), (2, "i3")]
    runs = [one for one in made if isinstance(one, DeltaRun)]
    assert [one.body["output_index"] for one in runs] == [2, 2]
    assert runs[0].body is runs[1].body
    assert events[-1]["response"]["output"] == [ITEMS[0], ITEMS[1], ITEMS[3]]
    assert isinstance(made[-1], End)


def test_a_further_call_that_is_cut_off_does_not_cut_the_first_one_off() -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [call(0), call(1, "g")]}
    reply = make_reply({"index": 0, "message": message, "finish_reason": "length"})
    (choice,) = SINGLE_TOOL_CALL.join([reply], context())["choices"]
    assert choice["finish_reason"] == "tool_calls"
    outputs: list[Output] = [chunk({"tool_calls": [call(0)]}), chunk({"tool_calls": [call(1, "g")]}), finish("length")]
    made = merge_pieces([*merger(context()).feed(0, outputs), End()])
    assert made == {0: {"finish": "tool_calls", "tool_calls": [call(0)]}}


def test_a_first_call_that_is_cut_off_stays_cut_off() -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [call(0)]}
    choice = {"index": 0, "message": message, "finish_reason": "length"}
    assert SINGLE_TOOL_CALL.join([make_reply(choice)], context())["choices"] == [choice]
    outputs: list[Output] = [chunk({"tool_calls": [call(0)]}), finish("length")]
    assert merger(context()).feed(0, outputs) == outputs
