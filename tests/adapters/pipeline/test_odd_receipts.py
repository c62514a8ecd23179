"""Odd replies whose changes are in the receipt: each was found by the fuzzer, and lost something in silence."""

from __future__ import annotations

import orjson
import pytest

from dragoman.adapters.call import JsonObject, Policy, Target
from dragoman.adapters.changes import Change

from .exchanges import Exchange, encode_chunks, make_reply, run_exchange

ENVELOPE = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
OFF = Target("m", policy=Policy(replies="off", emulate_completions=True))
EMULATED = Target("m", policy=Policy(emulate_completions=True))


def encode_events(*events: JsonObject) -> bytes:
    return b"".join(b"data: " + orjson.dumps({**ENVELOPE, **event}) + b"\n\n" for event in events) + b"data: [DONE]\n\n"


def find_changes(got: Exchange, *path: str | int) -> list[Change]:
    return [change for change in got.receipt.changes if path in (change.before, change.after)]


@pytest.mark.parametrize("word", ["None", "null", "NOT_FINISHED"])
def test_a_word_for_a_choice_that_goes_on_reads_null(word: str) -> None:
    going = {"index": 0, "delta": {"role": "assistant", "content": "hi"}, "finish_reason": word}
    stop = {"index": 0, "delta": {}, "finish_reason": "stop"}
    got = run_exchange("openai/chat", "openai/chat", encode_events({"choices": [going]}, {"choices": [stop]}))
    assert got.events[0]["choices"][0]["finish_reason"] is None
    assert [change.weight for change in find_changes(got, "choices", 0, "finish_reason")] == ["form"]


def test_a_word_for_a_completion_that_goes_on_reads_null() -> None:
    pieces = [{"index": 0, "text": "hi", "finish_reason": "None"}, {"index": 0, "text": "", "finish_reason": "stop"}]
    data = encode_events(*({"object": "text_completion", "choices": [one]} for one in pieces))
    got = run_exchange("openai/completions", "openai/completions", data)
    assert got.events[0]["choices"][0]["finish_reason"] is None
    assert [change.weight for change in find_changes(got, "choices", 0, "finish_reason")] == ["form"]


def test_nested_settings_of_a_whole_documented_response_are_converted() -> None:
    reply = {"status": "completed", "output": [], "tool_choice": {"type": "function", "function": {"name": "look"}}}
    got = run_exchange(
        "openai/responses", "databricks/responses", orjson.dumps(reply), target=Target("m", "documented")
    )
    assert got.response["tool_choice"] == {"type": "function", "name": "look"}
    assert [change.action for change in find_changes(got, "tool_choice")] == ["converted"]


def test_an_empty_object_that_a_streamed_call_repeats_is_recorded() -> None:
    call = {"index": 0, "id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    again = {"index": 0, "function": {"arguments": "{}"}}
    got = run_exchange("openai/chat", "openai/chat", encode_chunks({"tool_calls": [call]}, {"tool_calls": [again]}))
    assert "".join(one["function"].get("arguments", "") for d in got.deltas for one in d.get("tool_calls", ())) == "{}"
    assert any("empty object" in change.reason for change in got.receipt.changes)


def test_a_key_of_a_chunk_that_the_next_one_replaces_is_a_loss_in_a_completion() -> None:
    texts = ({"choices": [{"index": 0, "delta": {"role": "assistant"}}], "full_text": "one"},)
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "full_text": "two"}
    got = run_exchange("openai/completions", "mindie/chat", encode_events(*texts, end), target=EMULATED)
    assert (got.events[0]["full_text"], "full_text" in got.lost) == ("two", True)


