from __future__ import annotations

from pathlib import Path

import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.chat.assembly import assemble_chat
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.faults import Fault
from dragoman.adapters.responses.events import (
    ARGUMENTS,
    OUTPUT_TEXT,
    REASONING_TEXT,
    REFUSAL,
    SUMMARY_TEXT,
    annotation_added,
    item_added,
    item_done,
    lifecycle_event,
    text_delta,
    text_done,
)
from dragoman.adapters.responses.response_object import new_response
from dragoman.adapters.responses.stream import ResponsesStreamReader
from dragoman.adapters.streams import Chunk, End, Output
from dragoman.adapters.translate.replies import to_chat_reply
from dragoman.adapters.translate.responses_to_chat import ResponsesToChat
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject

STREAMS = Path(__file__).parent.parent / "responses" / "fixtures" / "streams"
BASE = new_response({"model": "m"}, "resp_1", "gpt", 1_700_000_000)
USAGE = {"input_tokens": 3, "input_tokens_details": {"cached_tokens": 1}, "output_tokens": 4}
USAGE.update(output_tokens_details={"reasoning_tokens": 2}, total_tokens=7)
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{}"}
COMPLETED = lifecycle_event("completed", {**BASE, "status": "completed", "usage": USAGE})


def make_context(include_usage: bool = False) -> Context:
    request: JsonObject = {"model": "m", "messages": [], "stream": True}
    if include_usage:
        request["stream_options"] = {"include_usage": True}
    call = Call("POST", "/v1/chat/completions", request)
    return Context("actual", call, Receipt(), Target("up"), request, lambda: 1.7e9, lambda prefix: f"{prefix}_1")


def translated(*bodies: JsonObject, ctx: Context | None = None) -> list[Output]:
    translator = ResponsesToChat(ctx or make_context())
    outputs: list[Output] = [*(Chunk(body) for body in bodies), End()]
    return [made for output in outputs for made in translator.feed(output)]


def checked(outputs: list[Output]) -> list[JsonObject]:
    found = []
    for one in outputs[:-1]:
        assert isinstance(one, Chunk)
        ChatCompletionChunk.model_validate(one.body)
        assert [each.message for each in load_validator("hub/chat.event").violations(one.body)] == []
        found.append(one.body)
    return found


def list_arguments(found: list[JsonObject]) -> str:
    """The arguments of the first call, from all chunks."""
    deltas = [one["delta"] for body in found for one in body["choices"] if "tool_calls" in one["delta"]]
    return "".join(delta["tool_calls"][0]["function"]["arguments"] for delta in deltas)


def chunks(*bodies: JsonObject, ctx: Context | None = None) -> list[JsonObject]:
    outputs = translated(lifecycle_event("created", BASE), *bodies, ctx=ctx)
    assert isinstance(outputs[-1], End)
    return checked(outputs)


def deltas(*bodies: JsonObject) -> list[JsonObject]:
    """Between the first chunk, with the role, and the last, with the finish."""
    first, *between, last = [body["choices"][0]["delta"] for body in chunks(*bodies, COMPLETED)]
    assert (first, last) == ({"role": "assistant", "content": ""}, {})
    return between


def test_the_envelope_is_the_responses() -> None:
    for body in chunks(text_delta(OUTPUT_TEXT, "m", 0, 0, "a"), COMPLETED):
        envelope = (body["id"], body["object"], body["created"], body["model"])
        assert envelope == ("resp_1", "chat.completion.chunk", 1_700_000_000, "gpt")
        assert "usage" not in body


def test_each_kind_of_text_has_its_key() -> None:
    found = deltas(
        text_delta(REASONING_TEXT, "r", 0, 0, "hm"),
        text_delta(SUMMARY_TEXT, "s", 1, 0, "so"),
        text_delta(OUTPUT_TEXT, "m", 2, 0, "a"),
        text_delta(REFUSAL, "m", 2, 1, "no"),
    )
    said = [{"reasoning_content": "hm"}, {"reasoning_content": "\n\nso"}, {"content": "a"}, {"refusal": "no"}]
    assert found == said


