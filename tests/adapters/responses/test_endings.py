"""Words about the end of a response, or nulls, that OpenAI does not have cost no reply."""

from __future__ import annotations

import copy
from pathlib import Path

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Context, Reply
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.faults import Fault
from dragoman.adapters.responses.response_object import new_response
from dragoman.adapters.responses.stream import ResponsesStreamReader
from dragoman.adapters.sse import encode
from dragoman.adapters.streams import Chunk, End, Output
from dragoman.contract.json_types import JsonObject, JsonValue

from .conftest import MakeContext

TEXT = {"type": "output_text", "text": "hi", "annotations": [], "logprobs": []}
MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [TEXT]}
STREAM = Path(__file__).parent / "fixtures/streams/openai_text.sse"


def response(**changes: JsonValue) -> JsonObject:
    made = {**new_response({"model": "m"}, "resp_1", "m", 1), "status": "completed", "output": [copy.deepcopy(MESSAGE)]}
    return made | changes


def read(body: JsonObject, ctx: Context) -> JsonObject:
    return dialects["openai"].called["responses"].read_reply(Reply(200, body), ctx)


def stream(*bodies: JsonObject) -> bytes:
    return b"".join(encode(orjson.dumps(body)) for body in bodies)


def read_stream(data: bytes, ctx: Context) -> list[Output]:
    reader = ResponsesStreamReader(ReplyRules("openai"), ctx)
    return [*reader.receive(data), *reader.close()]


def read_last(word: str, last: JsonObject, ctx: Context) -> JsonObject:
    """The terminal event that comes of a stream that ends with `response.{word}` and this response."""
    opening = {"type": "response.created", "sequence_number": 0, "response": response(status="in_progress", output=[])}
    data = stream(opening, {"type": f"response.{word}", "sequence_number": 1, "response": last})
    *_, chunk, end = read_stream(data, ctx)
    assert isinstance(chunk, Chunk) and isinstance(end, End)
    return chunk.body


@pytest.mark.parametrize(
    ("given", "reason", "losses"),
    [
        ("max_tokens", "max_output_tokens", 0), ("length", "max_output_tokens", 0), ("SAFETY", "content_filter", 0),
        ("tired", "tired", 0), ("steered", "steered", 0),
    ],
)  # fmt: skip
def test_a_reason_of_any_vendor_is_read(given: str, reason: str, losses: int, context: MakeContext) -> None:
    ctx, details = context(), {"reason": given}
    body = read(response(status="incomplete", incomplete_details=details), ctx)
    assert (body["status"], body["incomplete_details"]["reason"]) == ("incomplete", reason)
    last = read_last("incomplete", response(status="incomplete", incomplete_details=details), context())
    assert last["response"]["incomplete_details"]["reason"] == reason
    assert len(ctx.receipt.losses) == losses


@pytest.mark.parametrize("details", [{}, {"reason": None}, {"reason": 3}, "tired"])
def test_details_without_a_reason_cost_no_reply(details: JsonValue, context: MakeContext) -> None:
    body = read(response(status="incomplete", incomplete_details=details), context())
    assert (body["status"], body["incomplete_details"]) == ("incomplete", None)


@pytest.mark.parametrize(
    ("given", "status"),
    [("done", "completed"), ("finished", "completed"), ("failed", "incomplete"), ("length", "incomplete"),
     (None, "completed"), (7, "completed"), ("tired", "completed")],
)  # fmt: skip
def test_the_status_of_an_item_costs_no_reply(given: JsonValue, status: str, context: MakeContext) -> None:
    output = [{**MESSAGE, "status": given}]
    body = read(response(output=copy.deepcopy(output)), context())
    assert body["output"][0]["status"] == status
    last = read_last("completed", response(output=copy.deepcopy(output)), context())
    assert last["response"]["output"][0]["status"] == status


@pytest.mark.parametrize(("given", "status"), [("stop", "completed"), ("length", "incomplete"), ("error", "failed")])
def test_the_status_of_a_response_means_what_it_means_as_a_finish_reason(
    given: str, status: str, context: MakeContext
) -> None:
    assert read(response(status=given), context())["status"] == status
    last = read_last("completed", response(status=given), context())
    assert (last["type"], last["response"]["status"]) == (f"response.{status}", status)


def test_a_status_that_nobody_knows_reads_completed_with_a_loss_unless_strict(context: MakeContext) -> None:
    ctx = context()
    assert read(response(status="tired"), ctx)["status"] == "completed"
    assert ["'tired'" in change.reason for change in ctx.receipt.losses] == [True]
    with pytest.raises(Fault):
        read(response(status="tired"), context("strict"))


def test_a_response_that_was_cut_short_is_never_completed(context: MakeContext) -> None:
    last = read_last("completed", response(status="incomplete", incomplete_details={"reason": "length"}), context())
    assert (last["type"], last["response"]["status"]) == ("response.incomplete", "incomplete")
    assert last["response"]["incomplete_details"] == {"reason": "max_output_tokens"}


def test_a_null_phase_costs_no_reply(context: MakeContext) -> None:
    """vLLM writes `phase: null` into each message, and so does LiteLLM over it."""
    body = read(response(output=[{**copy.deepcopy(MESSAGE), "phase": None}]), context())
    assert "phase" not in body["output"][0]
    said = STREAM.read_bytes().replace(b'"type":"message"', b'"phase":null,"type":"message"')
    assert b"phase" in said
    *chunks, end = read_stream(said, context())
    assert isinstance(end, End)
    items = [chunk.body["item"] for chunk in chunks if isinstance(chunk, Chunk) and "item" in chunk.body]
    assert items and not any("phase" in item for item in items)


@pytest.mark.parametrize("body", [{"status": 429, "message": "slow down"}, {"status": "error", "message": "it broke"}])
def test_an_error_with_a_status_is_no_response(body: JsonObject, context: MakeContext) -> None:
    with pytest.raises(Fault) as caught:
        read(body, context())
    assert caught.value.message == body["message"]


def test_a_call_with_an_empty_id_gets_that_of_its_item(context: MakeContext) -> None:
    call = {"type": "function_call", "id": "fc_1", "call_id": "", "name": "f", "arguments": "{}", "status": "completed"}
    assert read(response(output=[call]), context())["output"][0]["call_id"] == "fc_1"
