"""What a provider says and a client does not get is in the receipt, however odd the place where it says it."""

from __future__ import annotations

import orjson
import pytest

from dragoman.adapters.call import JsonObject, Policy, Target
from dragoman.adapters.changes import Change

from .exchanges import Exchange, encode_chunks, make_reply, run_exchange, write_call

ENVELOPE = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
STOP = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
TEXT = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "hi"}}]}
FILTERED = [{"prompt_index": 0, "content_filter_results": {"hate": {"filtered": False, "severity": "safe"}}}]


def encode_events(*events: JsonObject) -> bytes:
    return b"".join(b"data: " + orjson.dumps({**ENVELOPE, **event}) + b"\n\n" for event in events) + b"data: [DONE]\n\n"


def find_changes(got: Exchange, *path: str | int) -> list[Change]:
    return [change for change in got.receipt.changes if path in (change.before, change.after)]


def test_a_total_that_is_added_to_the_usage_of_a_response_is_recorded() -> None:
    reply = {
        "object": "response",
        "status": "completed",
        "output": [],
        "usage": {"input_tokens": 6, "output_tokens": 2},
    }
    got = run_exchange("openai/responses", "openai/responses", orjson.dumps(reply))
    assert got.response["usage"]["total_tokens"] == 8
    assert [change.weight for change in find_changes(got, "usage")] == ["form"]


def test_whole_usage_of_a_response_is_not_recorded() -> None:
    usage = {"input_tokens": 6, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}}
    usage |= {"output_tokens": 2, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 8}
    reply = {"object": "response", "status": "completed", "output": [], "usage": usage}
    got = run_exchange("openai/responses", "openai/responses", orjson.dumps(reply))
    assert (got.response["usage"], find_changes(got, "usage")) == (usage, [])


@pytest.mark.parametrize("streamed", [False, True])
def test_keys_next_to_a_citation_are_lost_in_a_response(streamed: bool) -> None:
    place = {"url": "u", "title": "t", "start_index": 0, "end_index": 1}
    message = {"content": "cited", "annotations": [{"type": "url_citation", "url_citation": place, "score": 1.5}]}
    got = run_exchange("openai/responses", "openai/chat", (encode_chunks if streamed else make_reply)(message))
    assert got.response["output"][0]["content"][0]["annotations"] == [{"type": "url_citation", **place}]
    assert got.lost == {"score"}


def test_the_first_choice_of_a_reply_may_come_last() -> None:
    own = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop", "err_msg": "odd"}
    other = {"index": 1, "message": {"role": "assistant", "content": "no"}, "finish_reason": "stop"}
    got = run_exchange("openai/responses", "mindie/chat", orjson.dumps({"choices": [other, own]}))
    assert got.response["output"][0]["content"][0]["text"] == "hi"
    lost = [change.before for change in got.receipt.losses]
    assert lost == [("choices", 0), ("choices", 1, "err_msg")]


def test_a_chunk_after_the_finish_that_says_nothing_of_its_choice_keeps_its_other_keys() -> None:
    late = {"choices": [{"index": 0, "delta": {}}], "err_msg": "odd"}
    got = run_exchange(
        "openai/chat", "openai/chat", encode_events(TEXT, STOP, late), stream_options={"include_usage": True}
    )
    assert "err_msg" in got.lost


def test_results_of_the_prompt_filter_that_come_after_the_finish_are_lost() -> None:
    note = {"choices": [], "prompt_filter_results": FILTERED}
    got = run_exchange("openai/chat", "azure/chat", encode_events(TEXT, STOP, note, {"choices": [{"index": 0}]}))
    assert got.lost == {"prompt_filter_results"}


def test_events_without_choices_may_say_different_things() -> None:
    notes = [{"choices": [], "err_msg": text} for text in ("one", "two")]
    got = run_exchange("openai/chat", "mindie/chat", encode_events(*notes, TEXT, STOP))
    assert [event["err_msg"] for event in got.events if "err_msg" in event] == ["two"]
    assert got.lost == {"err_msg"}


