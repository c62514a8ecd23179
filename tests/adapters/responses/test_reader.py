from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from dragoman.adapters.call import Context
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.faults import Fault
from dragoman.adapters.responses.response_object import new_response
from dragoman.adapters.responses.stream import ResponsesStreamReader
from dragoman.adapters.sse import encode
from dragoman.adapters.streams import Chunk, End, Output
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject

from .conftest import MakeContext

STREAMS = Path(__file__).parent / "fixtures" / "streams"


def read(name: str, ctx: Context) -> list[Output]:
    reader = ResponsesStreamReader(ReplyRules(name.split("_")[0]), ctx)
    outputs = [*reader.receive((STREAMS / f"{name}.sse").read_bytes()), *reader.close()]
    assert reader.has_ended
    return outputs


def bodies(outputs: list[Output]) -> list[JsonObject]:
    return [output.body for output in outputs if isinstance(output, Chunk)]


def fault(outputs: list[Output]) -> Fault:
    assert isinstance(outputs[-1], Fault)
    assert all(isinstance(output, Chunk) for output in outputs[:-1])
    return outputs[-1]


def event(body: JsonObject, name: bytes = b"") -> bytes:
    return encode(orjson.dumps(body), name)


def reader_after_opening(ctx: Context) -> ResponsesStreamReader:
    reader = ResponsesStreamReader(ReplyRules("openai"), ctx)
    reader.receive(event({"type": "response.created", "response": {"id": "resp_1"}}))
    return reader


@pytest.mark.parametrize("name", ["openai_text", "openai_crlf", "openai_tools", "openai_incomplete"])
@pytest.mark.parametrize("replies", ["off", "report", "repair", "strict"])
def test_a_stream_that_is_whole_keeps_its_bytes(name: str, replies: str, context: MakeContext) -> None:
    ctx = context(replies)
    *chunks, end = read(name, ctx)
    assert isinstance(end, End)
    assert all(isinstance(chunk, Chunk) and chunk.raw is not None for chunk in chunks)
    assert (ctx.receipt.changes, ctx.receipt.violations) == ([], 0)


def test_a_failed_response_is_a_complete_stream(context: MakeContext) -> None:
    outputs = read("openai_failed", context())
    assert isinstance(outputs[-1], End)
    last = bodies(outputs)[-1]
    assert last["type"] == "response.failed"
    assert [item["status"] for item in last["response"]["output"]] == ["incomplete"]


@pytest.mark.parametrize("said", [{"status": "failed"}, {}, {"error": {}}])
def test_a_failure_without_a_reason_gets_one(said: JsonObject, context: MakeContext) -> None:
    response = new_response({"model": "m"}, "resp_1", "m", 1) | said
    [chunk, _] = reader_after_opening(context()).receive(event({"type": "response.failed", "response": response}))
    assert isinstance(chunk, Chunk)
    told = {"code": "server_error", "message": "the provider gave no reason"}
    assert (chunk.body["response"]["status"], chunk.body["response"]["error"]) == ("failed", told)


@pytest.mark.parametrize("said", [{"status": "failed"}, {"status": "completed"}, {}])
@pytest.mark.parametrize("word", ["completed", "incomplete", "failed"])
def test_a_response_that_tells_of_an_error_has_failed_whatever_its_event_is_called(
    word: str, said: JsonObject, context: MakeContext
) -> None:
    error = {"code": "server_error", "message": "boom"}
    response = new_response({"model": "m"}, "resp_1", "m", 1) | said | {"error": error}
    chunk, end = reader_after_opening(context()).receive(event({"type": f"response.{word}", "response": response}))
    assert isinstance(chunk, Chunk) and isinstance(end, End)
    assert (chunk.body["type"], chunk.body["response"]["status"]) == ("response.failed", "failed")
    assert chunk.body["response"]["error"] == error


@pytest.mark.parametrize(
    ("name", "kind", "code"),
    [
        ("openai_truncated", "upstream_invalid_response", "upstream_truncated"),
        ("openai_done_only", "upstream_invalid_response", "upstream_truncated"),
        ("openai_error_flat", "rate_limit", "rate_limit_exceeded"),
        ("openai_error_nested", "upstream_error", "server_error"),
        ("openai_bare_text", "upstream_invalid_response", "upstream_invalid_event"),
    ],
)
@pytest.mark.parametrize("replies", ["off", "repair"])
def test_what_ends_otherwise_is_a_fault(name: str, kind: str, code: str, replies: str, context: MakeContext) -> None:
    found = fault(read(name, context(replies)))
    assert (found.kind, found.code) == (kind, code)


