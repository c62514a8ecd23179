"""Chat streams as Messages streams: each way in which a chat stream can continue."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.emulation.stop_sequences import STOP_SEQUENCES
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import DeltaRun, End, Output, expand
from dragoman.adapters.translate.chat_to_messages import ChatToMessages
from dragoman.contract.json_types import JsonObject, JsonValue

from .message_oracles import (
    ENVELOPE,
    accumulate_message,
    check_events,
    list_bodies,
    make_chunk,
    make_context,
    make_piece,
    translate,
)

STREAMS = Path(__file__).parent.parent / "chat" / "fixtures" / "streams"
USAGE = {
    "prompt_tokens": 30,
    "completion_tokens": 4,
    "total_tokens": 34,
    "prompt_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 7},
    "completion_tokens_details": {"reasoning_tokens": 3},
}


def steps(*outputs: Output, **request: JsonValue) -> list[JsonObject]:
    return check_events(translate(ChatToMessages(request, make_context()), outputs))


def message(*outputs: Output, **request: JsonValue) -> JsonObject:
    return accumulate_message(steps(*outputs, End(), **request))


def losses(*outputs: Output) -> list[str]:
    ctx = make_context()
    check_events(translate(ChatToMessages({}, ctx), [*outputs, End()]))
    return [change.reason for change in ctx.receipt.losses]


def shorten(events: list[JsonObject]) -> list[str]:
    """The types of the events, and the indexes of their blocks."""
    return [event["type"].replace("content_block_", "") + str(event.get("index", "")) for event in events]


def stop(finish: str = "stop", **choice: JsonValue) -> Output:
    return make_chunk({}, finish, **choice)


def test_text_is_one_block_between_the_start_and_the_end_of_the_message() -> None:
    events = steps(make_chunk({"role": "assistant", "content": ""}), make_chunk({"content": "Hi"}), stop(), End())
    assert shorten(events) == ["message_start", "start0", "delta0", "stop0", "message_delta", "message_stop"]
    assert events[0]["message"] == {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 0,
            "output_tokens": 0,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }
    assert events[2]["delta"] == {"type": "text_delta", "text": "Hi"}
    assert events[4]["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}


def test_an_empty_answer_has_no_block() -> None:
    made = message(make_chunk({"role": "assistant", "content": ""}), stop())
    assert (made["content"], made["stop_reason"]) == ([], "end_turn")


def test_the_last_usage_counts_and_cached_tokens_are_no_input_tokens() -> None:
    usage = message(make_chunk({"content": "Hi"}), stop(), chunk_with(USAGE))["usage"]
    assert usage == {
        "input_tokens": 3,
        "cache_read_input_tokens": 20,
        "cache_creation_input_tokens": 7,
        "output_tokens": 4,
        "output_tokens_details": {"thinking_tokens": 3},
    }


def chunk_with(usage: JsonObject) -> Output:
    chunk = make_chunk({})
    chunk.body.update(choices=[], usage=usage)
    return chunk


def test_input_tokens_that_the_first_chunk_reports_are_in_the_first_event() -> None:
    first = make_chunk({"role": "assistant", "content": ""})
    first.body["usage"] = {"prompt_tokens": 9, "completion_tokens": 0, "total_tokens": 9}
    assert steps(first, stop(), End())[0]["message"]["usage"]["input_tokens"] == 9


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        ({"finish_reason": "stop"}, "end_turn"),
        ({"finish_reason": "length"}, "max_tokens"),
        ({"finish_reason": "tool_calls"}, "tool_use"),
        ({"finish_reason": "function_call"}, "tool_use"),
        ({"finish_reason": "content_filter"}, "refusal"),
        ({"finish_reason": "length", "native_finish_reason": "model_context_window_exceeded"}, None),
        ({"finish_reason": "length", "native_finish_reason": "pause_turn"}, None),
        ({"finish_reason": "stop", "native_finish_reason": "eos_token"}, "end_turn"),
        ({"finish_reason": "tool_calls", "native_finish_reason": "end_turn"}, "tool_use"),
    ],
)
def test_each_finish_reason(ending: JsonObject, reason: str | None) -> None:
    finish = ending.pop("finish_reason")
    made = message(make_chunk({"content": "x"}), stop(finish, **ending))
    assert made["stop_reason"] == (reason or ending["native_finish_reason"])


@pytest.mark.parametrize("key", ["stop_sequence", "stop_reason", "matched_stop"])
def test_a_stop_sequence_that_the_provider_names(key: str) -> None:
    made = message(make_chunk({"content": "x"}), stop(**{key: "END"}), stop_sequences=["END"])
    assert (made["stop_reason"], made["stop_sequence"]) == ("stop_sequence", "END")


def test_another_word_of_the_provider_is_no_stop_sequence() -> None:
    made = message(make_chunk({"content": "x"}), stop(stop_reason="</s>"), stop_sequences=["END"])
    assert (made["stop_reason"], made["stop_sequence"]) == ("end_turn", None)


def test_a_stop_sequence_at_which_dragoman_cuts_the_text() -> None:
    ctx = make_context({"model": "m", "messages": [], "stop": ["END", "#"]})
    assert STOP_SEQUENCES.merge is not None
    cut = STOP_SEQUENCES.merge(ctx, 1).feed(0, [make_chunk({"content": "one EN"}), make_chunk({"content": "D two"})])
    made = accumulate_message(check_events(translate(ChatToMessages({}, ctx), cut)))
    assert made["content"] == [{"type": "text", "text": "one "}]
    assert (made["stop_reason"], made["stop_sequence"]) == ("stop_sequence", "END")


def test_a_refusal_is_text_and_the_reason_of_the_end() -> None:
    made = message(make_chunk({"refusal": "I"}), make_chunk({"refusal": " won't."}), stop())
    assert made["content"] == [{"type": "text", "text": "I won't."}]
    assert made["stop_reason"] == "refusal"
    assert made["stop_details"] == {"type": "refusal", "category": None, "explanation": "I won't."}


def test_keys_of_a_vendor_in_the_first_chunk_are_keys_of_the_message() -> None:
    first, late = make_chunk({"content": "x"}), make_chunk({"content": "y"})
    first.body["vendor_key"] = late.body["vendor_key"] = late.body["late_key"] = {"a": 1}
    assert message(first, late, stop())["vendor_key"] == {"a": 1}
    assert losses(first, late, stop()) == ["Messages has no place for it"]


def test_reasoning_and_its_signature_are_one_block_before_the_text() -> None:
    events = steps(
        make_chunk({"reasoning_content": "Hm"}),
        make_chunk({"reasoning_content": "m."}),
        make_chunk({"reasoning_signature": "sig"}),
        make_chunk({"content": "Yes."}),
        stop(),
        End(),
    )
    assert [event["delta"]["type"] for event in events if event["type"] == "content_block_delta"] == [
        *["thinking_delta"] * 2,
        "signature_delta",
        "text_delta",
    ]
    assert accumulate_message(events)["content"] == [
        {"type": "thinking", "thinking": "Hmm.", "signature": "sig"},
        {"type": "text", "text": "Yes."},
    ]


def test_reasoning_without_a_signature_has_an_empty_one() -> None:
    made = message(make_chunk({"reasoning_content": "Hm"}), make_chunk({"content": "x"}), stop())
    assert made["content"][0] == {"type": "thinking", "thinking": "Hm", "signature": ""}


def test_several_blocks_of_reasoning() -> None:
    sealed = [{"type": "reasoning.encrypted", "data": "zzz", "index": 1}]
    made = message(
        make_chunk({"reasoning_content": "One", "reasoning_signature": "s1"}),
        make_chunk({"reasoning_details": sealed}),
        make_chunk({"reasoning_content": "\n\nTwo"}),
        make_chunk({"reasoning_signature": "s2"}),
        make_chunk({"content": "x"}),
        stop(),
    )
    assert made["content"] == [
        {"type": "thinking", "thinking": "One", "signature": "s1"},
        {"type": "redacted_thinking", "data": "zzz"},
        {"type": "thinking", "thinking": "Two", "signature": "s2"},
        {"type": "text", "text": "x"},
    ]


def test_a_call_closes_the_text_and_its_pieces_are_passed_on() -> None:
    events = steps(
        make_chunk({"content": "Let me see."}),
        make_piece(0, id="call_1", name="f"),
        make_piece(0, '{"a":'),
        make_piece(0, "1}"),
        stop("tool_calls"),
        End(),
    )
    ending = ["message_delta", "message_stop"]
    assert shorten(events)[1:] == ["start0", "delta0", "stop0", "start1", "delta1", "delta1", "stop1", *ending]
    assert events[4]["content_block"] == {"type": "tool_use", "id": "call_1", "name": "f", "input": {}}
    made = accumulate_message(events)
    assert made["content"][1] == {"type": "tool_use", "id": "call_1", "name": "f", "input": {"a": 1}}
    assert made["stop_reason"] == "tool_use"


def test_of_calls_that_alternate_each_ends_before_the_next_begins() -> None:
    made = message(
        make_piece(0, id="a", name="f"),
        make_piece(1, '{"x":', id="b", name="g"),
        make_piece(0, "{"),
        make_piece(1, "1"),
        make_piece(0, "}"),
        make_piece(1, "}"),
        stop("tool_calls"),
    )
    assert [(block["id"], block["name"], block["input"]) for block in made["content"]] == [
        ("a", "f", {}),
        ("b", "g", {"x": 1}),
    ]


def test_text_in_the_middle_of_a_call_comes_after_it() -> None:
    made = message(
        make_piece(0, "{", id="a", name="f"), make_chunk({"content": "wait"}), make_piece(0, "}"), stop("tool_calls")
    )
    assert [block["type"] for block in made["content"]] == ["tool_use", "text"]


def test_a_name_in_pieces_is_whole_when_the_block_begins() -> None:
    pieces = [make_piece(0, id="a", name="get"), make_piece(0, name="_weather"), make_piece(0, "{}")]
    assert message(*pieces, stop("tool_calls"))["content"][0]["name"] == "get_weather"
    late = [make_piece(0, "{", id="a", name="get"), make_piece(0, "}", name="_weather"), stop("tool_calls")]
    assert losses(*late) == ["a part of a call's name, or another key, after its arguments began"]


def test_a_call_without_arguments_has_an_empty_input() -> None:
    made = message(make_piece(0, id="a", name="f"), stop("length"))
    assert made["content"] == [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]
    assert made["stop_reason"] == "max_tokens"


def test_keys_that_a_provider_wants_back_are_keys_of_the_block() -> None:
    extra = {"google": {"thought_signature": "s"}}
    made = message(make_piece(0, "{}", id="a", name="f", extra_content=extra), stop("tool_calls"))
    assert made["content"][0]["extra_content"] == extra


def test_free_text_of_a_call_becomes_an_input() -> None:
    custom = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "f", "input": 'x "'}}
    more = {"index": 0, "custom": {"input": "y"}}
    made = message(make_chunk({"tool_calls": [custom]}), make_chunk({"tool_calls": [more]}), stop("tool_calls"))
    assert made["content"][0]["input"] == {"input": 'x "y'}


def test_the_deprecated_form_of_a_call() -> None:
    made = message(
        make_chunk({"function_call": {"name": "f", "arguments": "{"}}),
        make_chunk({"function_call": {"arguments": "}"}}),
        stop("function_call"),
    )
    assert made["content"] == [{"type": "tool_use", "id": "toolu_2", "name": "f", "input": {}}]


def test_arguments_after_the_end_of_a_call_are_a_recorded_loss() -> None:
    late = [make_piece(0, "{}", id="a", name="f"), make_chunk({"content": "x"}), make_piece(0, "{}")]
    assert losses(*late, stop("tool_calls")) == ["text after the whole arguments of a call"]


CITED = {"type": "char_location", "cited_text": "c", "document_index": 0, "start_char_index": 0, "end_char_index": 1}
PAGE = {
    "type": "url_citation",
    "url_citation": {"url": "http://a.test", "title": "A", "start_index": 0, "end_index": 2},
}


def place(start: int, end: int) -> JsonObject:
    return {"start_index": start, "end_index": end, "citation": CITED}


def test_text_that_comes_with_its_citation_is_a_block_of_its_own() -> None:
    outputs = [
        make_chunk({"content": "One "}),
        make_chunk({"content": "two", "citations": [place(4, 7)]}),
        make_chunk({"content": " three"}),
        stop(),
    ]
    assert message(*outputs)["content"] == [
        {"type": "text", "text": "One "},
        {"type": "text", "text": "two", "citations": [CITED]},
        {"type": "text", "text": " three"},
    ]
    assert losses(*outputs) == []


def test_a_citation_of_a_part_of_the_open_block_belongs_to_all_of_it() -> None:
    outputs = [
        make_chunk({"content": "One "}),
        make_chunk({"content": "two"}),
        make_chunk({"citations": [place(4, 7)]}),
    ]
    assert message(*outputs, stop())["content"] == [{"type": "text", "text": "One two", "citations": [CITED]}]
    assert losses(*outputs, stop()) == ["in a stream a citation belongs to the whole block of text that is open"]


def test_a_citation_of_the_open_block_ends_it() -> None:
    outputs = [
        make_chunk({"content": "One"}),
        make_chunk({"citations": [place(0, 3)]}),
        make_chunk({"content": " two"}),
    ]
    assert message(*outputs, stop())["content"] == [
        {"type": "text", "text": "One", "citations": [CITED]},
        {"type": "text", "text": " two"},
    ]
    assert losses(*outputs, stop()) == []


def test_a_citation_before_its_text_is_held() -> None:
    outputs = [make_chunk({"citations": [place(0, 2)]}), make_chunk({"content": "Hi"}), stop()]
    assert message(*outputs)["content"] == [{"type": "text", "text": "Hi", "citations": [CITED]}]
    assert losses(outputs[0], stop()) == ["the annotations belong to no text"]


def test_an_annotation_with_an_address_is_the_citation_of_a_page() -> None:
    made = message(make_chunk({"content": "Hi"}), make_chunk({"annotations": [PAGE]}), stop())
    assert made["content"][0]["citations"] == [
        {
            "type": "web_search_result_location",
            "url": "http://a.test",
            "title": "A",
            "cited_text": "",
            "encrypted_index": "",
        }
    ]


def test_citations_in_other_forms() -> None:
    page = {"url": "http://a.test", "title": 1, "cited_text": None}
    odd: list[JsonValue] = [{"type": ["char_location"]}, {"url": 1}]
    placed = [{"start_index": 0, "end_index": 2, "citation": one} for one in [page, *odd]]
    outputs = [make_chunk({"content": "Hi", "citations": [*placed, "http://b.test"]}), stop()]
    (block,) = message(*outputs)["content"]
    assert [(one["url"], one["title"], one["cited_text"]) for one in block["citations"]] == [
        ("http://a.test", None, "")
    ]
    assert losses(*outputs) == ["Messages has no place for this citation"]


def test_what_messages_has_no_place_for_is_a_recorded_loss() -> None:
    tokens = [{"token": "Hi", "logprob": -0.1, "bytes": None, "top_logprobs": []}]
    odd = make_chunk({"content": "Hi", "own_key": 1}, logprobs={"content": tokens, "refusal": None})
    odd.body["system_fingerprint"] = "fp"
    assert losses(odd, stop()) == ["the client's protocol has no place for it", *["Messages has no place for it"] * 2]


def test_a_fault_ends_the_stream_where_it_is() -> None:
    fault = Fault("upstream_invalid_response", "It broke.", code="upstream_truncated")
    translator = ChatToMessages({}, make_context())
    outputs = translate(translator, [make_chunk({"content": "Hi"}), fault, make_chunk({"content": "more"}), End()])
    assert outputs[-1] is fault and shorten(check_events(outputs)) == ["message_start", "start0", "delta0"]
    assert translator.dropped == 1


def make_run(delta: JsonObject, path: tuple[str | int, ...], *texts: bytes) -> DeltaRun:
    body = {**ENVELOPE, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    return DeltaRun(body, ("choices", 0, "delta", *path), [*texts])


RUNS = {
    "text": (make_chunk({"content": "H"}), make_run({"content": ""}, ("content",), b"i", b"", rb"\n!")),
    "reasoning": (
        make_chunk({"reasoning_content": "H"}),
        make_run({"reasoning_content": ""}, ("reasoning_content",), b"i", rb"\u00e9"),
    ),
    "arguments": (
        make_piece(0, "{", id="a", name="f"),
        make_run(
            {"tool_calls": [{"index": 0, "function": {"arguments": ""}}]},
            ("tool_calls", 0, "function", "arguments"),
            rb"\"a\":",
            b"1}",
        ),
    ),
}


@pytest.mark.parametrize("kind", RUNS)
def test_a_run_stays_a_run_and_says_the_same_as_its_chunks(kind: str) -> None:
    first, run = RUNS[kind]
    fast, slow = (ChatToMessages({}, make_context()) for _ in range(2))
    made = translate(fast, [first, run, run])
    found = [one for one in made if isinstance(one, DeltaRun)]
    assert [type(one) for one in made[-2:]] == [DeltaRun, DeltaRun] and found[0].body is found[1].body
    assert expand(made) == translate(slow, expand([first, run, run]))
    assert expand(translate(fast, [stop("tool_calls"), End()])) == translate(slow, [stop("tool_calls"), End()])


def test_a_run_of_arguments_that_end_a_call_releases_what_waits_for_it() -> None:
    first, run = RUNS["arguments"]
    other = make_piece(1, "{}", id="b", name="g")
    made = message(first, other, make_chunk({"content": "x"}), run, stop("tool_calls"))
    assert [block["type"] for block in made["content"]] == ["tool_use", "tool_use", "text"]


@pytest.mark.parametrize("name", sorted(path.stem for path in STREAMS.glob("*.sse")))
def test_every_recorded_stream(name: str) -> None:
    ctx = make_context()._replace(needs_first_choice=True)
    reader, translator = dialects[name.split("_")[0]].called["chat"].read_stream(ctx), ChatToMessages({}, ctx)
    read = [*reader.receive((STREAMS / f"{name}.sse").read_bytes()), *reader.close()]
    events = check_events(translate(translator, read))
    if isinstance(read[-1], End):
        texts = [choice["delta"].get("content") or "" for body in list_bodies(read) for choice in first_of(body)]
        content = accumulate_message(events)["content"]
        assert "".join(block["text"] for block in content if block["type"] == "text") == "".join(texts)


def first_of(body: JsonObject) -> list[JsonObject]:
    return [choice for choice in body["choices"] if choice["index"] == 0]
