"""What a provider says outside of a message is carried into the other protocol, or the receipt names it."""

from __future__ import annotations

from itertools import count

import pytest

from dragoman.adapters.call import Call, Context, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.responses.response_object import new_response
from dragoman.adapters.streams import Chunk, End, Output
from dragoman.adapters.translate.bridge import BRIDGES
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue

TO_CHAT, TO_RESPONSES = BRIDGES["responses"][0], BRIDGES["chat"][0]  # named by the protocol of the provider
WHOLE_OR_STREAMED = pytest.mark.parametrize("streamed", [False, True])
USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
CHAT_REQUEST: JsonObject = {"model": "m", "messages": []}
RESPONSES_REQUEST: JsonObject = {"model": "m", "input": "x"}


def context(request: JsonObject) -> Context:
    numbers = count(1)
    new_id = lambda prefix: f"{prefix}_{next(numbers)}"  # noqa: E731
    return Context("actual", Call("POST", "/", request), Receipt(), Target("m"), request, lambda: 1.7e9, new_id)


def losses(ctx: Context) -> list[str]:
    """The last key of every lost path: the paths of streams differ."""
    return sorted({str(change.before[-1]) for change in ctx.receipt.losses})


def answer_responses_client(message: JsonObject, streamed: bool, ctx: Context, **top: JsonValue) -> JsonObject:
    """The response that a client gets for a chat provider's message; `choice` holds keys of the choice."""
    beside = top.pop("choice", {})
    choice = {"index": 0, "logprobs": None, "finish_reason": "stop", **beside}
    whole = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": USAGE, **top}
    if not streamed:
        said = {"role": "assistant", "content": None, "refusal": None, **message}
        return TO_CHAT.reply({**whole, "choices": [{**choice, "message": said}]}, RESPONSES_REQUEST, ctx)
    chunk = {**whole, "object": "chat.completion.chunk", "choices": [{**choice, "delta": message}]}
    translator = TO_CHAT.stream(RESPONSES_REQUEST, ctx)
    *_, last, _ = [made for output in (Chunk(chunk), End()) for made in translator.feed(output)]
    assert isinstance(last, Chunk)
    response: JsonObject = last.body["response"]
    return response


@WHOLE_OR_STREAMED
def test_a_response_has_the_service_tier_of_the_chat_provider(streamed: bool) -> None:
    ctx = context(RESPONSES_REQUEST)
    made = answer_responses_client({"content": "hi"}, streamed, ctx, service_tier="flex")
    assert (made["service_tier"], losses(ctx)) == ("flex", [])