@pytest.mark.parametrize(
    ("item", "kind", "code"),
    [
        (encode(b"{oops"), "upstream_invalid_response", "upstream_invalid_event"),
        (encode(b"[1]"), "upstream_invalid_response", "upstream_invalid_event"),
        (encode(b'{"choices":[]}'), "upstream_invalid_response", "upstream_invalid_event"),
        (encode(b'{"type":7}'), "upstream_invalid_response", "upstream_invalid_event"),
        (encode(b'{"error":{"message":"m","code":"rate_limit_exceeded"}}'), "rate_limit", "rate_limit_exceeded"),
        (encode(b'{"message":"m"}', b"error"), "upstream_error", None),
        (encode(b'{"error_code":"REQUEST_LIMIT_EXCEEDED","message":"m"}'), "upstream_error", "REQUEST_LIMIT_EXCEEDED"),
        (b"upstream gone\n", "upstream_invalid_response", "upstream_invalid_event"),
        (b"[DONE]\n", "upstream_invalid_response", "upstream_truncated"),
        (encode(b'{"type":"response.output_text.delta"}'), "upstream_invalid_response", "upstream_invalid_event"),
    ],
)
def test_items_that_are_no_event(item: bytes, kind: str, code: str | None, context: MakeContext) -> None:
    reader = reader_after_opening(context())
    found = fault(reader.receive(item))
    assert found.kind == kind
    if code is not None and kind != "upstream_error":
        assert found.code == code
    assert reader.has_ended and reader.receive(item) == [] and reader.close() == []


def test_a_cut_is_told_as_it_was(context: MakeContext) -> None:
    cut = Fault("upstream_timeout", "late")
    assert reader_after_opening(context()).close(cut) == [cut]


def test_nothing_counts_after_the_last_event(context: MakeContext) -> None:
    reader = reader_after_opening(context())
    last = event({"type": "response.completed", "response": {"id": "resp_1", "status": "completed"}})
    assert isinstance(reader.receive(last)[-1], End)
    assert reader.receive(last) == reader.receive(b"x\n") == reader.close(Fault("internal", "x")) == []


