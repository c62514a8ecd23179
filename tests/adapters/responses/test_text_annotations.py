"""Sources that have only an address, as xAI gives them, and annotations of other kinds, refuse no answer."""

from __future__ import annotations

from copy import deepcopy

import orjson

from dragoman.adapters import dialects
from dragoman.adapters.call import Context, Reply
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.responses.response_object import new_response
from dragoman.adapters.responses.stream import ResponsesStreamReader
from dragoman.adapters.sse import encode
from dragoman.adapters.streams import Chunk, End
from dragoman.contract.json_types import JsonObject
from tests.tables import for_each

from .conftest import MakeContext

TEXT = "Found it."
SOURCE = {"type": "url_citation", "url": "https://x.ai/"}
WHOLE = {"type": "url_citation", "url": "https://x.ai/a", "title": "A", "start_index": 1, "end_index": 3}
UNKNOWN = {"type": "place_citation", "place": 7}
HALF = {"type": "file_citation", "file_id": "f"}
FILLED = {**SOURCE, "title": "", "start_index": 0, "end_index": len(TEXT)}
SAID = [SOURCE, WHOLE]


def answer(annotations: list[JsonObject]) -> JsonObject:
    part = {"type": "output_text", "text": TEXT, "annotations": annotations, "logprobs": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    return new_response({"model": "m"}, "resp_1", "m", 1) | {"status": "completed", "output": deepcopy([item])}


def list_events(annotations: list[JsonObject]) -> list[JsonObject]:
    last = answer(annotations)
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    begun = {**last["output"][0], "status": "in_progress", "content": []}
    name = "response.output_text.annotation.added"
    return [
        {"type": "response.created", "response": {**last, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": begun},
        {"type": "response.content_part.added", **place, "part": part},
        {"type": "response.output_text.delta", **place, "delta": TEXT, "logprobs": []},
        *({"type": name, **place, "annotation_index": i, "annotation": one} for i, one in enumerate(annotations)),
        {"type": "response.output_item.done", "output_index": 0, "item": last["output"][0]},
        {"type": "response.completed", "response": last},
    ]


def read_stream(annotations: list[JsonObject], ctx: Context) -> list[JsonObject]:
    reader = ResponsesStreamReader(ReplyRules("openai"), ctx)
    outputs = [one for event in list_events(annotations) for one in reader.receive(encode(orjson.dumps(event)))]
    assert isinstance(outputs[-1], End), outputs[-1]
    return [output.body for output in outputs if isinstance(output, Chunk)]


def find_annotations(response: JsonObject) -> list[JsonObject]:
    return list(response["output"][0]["content"][0]["annotations"])


def test_a_whole_answer_keeps_sources_without_title_and_position(context: MakeContext) -> None:
    ctx = context()
    made = dialects["openai"].called["responses"].read_reply(Reply(200, answer(SAID)), ctx)
    assert find_annotations(made) == [FILLED, WHOLE]
    assert not ctx.receipt.losses


def test_a_stream_keeps_sources_without_title_and_position(context: MakeContext) -> None:
    ctx = context()
    events = read_stream(SAID, ctx)
    assert [event["annotation"] for event in events if "annotation" in event] == [FILLED, WHOLE]
    assert find_annotations(events[-1]["response"]) == [FILLED, WHOLE]
    assert not ctx.receipt.losses


@for_each("unknown", [UNKNOWN, HALF, {}])
def test_what_the_hub_does_not_have_is_a_loss_and_no_fault(unknown: JsonObject, context: MakeContext) -> None:
    whole, streamed = context(), context()
    made = dialects["openai"].called["responses"].read_reply(Reply(200, answer([WHOLE, unknown])), whole)
    events = read_stream([unknown, WHOLE], streamed)
    assert find_annotations(made) == find_annotations(events[-1]["response"]) == [WHOLE]
    assert [event["annotation"] for event in events if "annotation" in event] == [WHOLE]
    assert [change.before for change in whole.receipt.losses] == [("output", 0, "content", 0, "annotations")]
    assert streamed.receipt.losses