def test_keys_next_to_the_arguments_of_a_piece_are_lost() -> None:
    pieces: list[JsonObject] = [{"id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}]
    pieces += [{"function": {"arguments": "{}", "score": 1}}]
    deltas = [{"tool_calls": [{"index": 0, **piece}]} for piece in pieces]
    got = run_exchange("openai/chat", "openai/chat", encode_chunks(*deltas, finish="tool_calls"))
    assert [piece for delta in got.deltas for piece in delta["tool_calls"]][-1]["function"] == {"arguments": "{}"}
    assert any("score" in change.reason for change in got.receipt.losses)


def test_a_piece_of_a_call_after_the_finish_is_not_held_for_ever() -> None:
    finish = {
        "choices": [
            {"delta": {}, "finish_reason": "tool_calls"},
            {"delta": {"tool_calls": [{}, {"index": 1, "id": "b"}]}},
        ]
    }
    target = Target("m", policy=Policy(replies="report"))
    got = run_exchange("openai/chat", "openai/chat", encode_events(TEXT, finish), target=target)
    assert got.deltas[-1]["tool_calls"] == [{}, {"index": 1, "id": "b"}]


def test_the_last_usage_of_a_stream_replaces_the_one_of_the_finish() -> None:
    first, last = {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8}, {"total_tokens": 9}
    events = encode_events(TEXT, {**STOP, "usage": first}, {"choices": [], "usage": last})
    got = run_exchange(
        "databricks/chat", "databricks/chat", events, target=Target("m", policy=Policy(replies="report"))
    )
    assert (got.events[-1]["usage"], got.lost) == (last, {"usage"})


def test_an_empty_object_for_the_arguments_of_a_streamed_call_is_recorded() -> None:
    call = {"index": 0, "id": "a", "type": "function", "function": {"name": "f"}}
    got = run_exchange("openai/chat", "openai/chat", encode_chunks({"tool_calls": [call]}, finish="tool_calls"))
    assert got.deltas[-1]["tool_calls"] == [{"index": 0, "function": {"arguments": "{}"}}]
    assert "a call without arguments gets an empty object" in [change.reason for change in got.receipt.changes]


@pytest.mark.parametrize("include_usage", [False, True])
def test_a_chunk_that_repeats_an_ended_choice_among_others_is_read_on(include_usage: bool) -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "two"}}]}
    again, end = {"choices": [{"index": 0, "delta": {}}]}, {"choices": [{**STOP["choices"][0], "index": 1}]}
    events = encode_events(TEXT, STOP, other, again, end)
    options = {"stream_options": {"include_usage": include_usage}}
    got = run_exchange("openai/chat", "openai/chat", events, **options)
    assert [delta["content"] for delta in got.deltas] == ["hi", "two"]


def test_a_choice_after_its_finish_is_kept_if_it_has_keys_of_its_own() -> None:
    filtered = {"choices": [{"index": 0, "delta": {}, "content_filter_results": FILTERED[0]["content_filter_results"]}]}
    got = run_exchange("openai/chat", "azure/chat", encode_events(TEXT, STOP, filtered))
    choices = [choice for event in got.events for choice in event["choices"]]
    assert [choice.get("content_filter_results") for choice in choices if "content_filter_results" in choice] == [
        FILTERED[0]["content_filter_results"]
    ]
    assert choices[-1]["finish_reason"] == "stop"


def test_changes_of_a_stream_are_recorded_at_their_places() -> None:
    got = run_exchange("openai/chat", "openai/chat", encode_chunks({"reasoning": "a"}, {"reasoning": "b"}))
    (renamed,) = find_changes(got, "choices", 0, "delta", "reasoning")
    assert renamed.after == ("choices", 0, "delta", "reasoning_content")


def test_two_calls_in_two_keys_of_a_chunk_are_one() -> None:
    function = {"name": "f", "arguments": "{}"}
    delta = {
        "function_call": function,
        "tool_calls": [{"index": 0, "id": "a", "type": "function", "function": function}],
    }
    got = run_exchange("openai/responses", "openai/chat", encode_chunks(delta, finish="tool_calls"))
    assert [item["arguments"] for item in got.response["output"]] == ["{}"]
    assert "function_call" in got.lost


def encode_response(*events: JsonObject, **item: JsonObject) -> bytes:
    """A Responses stream with these events and the one item that the last event has."""
    response = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "output": []}
    begun = {"type": "response.created", "response": {**response, "status": "in_progress"}}
    done = {**response, "status": "completed", "output": [item]}
    listed = [begun, *events, {"type": "response.completed", "response": done}]
    return b"".join(b"data: " + orjson.dumps(event) + b"\n\n" for event in listed)