def test_usage_of_zero_that_a_documented_stream_has_no_place_for_is_a_loss() -> None:
    data = encode_events({"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}], "usage": 0})
    assert run_exchange("mindie:documented/chat", "mindie/chat", data, target=OFF).lost == {"usage"}


def test_choices_without_an_index_are_counted_by_position_for_databricks() -> None:
    choices: list[JsonObject] = [{"text": text, "finish_reason": "stop"} for text in "abc"]
    choices[1]["index"] = None
    reply = orjson.dumps({"choices": choices})
    got = run_exchange("databricks/completions", "openai/completions", reply, target=OFF, prompt=["a", "b", "c"])
    assert [choice["index"] for choice in got.events[0]["choices"]] == [0, 1, 2]
    assert len([change for change in got.receipt.changes if change.action == "filled"]) == 3


@pytest.mark.parametrize(("status", "action"), [(None, "filled"), ("odd", "converted")])
def test_the_status_that_an_item_of_a_whole_response_gets_is_recorded(status: str | None, action: str) -> None:
    item = {"type": "message", "role": "assistant", "content": [], "id": "m", "status": status}
    got = run_exchange("openai/responses", "openai/responses", orjson.dumps({"status": "failed", "output": [item]}))
    assert got.response["output"][0]["status"] == "completed"
    assert [change.action for change in find_changes(got, "output", 0, "status")] == [action]


def test_reasoning_in_a_list_inside_a_list_is_read() -> None:
    thoughts = [[{"type": "summary_text", "text": "be"}, {"type": "summary_text", "text": "cause"}]]
    got = run_exchange(
        "openai/chat", "mindie/chat", make_reply({"content": [{"type": "reasoning", "summary": thoughts}]})
    )
    assert got.message["reasoning_content"].split() == ["be", "cause"]


@pytest.mark.parametrize("refusal", [False, 3, ["no"]])
def test_a_refusal_that_is_no_text_is_lost_where_content_has_it(refusal: object) -> None:
    data = make_reply({"content": "x", "refusal": refusal})
    got = run_exchange("mindie/chat", "azure/chat", data, target=OFF)
    assert (got.message["content"], got.lost) == ("x", {"refusal"})


@pytest.mark.parametrize("streamed", [False, True])
def test_bytes_that_tokens_get_in_a_response_are_recorded(streamed: bool) -> None:
    logprobs = {"content": [{"token": "hi", "logprob": -1, "top_logprobs": []}]}
    choice = {"index": 0, "finish_reason": "stop", "logprobs": logprobs}
    said = {"role": "assistant", "content": "hi"}
    whole = orjson.dumps({**ENVELOPE, "choices": [{**choice, "message": said}]})
    data = encode_events({"choices": [{**choice, "delta": said}]}) if streamed else whole
    got = run_exchange("openai/responses", "openai/chat", data)
    assert got.response["output"][0]["content"][0]["logprobs"][0]["bytes"] == [104, 105]
    assert [change.weight for change in find_changes(got, "choices", 0, "logprobs")] == ["form"]


def test_a_chunk_keeps_its_other_keys_while_its_calls_are_held() -> None:
    calls = [{"tool_calls": [{"index": i, "function": {"name": "f", "arguments": "{"}}]} for i in (0, 1)]
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in calls]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    got = run_exchange("openai/chat", "openai/chat", encode_events(chunks[0], {**chunks[1], "x": 1}, end), target=OFF)
    assert [event.get("x") for event in got.events] == [None, 1, None]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("key", ["name", "audio", "refusal", "reasoning_content", "tool_call_id", "annotations"])
def test_a_value_that_a_client_could_not_send_back_is_a_loss(key: str, streamed: bool) -> None:
    said = {"content": "hi", key: False}
    got = run_exchange("openai/chat", "openai/chat", (encode_chunks if streamed else make_reply)(said))
    assert (got.message["content"], got.message.get(key), got.lost) == ("hi", None, {key})


def test_keys_of_a_chunk_that_joins_a_held_finish_are_kept_or_a_loss() -> None:
    finishes = [{"index": index, "delta": {}, "finish_reason": "stop"} for index in (0, 1)]
    late = {"choices": [{"index": 0, "delta": {}}, finishes[1]], "full_text": "x", "system_fingerprint": "b"}
    events = encode_events({"choices": [finishes[0]], "system_fingerprint": "a"}, late)
    got = run_exchange("openai/chat", "openai/chat", events)
    assert (got.events[-1]["full_text"], got.lost) == ("x", {"system_fingerprint"})


def test_a_fingerprint_that_the_last_usage_changes_is_a_loss_for_databricks() -> None:
    end = {"choices": [{"index": 0, "text": "x", "finish_reason": "stop"}], "system_fingerprint": "a"}
    usage = {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}, "system_fingerprint": "b"}
    asked = {"stream_options": {"include_usage": True}}
    got = run_exchange("databricks/completions", "openai/completions", encode_events(end, usage), **asked)
    assert got.lost == {"system_fingerprint"}


def test_annotations_that_are_no_list_are_a_loss() -> None:
    data = make_reply({"content": "x", "annotations": False})
    assert run_exchange("azure/chat", "openai/chat", data).lost == {"annotations"}


def test_missing_keys_of_an_item_of_a_whole_response_are_recorded() -> None:
    got = run_exchange("openai/responses", "openai/responses", orjson.dumps({"output": [{"type": "message"}]}))
    filled = {change.after[2:] for change in got.receipt.changes if change.after[:2] == ("output", 0)}
    assert filled == {("id",), ("role",), ("status",)}


@pytest.mark.parametrize("protocol", ["chat", "completions"])
def test_a_choice_goes_on_if_another_one_ends_in_the_same_chunk(protocol: str) -> None:
    def make_choice(index: int, text: str, finish: str | None) -> JsonObject:
        said = {"text": text} if protocol == "completions" else {"delta": {"content": text} if text else {}}
        return {"index": index, **said, "finish_reason": finish}

    first = {"choices": [make_choice(0, "", "stop"), make_choice(1, "a", None)]}
    second = {"choices": [make_choice(0, "", None), make_choice(1, "b", "length")]}
    got = run_exchange(f"openai/{protocol}", f"openai/{protocol}", encode_events(first, second), n=2)
    choices = [choice for event in got.events for choice in event["choices"]]
    texts = [choice["text"] if protocol == "completions" else choice["delta"].get("content") for choice in choices]
    assert [text for text in texts if text] == ["a", "b"]
    assert {(c["index"], c["finish_reason"]) for c in choices if c["finish_reason"]} == {(0, "stop"), (1, "length")}
    assert got.lost == set()


def test_a_key_of_a_chunk_that_a_later_one_replaces_is_a_loss_in_a_response() -> None:
    choices = [{"index": 0, "delta": {"content": "hi"}}, {"index": 0, "delta": {}, "finish_reason": "stop"}]
    events = [{"choices": [choice], "full_text": text} for choice, text in zip(choices, ("one", "two"), strict=True)]
    got = run_exchange("openai/responses", "mindie/chat", encode_events(*events))
    assert (got.response["full_text"], got.lost) == ("two", {"full_text"})


def test_a_deprecated_call_without_arguments_becomes_an_item() -> None:
    data = encode_chunks({"function_call": {"name": "f"}}, finish="function_call")
    (item,) = run_exchange("openai/responses", "openai/chat", data).response["output"]
    assert (item["type"], item["name"], item["arguments"]) == ("function_call", "f", "")