def test_of_an_item_that_reasons_twice_the_first_kind_counts() -> None:
    found = deltas(
        text_delta(SUMMARY_TEXT, "r", 0, 0, "a"),
        text_delta(REASONING_TEXT, "r", 0, 0, "b"),
        item_done(0, {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "sig"}),
    )
    assert found == [{"reasoning_content": "a"}, {"reasoning_signature": "sig"}]


def test_parts_and_items_of_reasoning_are_separated_as_in_a_whole_reply() -> None:
    found = deltas(
        text_delta(SUMMARY_TEXT, "r", 0, 0, "a"),
        text_delta(SUMMARY_TEXT, "r", 0, 0, "b"),
        text_delta(SUMMARY_TEXT, "r", 0, 1, "c"),
        text_delta(SUMMARY_TEXT, "s", 1, 0, "d"),
        item_done(1, {"type": "reasoning", "id": "s", "summary": [], "encrypted_content": "sig"}),
        text_done(SUMMARY_TEXT, "t", 2, 0, "e"),
    )
    text = "".join(delta.get("reasoning_content", "") for delta in found)
    items = [(("a", "b"), ("c",)), (("d",),), (("e",),)]
    thoughts = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "".join(pieces)} for pieces in parts]}
        for parts in items
    ]
    thoughts[1]["encrypted_content"] = "sig"
    last = {**BASE, "status": "completed", "output": thoughts}
    message = to_chat_reply(last, make_context())["choices"][0]["message"]
    assert text == message["reasoning_content"] == "ab\n\nc\n\nd\n\ne"
    details = [detail for delta in found for detail in delta.get("reasoning_details", ())]
    assert details == message["reasoning_details"]


def test_calls_are_counted_from_0_whatever_their_place_in_the_output() -> None:
    found = deltas(
        item_added(1, CALL),
        item_added(4, {**CALL, "call_id": "call_2", "name": "g"}),
        text_delta(ARGUMENTS, "fc_2", 4, 0, "["),
        text_delta(ARGUMENTS, "fc_1", 1, 0, "{}"),
    )
    calls = [delta["tool_calls"][0] for delta in found]
    head = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}}
    assert calls[0] == head
    assert [(call["index"], call["function"]["arguments"]) for call in calls] == [(0, ""), (1, ""), (1, "["), (0, "{}")]


def test_without_pieces_the_whole_is_taken_once() -> None:
    part = {"type": "output_text", "text": "Hi", "annotations": []}
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
    found = deltas(
        text_done(OUTPUT_TEXT, "m", 0, 0, "Hi"),
        item_done(0, message),
        item_added(1, CALL),
        {**text_done(ARGUMENTS, "fc_1", 1, 0, "{}"), "": [{}]},
        item_done(1, CALL),
        item_done(2, {**CALL, "call_id": "call_2"}),
    )
    assert found[0] == {"content": "Hi"}
    calls = [(one["index"], one["function"]["arguments"]) for delta in found[1:] for one in delta["tool_calls"]]
    assert calls == [(0, ""), (0, "{}"), (1, ""), (1, "{}")]


def test_where_only_the_last_event_tells_it_is_believed() -> None:
    part = {"type": "output_text", "text": "Hi", "annotations": []}
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
    last = lifecycle_event("completed", {**BASE, "status": "completed", "output": [message, CALL]})
    found = [body["choices"][0] for body in chunks(last)]
    assert found[1]["delta"] == {"content": "Hi"}
    assert found[-1]["finish_reason"] == "tool_calls"


def test_what_only_the_last_event_tells_comes_after_what_was_told_before() -> None:
    note = {"type": "url_citation", "url": "http://a", "title": "a", "start_index": 0, "end_index": 1}
    part = {"type": "output_text", "text": "Hi", "annotations": [note]}
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
    thought = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "sig"}
    last = lifecycle_event("completed", {**BASE, "status": "completed", "output": [message, CALL, thought]})
    opened = item_added(3, {**message, "content": []})  # what came before is not in the last event
    found = [body["choices"][0] for body in chunks(opened, text_delta(OUTPUT_TEXT, "m", 3, 0, "Hi"), last)]
    assert [list(choice["delta"]) for choice in found[1:]] == [
        ["content"],
        ["annotations"],
        ["tool_calls"],
        ["tool_calls"],
        ["reasoning_details"],
        [],
    ]
    assert found[-1]["finish_reason"] == "tool_calls"