@WHOLE_OR_STREAMED
def test_a_response_has_the_own_keys_of_the_chat_provider(streamed: bool) -> None:
    ctx = context(RESPONSES_REQUEST)
    usage = {
        **USAGE,
        "cost": 0.25,
        "prompt_tokens_details": {"audio_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 5, "accepted_prediction_tokens": 6},
    }
    filtered = [{"prompt_index": 0, "content_filter_results": {}}]
    made = answer_responses_client({"content": "hi"}, streamed, ctx, usage=usage, prompt_filter_results=filtered)
    assert load_validator("hub/responses.reply").accepts(made)
    assert made["prompt_filter_results"] == filtered
    assert made["usage"] == {
        "input_tokens": 1,
        "input_tokens_details": {"audio_tokens": 4, "cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 5, "accepted_prediction_tokens": 6},
        "total_tokens": 3,
        "cost": 0.25,
    }
    assert losses(ctx) == []


@WHOLE_OR_STREAMED
@pytest.mark.parametrize(("message", "top", "lost"), [
    ({}, {"system_fingerprint": "fp_1"}, ["system_fingerprint"]),
    ({}, {"status": "fine"}, ["status"]),
    ({}, {"choice": {"extra_fields": {"safetyRating": "low"}}}, ["extra_fields"]),
    ({}, {"choice": {"content_filter_results": {"hate": {"filtered": False}}}}, ["content_filter_results"]),
    ({"reasoning_content": "why", "reasoning": "because"}, {}, ["reasoning"]),
    ({"images": [{"type": "image_url"}]}, {}, ["images"]),
    ({"tool_calls": [{"index": 0, "id": "c", "type": "function", "caller": {"type": "direct"},
                      "function": {"name": "f", "arguments": "{}"}}]}, {}, ["caller"]),
])  # fmt: skip
def test_the_receipt_names_what_a_response_cannot_hold(
    message: JsonObject, top: JsonObject, lost: list[str], streamed: bool
) -> None:
    ctx = context(RESPONSES_REQUEST)
    answer_responses_client({"content": "hi", **message}, streamed, ctx, **top)
    assert losses(ctx) == lost


@WHOLE_OR_STREAMED
def test_annotations_without_a_text_are_a_loss(streamed: bool) -> None:
    citation = {"url": "https://example.org", "title": "t", "start_index": 0, "end_index": 1}
    annotations = [{"type": "url_citation", "url_citation": citation}]
    ctx = context(RESPONSES_REQUEST)
    answer_responses_client({"refusal": "no", "annotations": annotations}, streamed, ctx)
    assert [change.reason for change in ctx.receipt.losses] == ["the annotations belong to no text"]


def answer_chat_client(output: list[JsonObject], streamed: bool, ctx: Context, **top: JsonValue) -> JsonObject:
    """The chat reply, or the last chunk, that a client gets for a Responses provider's output."""
    base = new_response(RESPONSES_REQUEST, "resp_1", "m", 1)
    response = {**base, "status": "completed", "output": output, **top}
    if not streamed:
        return TO_RESPONSES.reply(response, CHAT_REQUEST, ctx)
    translator = TO_RESPONSES.stream(ctx.request, ctx)
    events: list[Output] = [Chunk({"type": "response.completed", "response": response}), End()]
    chunks = [made.body for output in events for made in translator.feed(output) if isinstance(made, Chunk)]
    assert all(load_validator("hub/chat.event").accepts(chunk) for chunk in chunks)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    notes = [note for delta in deltas for note in delta.get("annotations", ())]
    said = {"content": "".join(delta.get("content") or "" for delta in deltas), "annotations": notes}
    return {**chunks[-1], "choices": [{"message": said}]}


def said(*texts: str, **more: JsonValue) -> JsonObject:
    parts = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": parts, **more}


@WHOLE_OR_STREAMED
def test_a_chat_reply_has_what_a_response_says_beside_its_output(streamed: bool) -> None:
    ctx = context(CHAT_REQUEST)
    top = {"service_tier": "flex", "metadata": {"k": "v"}, "content_filters": [{"blocked": False}]}
    made = answer_chat_client([said("hi")], streamed, ctx, **top)
    assert {key: made.get(key) for key in top} == top
    assert losses(ctx) == []


@WHOLE_OR_STREAMED
def test_the_service_tier_is_not_invented(streamed: bool) -> None:
    assert "service_tier" not in answer_chat_client([said("hi")], streamed, context(CHAT_REQUEST))
    asked = context({**CHAT_REQUEST, "service_tier": "auto"})
    assert answer_chat_client([said("hi")], streamed, asked)["service_tier"] == "default"


@WHOLE_OR_STREAMED
def test_the_receipt_names_the_keys_of_items_that_chat_lacks(streamed: bool) -> None:
    ctx = context(CHAT_REQUEST)
    answer_chat_client([said("hi", phase="final_answer", vendor=1)], streamed, ctx)
    assert losses(ctx) == ["phase", "vendor"]


@WHOLE_OR_STREAMED
def test_the_texts_of_two_messages_are_separated_and_positions_follow(streamed: bool) -> None:
    citation = {"url": "https://example.org", "title": "t", "start_index": 0, "end_index": 2}
    second = said("cd")
    second["content"][0]["annotations"] = [{"type": "url_citation", **citation}]
    made = answer_chat_client([said("a", "b"), second], streamed, context(CHAT_REQUEST))
    [choice] = made["choices"]
    assert choice["message"]["content"] == "ab\n\ncd"
    [note] = choice["message"]["annotations"]
    assert (note["url_citation"]["start_index"], note["url_citation"]["end_index"]) == (4, 6)


def test_usage_that_the_client_did_not_ask_for_is_left_out_of_a_stream_and_named() -> None:
    ctx = context(CHAT_REQUEST)
    counts = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    answer_chat_client([said("hi")], True, ctx, usage=counts)
    assert ("usage",) in [change.before for change in ctx.receipt.changes]
