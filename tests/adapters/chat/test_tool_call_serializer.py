"""Calls that stream in serializer reach clients one after the other, whole, whatever comes between."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.chat.tool_call_serializer import ToolCallSerializer
from dragoman.adapters.chat.writer import ChatStreamWriter
from dragoman.adapters.paths import Path
from dragoman.adapters.streams import Chunk, DeltaRun, Output
from dragoman.contract.json_types import JsonObject, JsonValue


def chunk(*pieces: JsonObject, finish: str | None = None, index: int = 0, **delta: JsonValue) -> Chunk:
    if pieces:
        delta["tool_calls"] = list(pieces)
    return Chunk({"choices": [{"index": index, "delta": delta, "finish_reason": finish}]}, b"raw")


def piece(index: int, arguments: str) -> JsonObject:
    return {"index": index, "function": {"arguments": arguments}}


def told(chunks: list[Chunk]) -> list[tuple[int, str]]:
    """Index and arguments of every piece, in the order in which a client gets them."""
    serializer = ToolCallSerializer()
    choices = [choice for one in chunks for choice in serializer.serialize(one).body["choices"]]
    pieces = [piece for choice in choices for piece in choice["delta"].get("tool_calls", ())]
    return [(piece["index"], piece["function"]["arguments"]) for piece in pieces]


def test_calls_in_order_go_on_as_they_came() -> None:
    chunks = [
        chunk(piece(0, "")),
        chunk(piece(0, "{}")),
        chunk(piece(1, "{")),
        chunk(piece(1, "}")),
        chunk(finish="stop"),
    ]
    serializer = ToolCallSerializer()
    assert all(serializer.serialize(one) is one for one in chunks)


def test_a_call_waits_until_the_one_before_it_is_whole() -> None:
    chunks = [chunk(piece(0, '{"a"')), chunk(piece(1, '{"b"')), chunk(piece(0, ":1}")), chunk(piece(1, ":2}"))]
    assert told(chunks) == [(0, '{"a"'), (0, ":1}"), (1, '{"b"'), (1, ":2}")]


def test_what_still_waits_comes_with_the_finish() -> None:
    chunks = [
        chunk(piece(0, "")),
        chunk(piece(1, "{}")),
        chunk(piece(2, "{}")),
        chunk(content="x"),
        chunk(finish="tool_calls"),
    ]
    assert told(chunks) == [(0, ""), (1, "{}"), (2, "{}")]


def test_a_chunk_whose_pieces_are_held_keeps_the_rest() -> None:
    serializer = ToolCallSerializer()
    serializer.serialize(chunk(piece(0, "{")))
    assert serializer.serialize(chunk(piece(1, "{}"))).body["choices"][0]["delta"] == {}
    beside = serializer.serialize(chunk(piece(1, ""), content="x"))
    assert (beside.body["choices"][0]["delta"], beside.raw) == ({"content": "x"}, None)


CALLS = st.lists(st.dictionaries(st.text(max_size=4), st.integers(), max_size=3), min_size=1, max_size=4)


@given(CALLS, st.data())
def test_nothing_is_lost_and_no_call_is_torn(calls: list[dict[str, int]], data: st.DataObject) -> None:
    left = [list(json.dumps(call)) for call in calls]
    chunks = []
    while any(left):
        index = data.draw(st.sampled_from([i for i, some in enumerate(left) if some]))
        taken = data.draw(st.integers(1, len(left[index])))
        chunks.append(chunk(piece(index, "".join(left[index][:taken]))))
        del left[index][:taken]
    found = told([*chunks, chunk(finish="tool_calls")])
    order = list(dict.fromkeys(index for index, _ in found))
    assert [index for index, _ in found] == sorted((index for index, _ in found), key=order.index)
    whole = {index: "".join(text for one, text in found if one == index) for index in order}
    assert {index: json.loads(text) for index, text in whole.items()} == dict(enumerate(calls))


def run(index: int, *texts: str) -> DeltaRun:
    place: Path = ("choices", 0, "delta", "tool_calls", 0, "function", "arguments")
    return DeltaRun(chunk(piece(index, "")).body, place, [json.dumps(text)[1:-1].encode() for text in texts])


def write(outputs: list[Output]) -> list[tuple[int, str]]:
    """Index and arguments of every piece, as a client of OpenAI's dialect reads them."""
    writer = ChatStreamWriter(lambda fault: {})
    events = b"".join(bytes(writer.write(output)) for output in outputs).split(b"\n\n")
    choices = [choice for event in events if b"{" in event for choice in json.loads(event[6:])["choices"]]
    pieces = [piece for choice in choices for piece in choice["delta"].get("tool_calls", ())]
    return [(piece["index"], piece["function"]["arguments"]) for piece in pieces]


def head(index: int) -> Chunk:
    return Chunk(chunk({"index": index, "id": f"call_{index}", "function": {"name": "look", "arguments": ""}}).body)


def test_a_call_that_comes_in_runs_is_whole_before_the_next_one() -> None:
    outputs: list[Output] = [
        head(0),
        run(0, '{"a"', ": 1}"),
        head(1),
        run(1, '{"b"', ": 2}"),
        Chunk(chunk(finish="stop").body),
    ]
    assert write(outputs) == [(0, ""), (0, '{"a"'), (0, ": 1}"), (1, ""), (1, '{"b"'), (1, ": 2}")]


def test_a_run_of_a_later_call_waits_too() -> None:
    outputs: list[Output] = [
        head(0),
        run(0, '{"a"'),
        head(1),
        run(1, '{"b": 2}'),
        run(0, ": 1}"),
        Chunk(chunk(finish="stop").body),
    ]
    assert write(outputs) == [(0, ""), (0, '{"a"'), (0, ": 1}"), (1, ""), (1, '{"b": 2}')]