def test_a_text_that_is_longer_in_the_last_event_than_in_pieces_is_a_loss_in_chat() -> None:
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    part = {"type": "output_text", "text": "hello", "annotations": []}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    pieces = [{"type": "response.output_text.delta", **place, "delta": text} for text in ("he", "o")]
    got = run_exchange("openai/chat", "openai/responses", encode_response(*pieces, **item, content=[part]))
    assert got.message["content"] == "heo"
    assert [change.before for change in got.receipt.losses] == [("output", 0)]
    whole = run_exchange("openai/chat", "openai/responses", encode_response(**item, content=[part]))
    assert (whole.message["content"], whole.receipt.losses) == ("hello", [])


def test_a_second_kind_of_reasoning_of_an_item_is_a_loss_in_chat() -> None:
    item = {"type": "reasoning", "id": "rs_1", "status": "completed"}
    parts = {
        "summary": [{"type": "summary_text", "text": "short"}],
        "content": [{"type": "reasoning_text", "text": "long"}],
    }
    got = run_exchange("openai/chat", "openai/responses", encode_response(**item, **parts))
    assert got.message["reasoning_content"] == "long"
    assert [change.before for change in got.receipt.losses] == [("output", 0)]


def test_parts_of_reasoning_of_any_type_are_read() -> None:
    parts = [{"type": "summary_text", "text": "a"}, {"text": "b"}, {"type": "x_part", "text": "c"}]
    got = run_exchange(
        "openai/chat", "databricks/chat", make_reply({"content": [{"type": "reasoning", "summary": parts}]})
    )
    assert got.message["reasoning_content"] == "a\n\nbc"


def test_reasoning_that_becomes_a_block_is_recorded() -> None:
    replies = make_reply({"content": "hi", "reasoning_content": "a"}), encode_chunks({"reasoning_content": "a"})
    for reply in replies:
        got = run_exchange("databricks/chat", "openai/chat", reply)
        (change,) = [one for one in got.receipt.changes if one.before[-1:] == ("reasoning_content",)]
        assert (change.after[-1], change.weight) == ("content", "form")


def test_embeddings_in_another_format_are_recorded() -> None:
    got = run_exchange("openai/embeddings", "openai/embeddings", orjson.dumps(EMBEDDINGS), encoding_format="base64")
    assert [change.reason for change in find_changes(got, "data")] == ["vectors get the format that was asked for"]
    assert [change.weight for change in find_changes(got, "usage", "completion_tokens")] == ["loss"]
    other = run_exchange("azure/embeddings", "openai/embeddings", orjson.dumps(EMBEDDINGS))
    assert [change.action for change in find_changes(other, "id")] == ["filled"]


EMBEDDINGS = {
    "object": "list",
    "model": "m",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 1},
}


def test_values_that_replace_others_are_conversions() -> None:
    reply = {"choices": [{"message": {"role": 7, "content": "hi"}, "finish_reason": "stop"}], "created": "soon"}
    got = run_exchange("openai/chat", "openai/chat", orjson.dumps(reply))
    assert [one.action for one in find_changes(got, "created")] == ["converted"]
    assert [one.action for one in find_changes(got, "choices", 0, "message", "role")] == ["converted"]
    assert [one.action for one in find_changes(got, "choices", 0, "index")] == ["filled"]


def test_a_delta_that_is_a_list_is_not_read_as_pairs() -> None:
    target = Target("m", policy=Policy(replies="report"))
    chunk = {"choices": [{"index": 0, "delta": [{"role": "assistant", "content": ""}]}]}
    with pytest.raises(AssertionError, match="state='failed'"):
        run_exchange("databricks/chat", "openai/chat", encode_events(chunk, STOP), target=target)


def test_an_event_that_is_none_of_a_response_is_a_loss_unless_it_only_keeps_alive() -> None:
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": []}
    quiet = {"type": "x_vendor.note", "sequence_number": 3}
    got = run_exchange("openai/responses", "openai/responses", encode_response(quiet, **item))
    assert got.receipt.losses == []
    loud = run_exchange("openai/responses", "openai/responses", encode_response({**quiet, "said": 1}, **item))
    assert [change.before for change in loud.receipt.losses] == [("output",)]


