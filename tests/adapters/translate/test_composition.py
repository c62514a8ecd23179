"""Two bridges, one after the other, are a bridge."""

from __future__ import annotations

from dragoman.adapters.call import Call, Context, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.streams import Chunk, End, Output
from dragoman.adapters.translate.bridge import BRIDGES
from dragoman.adapters.translate.composition import compose
from dragoman.contract.json_types import JsonObject

BOTH = compose(BRIDGES["responses"][0], BRIDGES["chat"][0])
IMAGE = {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"}
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
SHOWN = {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "see"}, IMAGE]}
REQUEST: JsonObject = {"model": "m", "input": [{"role": "user", "content": "hi"}, CALL, SHOWN], "stream": True}
RESPONSE: JsonObject = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "status": "completed",
    "output": [
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "hello", "annotations": []}],
        }
    ],
    "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
}


def translate() -> Context:
    return BOTH.request(Context("actual", Call("POST", "/", REQUEST), Receipt(), Target("m"), REQUEST))


def test_the_request_goes_through_both_bridges_with_all_that_the_middle_cannot_send() -> None:
    ctx = translate()
    assert ctx.request["input"][-1] == SHOWN, "chat has no images in results, but the provider does"
    assert ctx.receipt.unmap(("input", 2, "output", 1)) == ("input", 2, "output", 1)
    assert BOTH.called == "responses"


def test_the_request_in_the_middle_is_kept_for_the_reply() -> None:
    assert translate().middle["stream_options"] == {"include_usage": True}
    assert Context("actual", Call("POST", "/", {}), Receipt()).middle == {}


def test_a_file_with_an_address_reaches_a_provider_that_takes_one() -> None:
    file = {"type": "input_file", "file_url": "https://example.org/a.pdf"}
    request: JsonObject = {"model": "m", "input": [{"role": "user", "content": [file]}]}
    ctx = Context("actual", Call("POST", "/", request), Receipt(), Target("m"), request)
    assert BOTH.request(ctx).request["input"][0]["content"] == [file]


def test_a_reply_comes_back_through_both() -> None:
    ctx = translate()
    made = BOTH.reply(RESPONSE, REQUEST, ctx)
    assert made["object"] == "response"
    assert made["output"][0]["content"][0]["text"] == "hello"
    assert made["usage"]["output_tokens"] == 2


def test_a_stream_comes_back_through_both_with_its_usage_and_one_terminal() -> None:
    for ctx in (translate(), translate()._replace(middle={})):
        translator = BOTH.stream(REQUEST, ctx)
        event: JsonObject = {"type": "response.completed", "sequence_number": 0, "response": RESPONSE}
        outputs: list[Output] = [made for one in (Chunk(event), End()) for made in translator.feed(one)]
        last = outputs[-2]
        assert isinstance(last, Chunk)
        assert (last.body["type"], last.body["response"]["usage"]["output_tokens"]) == ("response.completed", 2)
        assert outputs.count(End()) == 1
        assert (translator.feed(Chunk(event)), translator.dropped) == ([], 1)
