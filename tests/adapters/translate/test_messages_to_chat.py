"""Messages streams as chat streams: each event, and what the chunks add up to."""

from __future__ import annotations

from typing import Any

import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk
from pydantic import TypeAdapter

from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Chunk, DeltaRun, End, Output, expand
from dragoman.adapters.translate.messages_to_chat import MessagesToChat
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue

from .message_oracles import list_bodies, make_context, make_event, translate

CHUNK: TypeAdapter[Any] = TypeAdapter(ChatCompletionChunk)
USAGE = {
    "input_tokens": 3,
    "cache_read_input_tokens": 20,
    "cache_creation_input_tokens": 7,
    "output_tokens": 1,
    "service_tier": "standard",
}
START = make_event(
    "message_start",
    message={
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": USAGE,
    },
)
STOP = make_event("message_stop")


def begin(index: int, kind: str, **keys: JsonValue) -> Chunk:
    return make_event("content_block_start", index=index, content_block={"type": kind, **keys})


def begin_call(index: int, **keys: JsonValue) -> Chunk:
    return begin(index, "tool_use", **{"id": "toolu_1", "name": "f", "input": {}, **keys})


def delta(index: int, kind: str, **keys: JsonValue) -> Chunk:
    return make_event("content_block_delta", index=index, delta={"type": kind, **keys})


def text(index: int, said: str) -> Chunk:
    return delta(index, "text_delta", text=said)


def end(index: int) -> Chunk:
    return make_event("content_block_stop", index=index)


def finish(reason: str = "end_turn", sequence: str | None = None, **keys: JsonValue) -> Chunk:
    ending = {"stop_reason": reason, "stop_sequence": sequence, **keys}
    return make_event("message_delta", delta=ending, usage={"output_tokens": 9})


def ending(*before: Output, reason: str = "end_turn") -> list[Output]:
    return [START, *before, finish(reason), STOP, End()]


