"""Responses streams that contradict themselves: out of order, twice, under another id, or with another text.

Each was found by the fuzzer. docs/architecture.md has the rules, under "Streams".
"""

from __future__ import annotations

import orjson
import pytest

from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.responses.stream import ResponsesStreamReader
from dragoman.adapters.sse import encode
from dragoman.adapters.streams import Chunk
from dragoman.contract.json_types import JsonObject

from .conftest import MakeContext

ADDED = {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "a"}}
DELTA = {"type": "response.output_text.delta", "output_index": 0, "item_id": "a", "content_index": 0, "logprobs": []}
TEXT_DONE = {"type": "response.output_text.done", "output_index": 0, "item_id": "a", "content_index": 0}
PART_DONE = {"type": "response.content_part.done", "output_index": 0, "item_id": "a", "content_index": 0}
END = {"type": "response.completed", "response": {"status": "completed"}}


def make_done(text: str = "", item_id: str | None = "a", **event: object) -> JsonObject:
    content = [{"type": "output_text", "text": text}] if text else []
    item = {"type": "message", "content": content, **({"id": item_id} if item_id else {})}
    return {"type": "response.output_item.done", "output_index": 0, "item": item, **event}


def read(context: MakeContext, *events: JsonObject) -> tuple[list[JsonObject], list[str], set[str]]:
    """The events in hub form, the texts of the items in the last one, and the reasons of the losses."""
    ctx = context("repair")
    reader = ResponsesStreamReader(ReplyRules("openai"), ctx)
    outputs = [output for event in events for output in reader.receive(encode(orjson.dumps(event)))]
    bodies = [output.body for output in outputs if isinstance(output, Chunk)]
    texts = ["".join(part["text"] for part in item.get("content", ())) for item in bodies[-1]["response"]["output"]]
    return bodies, texts, {change.reason for change in ctx.receipt.losses}


def list_types(bodies: list[JsonObject]) -> list[str]:
    return [body["type"].removeprefix("response.") for body in bodies]


@pytest.mark.parametrize("event", [ADDED, make_done("hi"), {**TEXT_DONE, "text": "hi"}])
def test_what_begins_or_ends_again_is_left_out(context: MakeContext, event: JsonObject) -> None:
    events = [ADDED, {**DELTA, "delta": "hi"}, {**TEXT_DONE, "text": "hi"}, make_done("hi")]
    place = events.index(event)
    twice = [*events[: place + 1], event, *events[place + 1 :]]
    (once, texts, _), (again, *rest) = read(context, *events, END), read(context, *twice, END)
    assert list_types(again) == list_types(once)
    assert rest == [texts, set()] == [["hi"], set()]


def test_a_part_that_begins_again_keeps_its_text(context: MakeContext) -> None:
    part = {**PART_DONE, "type": "response.content_part.added", "part": {"type": "output_text", "text": ""}}
    events, texts, lost = read(context, ADDED, part, {**DELTA, "delta": "hi"}, part, make_done(), END)
    assert (texts, lost, list_types(events).count("content_part.added")) == (["hi"], set(), 1)


def test_a_piece_of_a_text_that_is_done_is_a_loss(context: MakeContext) -> None:
    events, texts, lost = read(context, ADDED, {**TEXT_DONE, "text": "hi"}, {**DELTA, "delta": "hi"}, END)
    assert (texts, len(lost), "output_text.delta" in list_types(events)) == (["hi"], 1, False)


def test_a_text_that_is_done_twice_with_other_words_is_a_loss(context: MakeContext) -> None:
    late = {**TEXT_DONE, "text": "hi there"}
    events, texts, lost = read(context, ADDED, {**DELTA, "delta": "hi"}, make_done("hi"), late, END)
    assert (texts, len(lost), list_types(events).count("output_text.done")) == (["hi"], 1, 1)


@pytest.mark.parametrize("whole", [{**TEXT_DONE, "text": "B"}, make_done("B"), {**END, "response": make_done("B")}])
def test_a_text_that_differs_from_its_pieces_is_a_loss(context: MakeContext, whole: JsonObject) -> None:
    if whole["type"] == END["type"]:
        whole = {**END, "response": {"status": "completed", "output": [whole["response"]["item"]]}}
    _, texts, lost = read(
        context, ADDED, {**DELTA, "delta": "A"}, whole, *([END] if whole["type"] != END["type"] else [])
    )
    assert (texts, len(lost)) == (["B"], 1)


def test_an_item_that_is_done_without_its_text_gets_the_pieces(context: MakeContext) -> None:
    events, texts, lost = read(context, ADDED, {**DELTA, "delta": "hi"}, make_done(), END)
    (done,) = [event for event in events if event["type"] == "response.output_item.done"]
    assert (done["item"]["content"][0]["text"], texts, lost) == ("hi", ["hi"], set())


