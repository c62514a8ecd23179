"""Whole replies between Messages and chat."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.adapters.call import Context
from dragoman.adapters.faults import Fault
from dragoman.adapters.translate.bridge import BRIDGES
from dragoman.adapters.translate.message_replies import message_to_chat_reply, to_message
from dragoman.adapters.translate.message_usage import to_messages_usage
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue

from .message_conversations import make_context

ASK: JsonObject = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
COUNTS = {"input_tokens": 10, "output_tokens": 5}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "sig"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}
CITED = {"type": "char_location", "cited_text": "x", "document_index": 0, "start_char_index": 0, "end_char_index": 1}
PAGE = {
    "type": "web_search_result_location",
    "url": "https://example.org",
    "title": "t",
    "cited_text": "x",
    "encrypted_index": "e",
}


def message(*content: JsonObject, **keys: JsonValue) -> JsonObject:
    head: JsonObject = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [*content]}
    return {**head, "stop_reason": "end_turn", "stop_sequence": None, "usage": COUNTS, **keys}


def text(said: str, *citations: JsonObject) -> JsonObject:
    return {"type": "text", "text": said, **({"citations": [*citations]} if citations else {})}


def to_chat(*content: JsonObject, **keys: JsonValue) -> tuple[JsonObject, Context]:
    ctx = make_context(ASK)
    made = message_to_chat_reply(message(*content, **keys), ctx)
    assert [one.message for one in load_validator("hub/chat.reply").violations(made)] == []
    return made, ctx


def chat_reply(said: JsonObject, finish: str = "stop", **keys: JsonValue) -> JsonObject:
    choice = {"index": 0, "message": {"role": "assistant", "content": None, "refusal": None, **said}, "logprobs": None}
    head: JsonObject = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
    ending = {key: keys.pop(key) for key in ("stop_reason", "stop_sequence", "native_finish_reason") if key in keys}
    return {**head, "choices": [{**choice, "finish_reason": finish, **ending}], **keys}


def to_messages(reply: JsonObject, **request: JsonValue) -> tuple[JsonObject, Context]:
    ctx = make_context(ASK)
    made = to_message(reply, {**ASK, **request}, ctx)
    assert [one.message for one in load_validator("hub/messages.reply").violations(made)] == []
    return made, ctx


def test_blocks_become_a_message() -> None:
    made, ctx = to_chat(THOUGHT, text("one "), text("two"), CALL, stop_reason="tool_use")
    [choice] = made["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["native_finish_reason"] == "tool_use"
    said = choice["message"]
    assert (said["content"], said["reasoning_content"], said["reasoning_signature"]) == ("one two", "hm", "sig")
    function = {"name": "f", "arguments": '{"a":1}'}
    assert said["tool_calls"] == [{"id": "toolu_1", "type": "function", "function": function}]
    assert ctx.receipt.losses == []


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("stop_sequence", "stop"),
        ("pause_turn", "length"),
        ("refusal", "content_filter"),
    ],
)
def test_the_reason_of_the_end_comes_back(reason: str, finish: str) -> None:
    sequence = "###" if reason == "stop_sequence" else None
    made, ctx = to_chat(text("x"), stop_reason=reason, stop_sequence=sequence)
    assert made["choices"][0]["finish_reason"] == finish
    assert [change.before for change in ctx.receipt.losses] == ([("stop_reason",)] if reason == "pause_turn" else [])
    back, _ = to_messages(made)
    assert (back["stop_reason"], back["stop_sequence"]) == (reason, sequence)


def test_the_stop_string_that_a_server_names_is_the_stop_sequence_if_it_was_asked_for() -> None:
    reply = chat_reply({"content": "x"}, stop_reason="###")
    assert to_messages(reply, stop_sequences=["###"])[0]["stop_sequence"] == "###"
    assert to_messages(reply)[0]["stop_reason"] == "end_turn"


def test_a_refusal_is_an_ending_and_a_text() -> None:
    made, _ = to_chat(stop_reason="refusal", stop_details={"type": "refusal", "category": None, "explanation": "no"})
    said = made["choices"][0]["message"]
    assert (said["content"], said["refusal"]) == (None, "no")
    back, ctx = to_messages(made)
    assert (back["stop_reason"], back["content"]) == ("refusal", [text("no")])
    assert ctx.receipt.losses == []


@pytest.mark.parametrize(
    ("prompt", "read", "written", "counted"),
    [
        (2168, 2161, 2161, (0, 2161, 7)),  # OpenRouter, of Gemini: the same tokens are read and written
        (2168, 0, 2161, (7, 0, 2161)),
        (2168, 2000, 100, (68, 2000, 100)),
        (7, 2161, 0, (0, 2161, 0)),  # a server that does not count what its cache holds
    ],
)
def test_tokens_of_the_prompt_are_counted_once(
    prompt: int, read: int, written: int, counted: tuple[int, int, int]
) -> None:
    details = {"cached_tokens": read, "cache_write_tokens": written}
    made = to_messages_usage({"prompt_tokens": prompt, "completion_tokens": 1, "prompt_tokens_details": details})
    keys = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    assert tuple(made[key] for key in keys) == counted


def test_counts_of_the_cache_come_back_exactly() -> None:
    usage = {**COUNTS, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3, "service_tier": "priority"}
    made, _ = to_chat(text("x"), usage=usage)
    assert made["usage"]["prompt_tokens"] == 20
    assert made["usage"]["prompt_tokens_details"] == {"cached_tokens": 7, "cache_write_tokens": 3}
    assert made["service_tier"] == "priority"
    assert to_messages(made)[0]["usage"] == usage


def test_citations_come_back_and_those_with_an_address_are_annotations() -> None:
    content = [text("a "), text("b", CITED, PAGE), text(" c")]
    made, ctx = to_chat(*content)
    said = made["choices"][0]["message"]
    [annotation] = said["annotations"]
    assert annotation["url_citation"] == {"url": "https://example.org", "title": "t", "start_index": 2, "end_index": 3}
    assert to_messages(made)[0]["content"] == content
    assert ctx.receipt.losses == []


def test_annotations_of_other_providers_are_citations_of_web_pages() -> None:
    place = {"start_index": 0, "end_index": 1, "url": "https://example.org", "title": "t"}
    made, _ = to_messages(
        chat_reply({"content": "ab", "annotations": [{"type": "url_citation", "url_citation": place}]})
    )
    assert [one["text"] for one in made["content"]] == ["a", "b"]
    [citation] = made["content"][0]["citations"]
    assert (citation["type"], citation["url"]) == ("web_search_result_location", "https://example.org")


def test_reasoning_that_nobody_signed_has_an_empty_signature() -> None:
    made, _ = to_messages(chat_reply({"content": "x", "reasoning_content": "hm"}))
    assert made["content"][0] == {"type": "thinking", "thinking": "hm", "signature": ""}


def test_blocks_of_tools_that_run_at_the_provider_are_lost_and_named() -> None:
    made, ctx = to_chat({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, text("x"))
    assert made["choices"][0]["message"]["content"] == "x"
    assert [change.before for change in ctx.receipt.losses] == [("content", 0)]


@pytest.mark.parametrize("arguments", ["{", "[1]", "nan", '"a"', '{"a":' * 200 + "1" + "}" * 200])
def test_arguments_that_are_no_object_are_a_fault_of_the_provider(arguments: str) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    with pytest.raises(Fault) as caught:
        to_message(chat_reply({"tool_calls": [call]}, "tool_calls"), ASK, make_context(ASK))
    assert caught.value.kind == "upstream_invalid_response"


@pytest.mark.parametrize("kind", ["function", "custom"])
def test_a_call_without_a_name_is_a_fault_of_the_provider(kind: str) -> None:
    call = {"id": "c", "type": kind, kind: {"name": "", "arguments": "{}", "input": "x"}}
    with pytest.raises(Fault, match="no name"):
        to_message(chat_reply({"tool_calls": [call]}, "tool_calls"), ASK, make_context(ASK))


def test_a_number_that_an_object_does_not_have_exactly_is_a_loss() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":123456789012345678901}'}}
    made, ctx = to_messages(chat_reply({"tool_calls": [call]}, "tool_calls"))
    assert made["content"][0]["input"] == {"a": 123456789012345680000.0}
    assert "64 bits" in ctx.receipt.losses[0].reason


@pytest.mark.parametrize("arguments", ["", " ", "{}"])
def test_a_call_without_arguments_has_an_empty_input(arguments: str) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    made, _ = to_messages(chat_reply({"tool_calls": [call]}, "tool_calls"))
    assert (made["content"], made["stop_reason"]) == ([{**CALL, "id": "c", "input": {}}], "tool_use")


def test_the_other_forms_of_calls_have_inputs_too() -> None:
    free = {"id": "c", "type": "custom", "custom": {"name": "f", "input": "free"}}
    assert to_messages(chat_reply({"tool_calls": [free]}, "tool_calls"))[0]["content"][0]["input"] == {"input": "free"}
    old = {"function_call": {"name": "f", "arguments": '{"a":1}'}}
    assert to_messages(chat_reply(old, "function_call"))[0]["content"][0]["input"] == {"a": 1}


def test_googles_signature_of_a_call_comes_back_with_the_next_request() -> None:
    extra = {"google": {"thought_signature": "sig"}}
    function = {"name": "f", "arguments": "{}"}
    call = {"id": "c", "type": "function", "function": function, "extra_content": extra}
    made, _ = to_messages(chat_reply({"tool_calls": [call]}, "tool_calls"))
    turns = [*ASK["messages"], {"role": "assistant", "content": made["content"]}]
    result = {"type": "tool_result", "tool_use_id": "c", "content": "x"}
    request: JsonObject = {**ASK, "messages": [*turns, {"role": "user", "content": [result]}]}
    again = BRIDGES["messages"][0].request(make_context(request)).request
    assert again["messages"][1]["tool_calls"] == [call]


def test_what_messages_has_no_place_for_is_named() -> None:
    logprobs = {"content": [{"token": "x", "logprob": 0, "bytes": None, "top_logprobs": []}], "refusal": None}
    reply = chat_reply({"content": "x"}, system_fingerprint="fp")
    reply["choices"][0]["logprobs"] = logprobs
    reply["choices"].append({**reply["choices"][0], "index": 1})
    _, ctx = to_messages(reply)
    lost = {change.before for change in ctx.receipt.losses}
    assert lost == {("choices", 1), ("choices", 0, "logprobs", "content"), ("system_fingerprint",)}


TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=4)
BLOCKS = st.tuples(
    st.lists(
        TEXTS.map(lambda said: {"type": "thinking", "thinking": said, "signature": f"s{said}"})
        | TEXTS.map(lambda data: {"type": "redacted_thinking", "data": data}),
        max_size=2,
    ),
    st.lists(TEXTS.map(text) | TEXTS.map(lambda said: text(said, CITED, PAGE)), max_size=3),
    st.lists(TEXTS.map(lambda said: {**CALL, "input": {"a": said}}), max_size=2),
)


def join_texts(content: list[JsonObject]) -> list[JsonObject]:
    """The blocks, in which texts without citations that follow one another are one."""
    made: list[JsonObject] = []
    for block in content:
        if made and made[-1].keys() == block.keys() == {"type", "text"}:
            made[-1] = text(made[-1]["text"] + block["text"])
        else:
            made.append(block)
    return made


def test_a_reply_comes_back_the_same_from_chat() -> None:
    def law(blocks: tuple[list[JsonObject], ...]) -> None:
        content = [one for kind in blocks for one in kind]
        made, there = to_chat(*content)
        back, again = to_messages(made)
        assert (there.receipt.losses, again.receipt.losses) == ([], [])
        assert join_texts(back["content"]) == join_texts(content)
        kept = ("stop_reason", "stop_sequence", "model")
        assert [back[key] for key in kept] == ["end_turn", None, "m"]

    settings(suppress_health_check=[*HealthCheck])(given(BLOCKS)(law))()


def test_a_reply_comes_back_from_responses_with_all_that_a_response_can_say() -> None:
    def law(blocks: tuple[list[JsonObject], ...]) -> None:
        content = [one for kind in blocks for one in kind if not one.get("citations")]
        ctx = make_context(ASK)
        to_responses, from_responses = BRIDGES["responses"][1], BRIDGES["messages"][1]
        response = to_responses.reply(message(*content), {"model": "m", "input": "x"}, ctx)
        assert [one.message for one in load_validator("hub/responses.reply").violations(response)] == []
        back = from_responses.reply(response, ASK, ctx)
        assert join_texts(back["content"]) == join_texts(content)

    settings(suppress_health_check=[*HealthCheck])(given(BLOCKS)(law))()