def chunks(outputs: list[Output], include_usage: bool = True) -> list[JsonObject]:
    request = {"model": "m", "messages": [], "stream_options": {"include_usage": include_usage}}
    bodies = list_bodies(translate(MessagesToChat(make_context(request)), outputs))
    for body in bodies:
        CHUNK.validate_python(body)
        assert [one.message for one in load_validator("hub/chat.event").violations(body)] == []
    assert bodies[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    finishes = [choice["finish_reason"] for body in bodies for choice in body["choices"]]
    assert [word for word in finishes if word] == [finishes[-1]]
    assert all(("usage" in body) == include_usage for body in bodies)
    return bodies


def answer(*before: Output, reason: str = "end_turn") -> JsonObject:
    """The message that OpenAI's accumulator makes of the stream."""
    state = ChatCompletionStreamState()
    for body in chunks(ending(*before, reason=reason)):
        state.handle_chunk(CHUNK.validate_python(body))
    made: JsonObject = state.current_completion_snapshot.to_dict()
    assert len(made["choices"]) == 1
    return made["choices"][0] | {"usage": made["usage"]}


def losses(*outputs: Output) -> list[str]:
    ctx = make_context()
    translate(MessagesToChat(ctx), outputs)
    return [change.reason for change in ctx.receipt.losses]


def test_text_of_all_blocks_is_one_content() -> None:
    made = answer(
        begin(0, "text", text=""), text(0, "Hi"), end(0), begin(1, "text", text=" the"), text(1, "re"), end(1)
    )
    assert made["message"]["content"] == "Hi there"
    assert made["finish_reason"] == "stop"


def test_the_envelope_is_that_of_the_message() -> None:
    bodies = chunks(ending())
    assert {(body["id"], body["model"], body["created"], body["service_tier"]) for body in bodies} == {
        ("msg_1", "m", 1_700_000_000, "default")
    }


def test_cached_tokens_are_prompt_tokens_and_later_counts_replace_earlier_ones() -> None:
    assert answer()["usage"] == {
        "prompt_tokens": 30,
        "completion_tokens": 9,
        "total_tokens": 39,
        "prompt_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 7},
    }


def test_usage_that_nobody_asked_for_is_left_out() -> None:
    assert [body for body in chunks(ending(), include_usage=False) if not body["choices"]] == []


def test_thinking_is_reasoning_with_its_signature() -> None:
    made = answer(
        begin(0, "thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="Hm"),
        delta(0, "thinking_delta", thinking="m"),
        delta(0, "signature_delta", signature="sig"),
        end(0),
    )
    assert (made["message"]["reasoning_content"], made["message"]["reasoning_signature"]) == ("Hmm", "sig")


def test_several_blocks_of_thinking_are_listed() -> None:
    bodies = chunks(
        ending(
            begin(0, "thinking", thinking="", signature=""),
            delta(0, "thinking_delta", thinking="One"),
            delta(0, "signature_delta", signature="s1"),
            end(0),
            begin(1, "redacted_thinking", data="zzz"),
            end(1),
            begin(2, "thinking", thinking="Two", signature="s2"),
            end(2),
        )
    )
    deltas = [choice["delta"] for body in bodies for choice in body["choices"]]
    assert "".join(one.get("reasoning_content", "") for one in deltas) == "One\n\nTwo"
    assert [block for one in deltas for block in one.get("reasoning_details", ())] == [
        {"type": "reasoning.text", "text": "One", "signature": "s1", "index": 0},
        {"type": "reasoning.encrypted", "data": "zzz", "index": 1},
        {"type": "reasoning.text", "text": "Two", "signature": "s2", "index": 2},
    ]


def test_calls_are_counted_from_zero() -> None:
    made = answer(
        begin(0, "text", text="x"),
        end(0),
        begin_call(1, id="a"),
        delta(1, "input_json_delta", partial_json=""),
        delta(1, "input_json_delta", partial_json='{"a":'),
        delta(1, "input_json_delta", partial_json="1}"),
        end(1),
        begin_call(2, id="b", name="g"),
        end(2),
        reason="tool_use",
    )
    calls = [(call["id"], call["function"]) for call in made["message"]["tool_calls"]]
    assert [(name, said["name"], said["arguments"]) for name, said in calls] == [
        ("a", "f", '{"a":1}'),
        ("b", "g", "{}"),
    ]
    assert made["finish_reason"] == "tool_calls"


def test_an_input_that_the_block_begins_with() -> None:
    made = answer(begin_call(0, input={"a": [1]}), end(0), reason="tool_use")
    assert made["message"]["tool_calls"][0]["function"]["arguments"] == '{"a":[1]}'


def test_keys_that_the_provider_wants_back_are_keys_of_the_call() -> None:
    extra = {"google": {"thought_signature": "s"}}
    made = answer(begin_call(0, extra_content=extra, caller={"type": "direct"}), end(0))
    assert made["message"]["tool_calls"][0]["extra_content"] == extra


CITED = {"type": "web_search_result_location", "url": "https://a.test", "title": "A", "cited_text": "c"}


@pytest.mark.parametrize("is_first", [True, False])
def test_citations_belong_to_the_whole_text_of_their_block(is_first: bool) -> None:
    said, cited = [text(1, "è two"), text(1, "")], [delta(1, "citations_delta", citation=CITED)]
    pieces = cited + said if is_first else said + cited
    bodies = chunks(ending(begin(0, "text", text="One "), end(0), begin(1, "text", text=""), *pieces, end(1)))
    (found,) = (choice["delta"] for body in bodies for choice in body["choices"] if "citations" in choice["delta"])
    place = {"start_index": 4, "end_index": 9}
    annotation = {"type": "url_citation", "url_citation": {"url": "https://a.test", "title": "A", **place}, "index": 0}
    assert found == {"citations": [{**place, "citation": CITED, "index": 0}], "annotations": [annotation]}


def test_openais_helper_joins_the_citations_of_several_blocks() -> None:
    """It joins lists of deltas by the index of their objects."""
    cited = delta(1, "citations_delta", citation=CITED)
    blocks = [
        [begin(i, "text", text=""), text(i, "One"), delta(i, "citations_delta", citation=CITED), end(i)] for i in (0, 2)
    ]
    said = [*blocks[0], begin(1, "text", text=""), text(1, "Two"), cited, cited, end(1), *blocks[1]]
    message = answer(*said)["message"]
    assert [one["index"] for one in message["citations"]] == [0, 1, 2, 3]
    assert [one["url_citation"]["start_index"] for one in message["annotations"]] == [0, 3, 3, 6]
    assert {one["url_citation"]["url"] for one in message["annotations"]} == {CITED["url"]}


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "content_filter"),
    ],
)
def test_each_stop_reason(reason: str, word: str) -> None:
    last = chunks(ending(reason=reason))[-2]["choices"][0]
    assert (last["finish_reason"], last["native_finish_reason"]) == (word, reason)
    assert losses(*ending(reason=reason)) == []