def test_a_loose_stream_is_put_right(context: MakeContext) -> None:
    ctx = context()
    outputs = read("databricks_loose", ctx)
    assert isinstance(outputs[-1], End)
    events = bodies(outputs)
    assert [one["type"].removeprefix("response.") for one in events] == [
        "created",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert all(load_validator("hub/responses.event").accepts(one) for one in events)
    ids = {one.get("item_id") or one["item"]["id"] for one in events[1:-1]}
    assert len(ids) == 1
    assert {events[0]["response"]["id"], events[-1]["response"]["id"]} == {"enc_1"}
    final = events[-1]["response"]
    assert final["output"][0]["content"][0]["text"] == "Bonjour"
    assert final["usage"]["output_tokens_details"] == {"reasoning_tokens": 1}
    assert "the output is assembled from earlier events" in [one.reason for one in ctx.receipt.changes]


def test_untouched_where_the_policy_says_so(context: MakeContext) -> None:
    events = bodies(read("databricks_loose", context("off")))
    assert [one["type"] for one in events][-1] == "response.completed"
    assert events[-1]["response"]["output"] == []
    assert [one["item_id"] for one in events if "delta" in one] == ["enc_3", "enc_4"]


def test_violations_are_counted_or_refused(context: MakeContext) -> None:
    broken = event({"type": "response.output_item.done", "output_index": 0})
    reporting, strict = context("report"), context("strict")
    reader = ResponsesStreamReader(ReplyRules("openai"), reporting)
    assert isinstance(reader.receive(broken)[0], Chunk)
    assert reporting.receipt.violations == 1
    found = fault(ResponsesStreamReader(ReplyRules("openai"), strict).receive(broken))
    assert found.code == "upstream_invalid_event" and strict.receipt.violations == 1


def test_a_stream_without_an_opening_gets_one(context: MakeContext) -> None:
    ctx = context()
    delta = {"item_id": "i", "output_index": 0, "content_index": 0, "delta": "a"}
    found = bodies(
        ResponsesStreamReader(ReplyRules("openai"), ctx).receive(event({"type": "response.output_text.delta", **delta}))
    )
    assert [one["type"].removeprefix("response.") for one in found] == [
        "created",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
    ]
    last = event({"type": "response.completed", "response": {"id": "resp_9", "status": "completed", "output": []}})
    first, completed, end = ResponsesStreamReader(ReplyRules("openai"), ctx).receive(last)
    assert isinstance(first, Chunk) and isinstance(completed, Chunk) and isinstance(end, End)
    assert first.body["response"]["id"] == completed.body["response"]["id"] == "resp_9"


def test_names_of_other_specifications_are_understood(context: MakeContext) -> None:
    reader = reader_after_opening(context())
    body = {"type": "response.reasoning.delta", "item_id": "r", "output_index": 0, "content_index": 0, "delta": "hm"}
    *_, item, _, text = bodies([Chunk({}), *reader.receive(event(body))])
    assert (item["item"]["type"], text["type"]) == ("reasoning", "response.reasoning_text.delta")


def test_events_that_nobody_knows_go_through_and_signs_of_life_do_not(context: MakeContext) -> None:
    reader = reader_after_opening(context())
    unknown = {"type": "response.new_thing", "sequence_number": 1, "value": {"a": 1}}
    assert bodies(reader.receive(event(unknown))) == [unknown]
    assert reader.receive(event({"type": "keepalive", "sequence_number": 2})) == []


def test_a_repeated_event_is_still_looked_at_for_what_may_not_differ(context: MakeContext) -> None:
    reader = reader_after_opening(context())
    delta = {"type": "response.output_text.delta", "sequence_number": 1, "item_id": "i", "output_index": 0}
    delta.update(content_index=0, delta="a", logprobs=[])
    reader.receive(event(delta))
    [same] = reader.receive(event({**delta, "sequence_number": 2, "delta": "b"}))
    assert isinstance(same, Chunk) and same.raw is not None
    [other] = reader.receive(event({**delta, "sequence_number": 3, "item_id": "j"}))
    assert isinstance(other, Chunk) and other.raw is None and other.body["item_id"] == "i"
    assert isinstance(reader.receive(event({**delta, "sequence_number": 4, "delta": 5}))[0], Fault)


DELTA = {"type": "response.output_text.delta", "item_id": "i", "output_index": 0, "content_index": 0, "logprobs": []}


def test_a_repeated_event_after_the_last_counts_for_nothing(context: MakeContext) -> None:
    reader = reader_after_opening(context())
    reader.receive(event({**DELTA, "sequence_number": 1, "delta": "a"}))
    reader.receive(event({"type": "response.completed", "response": {"status": "completed"}}))
    assert reader.receive(event({**DELTA, "sequence_number": 3, "delta": "b"})) == []


def test_an_item_that_a_completed_response_never_closed_is_complete(context: MakeContext) -> None:
    reader = reader_after_opening(context())
    reader.receive(event({**DELTA, "delta": "a"}))
    *dones, last = bodies(reader.receive(event({"type": "response.completed", "response": {"output": []}})))
    assert [item["status"] for item in last["response"]["output"]] == ["completed"]
    assert [one["type"].split(".")[1] for one in dones] == ["output_text", "content_part", "output_item"]
    assert dones[-1]["item"] == last["response"]["output"][0]


def test_items_of_other_forms_are_brought_into_the_hubs(context: MakeContext) -> None:
    reader = reader_after_opening(context())
    call = {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": {"a": 1}}
    [made] = bodies(reader.receive(event({"type": "response.output_item.done", "output_index": 0, "item": call})))
    assert made["item"] == {**call, "arguments": '{"a":1}', "status": "completed"}
    message = {"type": "message", "content": "Hi"}
    [made] = bodies(reader.receive(event({"type": "response.output_item.done", "output_index": 1, "item": message})))
    assert made["item"]["content"] == [{"type": "output_text", "text": "Hi", "annotations": []}]
    assert (made["item"]["role"], made["item"]["id"]) == ("assistant", "msg_1")


def test_positions_that_were_left_out_follow_from_the_ids(context: MakeContext) -> None:
    reader = reader_after_opening(context())
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "", "status": "in_progress"}
    for name in ("a", "b"):
        reader.receive(event({"type": "response.output_item.added", "item": {**call, "id": name, "call_id": name}}))
    deltas = [{"type": "response.function_call_arguments.delta", "item_id": name, "delta": "{}"} for name in "aba"]
    found = [bodies(reader.receive(event(delta)))[0]["output_index"] for delta in deltas]
    assert found == [0, 1, 0]


def test_the_last_event_has_the_ids_that_the_items_had(context: MakeContext) -> None:
    reader = reader_after_opening(context())
    reader.receive(event({**DELTA, "item_id": "first", "delta": "a"}))
    item = {"type": "message", "id": "second", "role": "assistant", "status": "completed", "content": []}
    *_, last = bodies(reader.receive(event({"type": "response.completed", "response": {"output": [item]}})))
    assert [item["id"] for item in last["response"]["output"]] == ["first"]


@pytest.mark.parametrize("told", [(), ("output_text.done",), ("content_part.done",)])
def test_a_text_is_done_before_its_part_and_the_part_before_its_item(
    context: MakeContext, told: tuple[str, ...]
) -> None:
    reader = reader_after_opening(context())
    texts = {"output_text.done": {"text": "ab"}, "content_part.done": {"part": {"type": "output_text", "text": "ab"}}}
    place = {key: DELTA[key] for key in ("item_id", "output_index", "content_index")}
    given = [{"type": f"response.{name}", **place, **texts[name]} for name in told]
    item = {"type": "message", "id": DELTA["item_id"], "role": "assistant", "status": "completed", "content": []}
    done = {"type": "response.output_item.done", "output_index": DELTA["output_index"], "item": item}
    events = [{**DELTA, "delta": "a"}, {**DELTA, "delta": "b"}, *given, done]
    made = bodies([output for body in events for output in reader.receive(event(body))])
    assert [one["type"].removeprefix("response.") for one in made][-3:] == [
        "output_text.done",
        "content_part.done",
        "output_item.done",
    ]
    assert (made[-3]["text"], made[-2]["part"]["text"]) == ("ab", "ab")