def test_what_came_before_is_not_told_again_at_the_end() -> None:
    note = {"type": "url_citation", "url": "http://a", "title": "a", "start_index": 0, "end_index": 1}
    part = {"type": "output_text", "text": "Hi", "annotations": [note]}
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
    thought = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "sig"}
    events = (
        item_done(0, thought),
        item_added(1, {**message, "content": []}),
        text_delta(OUTPUT_TEXT, "m", 1, 0, "Hi"),
        annotation_added("m", 1, 0, 0, note),
        item_done(1, message),
        item_done(2, CALL),
    )
    for output in ([thought, message, CALL], [message, CALL], [{**message, "id": "another"}, CALL]):
        last = lifecycle_event("completed", {**BASE, "status": "completed", "output": output})
        keys = [key for body in chunks(*events, last) for key in body["choices"][0]["delta"]]
        assert keys[2:] == ["reasoning_details", "content", "annotations", "tool_calls", "tool_calls"]


def test_an_empty_piece_does_not_stand_for_the_whole() -> None:
    found = deltas(
        text_delta(OUTPUT_TEXT, "m", 0, 0, ""),
        text_done(OUTPUT_TEXT, "m", 0, 0, "Hi"),
        item_added(1, CALL),
        text_delta(ARGUMENTS, "fc_1", 1, 0, ""),
        item_done(1, CALL),
    )
    assert found[0] == {"content": "Hi"}
    assert found[-1]["tool_calls"][0]["function"] == {"arguments": "{}"}


@pytest.mark.parametrize(
    ("last", "finish"),
    [
        (COMPLETED, "stop"),
        (lifecycle_event("incomplete", {**BASE, "incomplete_details": {"reason": "max_output_tokens"}}), "length"),
        (lifecycle_event("incomplete", {**BASE, "incomplete_details": {"reason": "content_filter"}}), "content_filter"),
        (lifecycle_event("incomplete", BASE), "length"),
    ],
)
def test_finish_reasons(last: JsonObject, finish: str) -> None:
    found = chunks(text_delta(OUTPUT_TEXT, "m", 0, 0, "a"), last)
    assert [body["choices"][0]["finish_reason"] for body in found] == [None, None, finish]