def test_a_turn_that_the_provider_paused_is_a_recorded_loss() -> None:
    assert answer(reason="pause_turn")["finish_reason"] == "length"
    assert losses(*ending(reason="pause_turn")) == ["the provider paused its turn: chat cannot ask it to continue"]


def test_the_stop_sequence_and_the_sentence_of_a_refusal() -> None:
    last = chunks([START, finish("stop_sequence", "END"), STOP, End()])[-2]
    assert last["choices"][0]["stop_sequence"] == "END"
    details = {"type": "refusal", "category": "cyber", "explanation": "No."}
    bodies = chunks([START, finish("refusal", stop_details=details), STOP, End()])
    assert bodies[1]["choices"][0]["delta"] == {"refusal": "No."}


def test_blocks_and_deltas_that_chat_lacks_are_recorded_losses() -> None:
    hosted = begin(0, "server_tool_use", id="s", name="web_search", input={})
    odd = delta(1, "other_delta", other=1)
    outputs = [
        hosted,
        delta(0, "input_json_delta", partial_json="{}"),
        end(0),
        begin(1, "text", text="Hi"),
        odd,
        end(1),
    ]
    said = answer(*outputs)["message"]
    assert {key: value for key, value in said.items() if value} == {"content": "Hi", "role": "assistant"}
    assert losses(*ending(*outputs)) == [
        "chat has no place for blocks of the type server_tool_use",
        "chat has no place for other_delta",
    ]


def test_what_an_unknown_event_says_is_a_recorded_loss() -> None:
    odd = [make_event("something_new", index=index, note={"a": 1}) for index in (0, 3)]
    outputs = [START, *odd, begin(0, "text", text="Hi"), end(0), finish(), STOP, End()]
    translator = MessagesToChat(ctx := make_context())
    translate(translator, outputs)
    assert [change.reason for change in ctx.receipt.losses] == [
        "chat has no place for the note of the event something_new",
        "chat has no place for the index of the event something_new",
    ]


def test_pings_and_unknown_events_have_no_chunks() -> None:
    ping, odd = make_event("ping"), make_event("something_new", index=0)
    outputs = [ping, START, odd, begin(0, "text", text="Hi"), ping, end(0), finish(), STOP, End()]
    assert [body["choices"][0]["delta"] for body in chunks(outputs)[:2]] == [
        {"role": "assistant", "content": ""},
        {"content": "Hi"},
    ]


def test_a_stream_that_ends_without_its_last_event_is_finished_by_its_end() -> None:
    assert chunks([START, begin(0, "text", text="Hi"), finish(), End()])[-2]["choices"][0]["finish_reason"] == "stop"


def test_a_fault_ends_the_stream_where_it_is() -> None:
    fault = Fault("upstream_invalid_response", "It broke.", code="upstream_truncated")
    made = translate(MessagesToChat(make_context()), [START, begin(0, "text", text="Hi"), fault, finish(), STOP, End()])
    assert made[-1] is fault and len(made) == 3


def make_run(kind: str, key: str, *texts: bytes) -> DeltaRun:
    body = {"type": "content_block_delta", "index": 0, "delta": {"type": kind, key: ""}}
    return DeltaRun(body, ("delta", key), [*texts])


RUNS = {
    "text": ([begin(0, "text", text="")], make_run("text_delta", "text", b"H", b"", rb"\n!")),
    "thinking": (
        [begin(0, "thinking", thinking="H", signature="")],
        make_run("thinking_delta", "thinking", b"i", rb"\u00e9"),
    ),
    "input": ([begin_call(0)], make_run("input_json_delta", "partial_json", rb"{\"a\":", b"1}")),
}


@pytest.mark.parametrize("kind", RUNS)
def test_a_run_stays_a_run_and_says_the_same_as_its_events(kind: str) -> None:
    first, run = RUNS[kind]
    fast, slow = (MessagesToChat(make_context()) for _ in range(2))
    made = translate(fast, [START, *first, run, run])
    assert [type(one) for one in made[-2:]] == [DeltaRun, DeltaRun]
    assert isinstance(made[-1], DeltaRun) and isinstance(made[-2], DeltaRun) and made[-1].body is made[-2].body
    assert expand(made) == translate(slow, expand([START, *first, run, run]))
    rest = [delta(0, "signature_delta", signature="s"), end(0), begin(1, "text", text="more"), end(1), finish(), STOP]
    assert expand(translate(fast, rest)) == translate(slow, rest)