def test_an_item_of_the_last_event_without_its_text_gets_the_pieces(context: MakeContext) -> None:
    end = {**END, "response": {"status": "completed", "output": [{"type": "message", "role": "assistant"}]}}
    _, texts, lost = read(context, {**DELTA, "delta": "hi"}, end)
    assert (texts, lost) == (["hi"], set())


def test_an_event_at_an_unknown_position_belongs_to_the_item_with_its_id(context: MakeContext) -> None:
    end = {**END, "response": {"status": "completed", "output": [make_done("hi")["item"]]}}
    events, texts, _ = read(context, {**TEXT_DONE, "output_index": 1, "text": "hi"}, make_done(), end)
    assert texts == ["hi"]
    assert {event["output_index"] for event in events if "output_index" in event} == {0}


def test_a_position_and_no_position_are_different_items(context: MakeContext) -> None:
    call = {"type": "function_call", "id": "c", "call_id": "c", "name": "f", "arguments": "{}"}
    added = {"type": "response.output_item.added", "item": {"type": "message"}}
    done = {"type": "response.output_item.done", "output_index": 1, "item": call}
    events, *_ = read(context, added, done, {**END, "response": {"status": "completed", "output": []}})
    assert [item["type"] for item in events[-1]["response"]["output"]] == ["message", "function_call"]


@pytest.mark.parametrize("late", [{**DELTA, "delta": "more"}, make_done("more"), make_done("more", None)])
def test_what_follows_the_end_of_an_item_is_another_item_with_its_own_id(
    context: MakeContext, late: JsonObject
) -> None:
    events, texts, lost = read(context, ADDED, {**DELTA, "delta": "hi"}, make_done("hi"), late, END)
    assert (texts, lost) == (["hi", "more"], set())
    assert len({item["id"] for item in events[-1]["response"]["output"]}) == 2


def test_another_call_at_the_position_of_an_open_one_is_another_item(context: MakeContext) -> None:
    calls = [{"type": "function_call", "id": name, "call_id": name, "name": "f", "arguments": ""} for name in "ab"]
    begun = [{**ADDED, "item": call} for call in calls]
    events, *_ = read(context, *begun, END)
    assert [event["output_index"] for event in events if event["type"] == ADDED["type"]] == [0, 1]


def test_a_part_that_is_done_before_it_began_is_a_whole_text(context: MakeContext) -> None:
    done = {**PART_DONE, "part": {"type": "output_text", "text": "hi"}}
    events, texts, lost = read(context, done, {**TEXT_DONE, "text": "hi"}, END)
    assert (texts, lost) == (["hi"], set())
    names = ["output_item.added", "content_part.added", "output_text.done", "content_part.done", "output_item.done"]
    assert list_types(events)[1:-1] == names


def test_the_position_of_a_part_that_is_no_whole_number_is_0(context: MakeContext) -> None:
    events, texts, _ = read(context, {**DELTA, "content_index": 1e30, "delta": "hi"}, END)
    assert texts == ["hi"]
    assert {event["content_index"] for event in events if "content_index" in event} == {0}


def test_ids_of_the_last_event_are_paired_with_items_of_the_same_type(context: MakeContext) -> None:
    call = {"type": "function_call", "id": "c", "call_id": "c", "name": "f", "arguments": "{}"}
    done = {"type": "response.output_item.done", "item": call}
    begun = {"type": "response.output_item.added", "item": {**call, "id": "d", "call_id": "d", "arguments": ""}}
    message = {"type": "message", "role": "assistant", "status": "completed", "id": "m", "content": []}
    end = {**END, "response": {"status": "completed", "output": [message, {**call, "status": "completed"}]}}
    events, *_ = read(context, done, begun, end)
    assert [item["id"] for item in events[-1]["response"]["output"] if item["type"] == "function_call"] == ["c"]


def test_items_that_only_the_last_event_has_are_shown_before_it(context: MakeContext) -> None:
    """Agents read items from the events that complete them: Codex looks at nothing else."""
    said = {"type": "message", "id": "a", "content": [{"type": "output_text", "text": "hi"}]}
    call = {"type": "function_call", "id": "f", "call_id": "c", "name": "n", "arguments": "{}"}
    response = {**END["response"], "output": [said, call]}
    bodies, texts, lost = read(context, {**END, "response": response})
    assert list_types(bodies) == [
        "created",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    done = [body["item"] for body in bodies if body["type"] == "response.output_item.done"]
    assert done == bodies[-1]["response"]["output"]
    assert (texts, lost) == (["hi", ""], set())