def test_a_documented_response_records_what_it_says_in_another_way() -> None:
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    call = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"}
    reply = {"object": "response", "status": "completed", "completed_at": 7, "output": [call], "usage": usage}
    got = run_documented({**reply, "tools": [{"type": "x_search"}]})
    changed = {change.before: change.weight for change in got.receipt.changes if change.before}
    assert (changed["usage",], changed["output", 0], changed["completed_at",]) == ("form", "form", "form")
    assert (changed["tools",], got.response["tools"]) == ("loss", [])


def run_documented(reply: JsonObject) -> Exchange:
    """A response as a client of the documented Databricks API gets it."""
    return run_exchange("databricks:documented/responses", "openai/responses", orjson.dumps(reply))


def test_the_documented_object_of_a_chat_reply_is_recorded() -> None:
    got = run_exchange("databricks:documented/chat", "openai/chat", make_reply({"content": "hi"}))
    assert got.events[0]["object"] == "chat.completions"
    assert [change.weight for change in find_changes(got, "object")] == ["form"]


def test_reasoning_tokens_that_move_are_recorded() -> None:
    details = {"completion_tokens_details": {"reasoning_tokens": 1}}
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3, **details}
    got = run_exchange("databricks/chat", "openai/chat", make_reply({"content": "hi"}, usage=usage))
    assert got.events[0]["usage"]["reasoning_tokens"] == 1
    assert [one.action for one in find_changes(got, "usage", "reasoning_tokens")] == ["converted"]


def test_the_position_of_a_call_in_a_request_is_left_out_of_an_item() -> None:
    call = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    answer = {"role": "assistant", "content": None, "tool_calls": [call]}
    messages = [{"role": "user", "content": "x"}, answer, {"role": "tool", "tool_call_id": "a", "content": "1"}]
    _, receipt = write_call("openai/chat", "openai/responses", {"messages": messages}, Target("m"))
    (dropped,) = [one for one in receipt.changes if one.before[-1:] == ("index",)]
    assert (dropped.before, dropped.weight) == (("messages", 1, "tool_calls", 0, "index"), "form")


def test_the_option_of_an_emulated_stop_is_emulated_too() -> None:
    target = Target("m", emulates=frozenset({"stop"}), lacks=frozenset({"stop"}))
    asked = {"stop": ["x"], "include_stop_str_in_output": True}
    sent, receipt = write_call("openai/chat", "openai/chat", asked, target)
    assert not sent.keys() & asked.keys()
    assert {one.before for one in receipt.changes if one.action == "emulated"} == {(key,) for key in asked}


def test_an_item_of_a_whole_response_that_gets_its_missing_keys_is_recorded() -> None:
    reply = {"object": "response", "status": "completed", "output": [{"type": "message", "content": "hi"}]}
    got = run_exchange("openai/responses", "openai/responses", orjson.dumps(reply))
    (item,) = got.response["output"]
    assert (item["status"], item["content"][0]["text"]) == ("completed", "hi")
    assert [change.weight for change in find_changes(got, "output") if change.action == "converted"] == ["form"]


@pytest.mark.parametrize(("function", "weight"), [("look", "form"), ("other", "loss")])
def test_a_deprecated_call_that_is_none_of_the_tool_calls_is_a_loss(function: str, weight: str) -> None:
    called = {"name": "look", "arguments": "{}"}
    message = {"tool_calls": [{"id": "a", "type": "function", "function": called}]}
    message["function_call"] = {**called, "name": function}
    tool = {"type": "function", "function": {"name": "look"}}
    got = run_exchange("openai/chat", "openai/chat", make_reply(message, "tool_calls"), tools=[tool])
    (change,) = find_changes(got, "choices", 0, "message", "function_call")
    assert (change.action, change.weight) == ("converted" if weight == "form" else "dropped", weight)


def test_settings_of_a_documented_response_that_are_no_list_of_tools_are_a_loss() -> None:
    reply = {"object": "response", "status": "completed", "output": [], "tools": 2}
    target = Target("up", policy=Policy(replies="report"))
    got = run_exchange("databricks:documented/responses", "openai/responses", orjson.dumps(reply), target=target)
    assert (got.response["tools"], "tools" in got.lost) == ([], True)