def test_a_call_makes_the_finish_tool_calls() -> None:
    assert chunks(item_added(0, CALL), COMPLETED)[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_usage_only_where_it_was_asked_for() -> None:
    *before, last = chunks(COMPLETED, ctx=make_context(include_usage=True))
    assert all(body["usage"] is None for body in before)
    assert last["choices"] == []
    assert last["usage"]["prompt_tokens"] == 3
    assert last["usage"]["completion_tokens_details"] == {"reasoning_tokens": 2}


def test_openais_helper_joins_the_annotations_of_a_text() -> None:
    """It joins lists of deltas by the index of their objects."""
    inner = {"url": "http://a", "title": "a", "start_index": 0}
    sources = [{"type": "url_citation", **inner, "end_index": end} for end in (1, 2, 3)]
    said = [annotation_added("m", 0, 0, k, source) for k, source in enumerate(sources)]
    state = ChatCompletionStreamState()
    found = chunks(text_delta(OUTPUT_TEXT, "m", 0, 0, "abc"), *said, COMPLETED)
    for body in found:
        state.handle_chunk(ChatCompletionChunk.model_validate(body))
    message = state.current_completion_snapshot.choices[0].message.to_dict()
    assert [one["url_citation"]["end_index"] for one in message["annotations"]] == [1, 2, 3]
    whole = assemble_chat(found)["choices"][0]["message"]["annotations"]
    assert [one.keys() for one in whole] == [{"type", "url_citation"}] * 3


def test_annotations_and_log_probabilities_in_chats_form() -> None:
    inner = {"url": "http://a", "title": "a", "start_index": 0, "end_index": 1}
    token = {"token": "a", "logprob": -0.1, "top_logprobs": [{"token": "b", "logprob": -2.0}]}
    found = chunks(
        text_delta(OUTPUT_TEXT, "m", 0, 0, "a", [token]),
        annotation_added("m", 0, 0, 0, {"type": "url_citation", **inner}),
        COMPLETED,
    )
    [told] = found[1]["choices"][0]["logprobs"]["content"]
    assert (told["bytes"], told["top_logprobs"][0]["bytes"]) == (None, None)
    assert found[2]["choices"][0]["delta"] == {
        "annotations": [{"type": "url_citation", "url_citation": inner, "index": 0}]
    }


@pytest.mark.parametrize(
    ("word", "error", "kind"),
    [
        ("failed", {"code": "rate_limit_exceeded", "message": "Slow down."}, "rate_limit"),
        ("failed", {"code": "server_error", "message": "Broke."}, "upstream_error"),
        ("failed", {"code": "invalid_prompt", "message": "Bad."}, "invalid_request"),
        ("failed", None, "upstream_error"),
        ("cancelled", None, "upstream_error"),
    ],
)
def test_a_response_that_failed_is_a_fault(word: str, error: JsonObject | None, kind: str) -> None:
    outputs = translated(lifecycle_event("created", BASE), lifecycle_event(word, {**BASE, "error": error}))
    assert len(checked(outputs)) == 1
    fault = outputs[-1]
    assert isinstance(fault, Fault) and fault.kind == kind
    assert fault.message == (error["message"] if error else f"the provider's response has the status {word}")


def test_an_end_stays_an_end_and_nothing_follows() -> None:
    translator = ResponsesToChat(make_context())
    translator.feed(Chunk(lifecycle_event("created", BASE)))
    assert translator.feed(End()) == [End()]
    assert translator.feed(Chunk(COMPLETED)) == translator.feed(Fault("internal", "late")) == []
    assert translator.dropped == 1


def test_a_fault_goes_on_unchanged() -> None:
    fault = Fault("upstream_timeout", "late")
    assert ResponsesToChat(make_context()).feed(fault) == [fault]


def test_items_that_chat_has_no_place_for_are_a_loss() -> None:
    ctx = make_context()
    search = {"type": "web_search_call", "id": "ws", "status": "completed"}
    assert len(chunks(item_added(0, search), item_done(0, search), COMPLETED, ctx=ctx)) == 2
    assert [change.reason for change in ctx.receipt.losses] == ["chat has no place for web_search_call items"]


@pytest.mark.parametrize("path", sorted(STREAMS.glob("*.sse")), ids=lambda path: path.stem)
def test_every_known_stream_makes_a_valid_one(path: Path) -> None:
    ctx = make_context()
    reader = ResponsesStreamReader(ReplyRules(path.stem.split("_")[0]), ctx)
    translator, writer = ResponsesToChat(ctx), dialects["openai"].served["chat"].write_stream(ctx)
    read = [*reader.receive(path.read_bytes()), *reader.close()]
    made = [one for output in read for one in translator.feed(output)]
    written = b"".join(map(writer.write, made))
    checked(made)
    assert (b"[DONE]" in written, writer.dropped, translator.dropped) == (isinstance(made[-1], End), 0, 0)


@pytest.mark.parametrize(("status", "arguments"), [("completed", "{}"), ("incomplete", "")])
def test_a_whole_call_without_arguments_has_an_empty_object(status: str, arguments: str) -> None:
    """Chat's clients parse the arguments of a call as JSON."""
    call, ctx = {**CALL, "arguments": "", "status": status}, make_context()
    end = lifecycle_event(status, {**BASE, "status": status, "output": [call], "usage": USAGE})
    assert list_arguments(chunks(item_added(0, call), item_done(0, call), end, ctx=ctx)) == arguments
    assert len([change for change in ctx.receipt.changes if change.action == "filled"]) == len(arguments) // 2
    whole = to_chat_reply({**BASE, "status": status, "output": [call], "usage": USAGE}, make_context())
    assert whole["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == arguments
