"""Chat streams as Responses streams: each way in which a chat stream can continue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.openai.faults import error_body
from dragoman.adapters.responses.accumulator import Accumulator
from dragoman.adapters.responses.response_object import new_response
from dragoman.adapters.responses.writer import ResponsesStreamWriter
from dragoman.adapters.sse import Event, Framer
from dragoman.adapters.streams import Chunk, DeltaRun, End, Output, expand
from dragoman.adapters.translate.chat_to_responses import ChatToResponses
from dragoman.adapters.translate.tools import OriginalTool
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue

CHAT_STREAMS = Path(__file__).parent.parent / "chat" / "fixtures" / "streams"
ORACLE: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
BASE = new_response({"model": "m", "input": "hello"}, "resp_1", "m", 1_700_000_000)
ENVELOPE = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}


def make_context() -> Context:
    counter = iter(range(1, 1000))
    request = {"model": "m", "messages": [], "stream": True, "stream_options": {"include_usage": True}}
    return Context(
        "actual",
        Call("POST", "/v1/responses", {}),
        Receipt(),
        Target("upstream-model"),
        request,
        lambda: 1_700_000_009.0,
        lambda prefix: f"{prefix}_{next(counter)}",
    )


def chunk(delta: JsonObject, finish: str | None = None, **choice: JsonValue) -> Chunk:
    return Chunk({**ENVELOPE, "choices": [{"index": 0, "delta": delta, "finish_reason": finish, **choice}]})


def piece(index: int, arguments: str = "", **head: JsonValue) -> Chunk:
    name = {"name": head.pop("name")} if "name" in head else {}
    kind = {"type": "function"} if head else {}
    return chunk({"tool_calls": [{"index": index, **kind, **head, "function": {**name, "arguments": arguments}}]})


def translated(*outputs: Output, **options: JsonValue) -> list[Output]:
    translator = ChatToResponses(BASE, make_context(), **options)
    return [made for output in outputs for made in translator.feed(output)]


def events(outputs: list[Output]) -> list[JsonObject]:
    """The events as a client gets them: each valid, the last telling what they add up to."""
    writer, accumulator = ResponsesStreamWriter(error_body), Accumulator()
    *items, done = Framer().feed(b"".join(map(writer.write, outputs)))
    assert done == Event(b"[DONE]") and writer.dropped == 0
    found = []
    for number, item in enumerate(items):
        assert isinstance(item, Event)
        body = orjson.loads(item.data)
        assert (body["type"], body["sequence_number"]) == (item.event.decode(), number)
        ORACLE.validate_python(body)
        assert [one.message for one in load_validator("hub/responses.event").violations(body)] == []
        found.append(body)
    for body in found[:-1]:
        accumulator.add(body)
    final = found[-1]["response"]
    assert final == {**final, **BASE, **{key: final[key] for key in _DIFFER}, "output": accumulator.output()}
    return found


_DIFFER = ("status", "completed_at", "incomplete_details", "usage", "error")


def names(found: list[JsonObject]) -> list[str]:
    return [body["type"].removeprefix("response.") for body in found]


def output(*outputs: Output, **options: JsonValue) -> list[JsonObject]:
    found: list[JsonObject] = events(translated(*outputs, End(), **options))[-1]["response"]["output"]
    return found


def stop(finish: str = "stop") -> Chunk:
    return chunk({}, finish)


def outputs_of(name: str) -> list[Output]:
    """A provider's chat stream, from bytes to hub events."""
    ctx = make_context()
    reader = dialects[name.split("_")[0]].called["chat"].read_stream(ctx)
    translator = ChatToResponses(BASE, ctx)
    read = [*reader.receive((CHAT_STREAMS / f"{name}.sse").read_bytes()), *reader.close()]
    return [made for one in read for made in translator.feed(one)]


def test_text_of_mindie_becomes_events() -> None:
    found = events(outputs_of("mindie_text"))
    deltas = [body["delta"] for body in found if body["type"] == "response.output_text.delta"]
    assert names(found) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        *["output_text.delta"] * len(deltas),
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert deltas and all(deltas)
    assert found[-1]["response"]["output"][0]["content"][0]["text"] == "".join(deltas)


def test_an_empty_first_chunk_opens_nothing() -> None:
    outputs = translated(chunk({"role": "assistant", "content": ""}))
    assert names([one.body for one in outputs if isinstance(one, Chunk)]) == ["created", "in_progress"]
    assert output(chunk({"role": "assistant", "content": ""}), stop()) == []


def test_text_after_a_tool_call_is_a_new_message_behind_it() -> None:
    found = events(
        translated(
            piece(0, id="call_JwmTNF3O", name="get_weather"),
            piece(0, '{"city":'),
            piece(0, '"Paris"}'),
            chunk({"content": "Let me see."}),
            stop("tool_calls"),
            End(),
        )
    )
    call, message = found[-1]["response"]["output"]
    assert (call["type"], message["type"]) == ("function_call", "message")
    done = next(body for body in found if body["type"] == "response.function_call_arguments.done")
    deltas = [body["delta"] for body in found if body["type"] == "response.function_call_arguments.delta"]
    assert done["arguments"] == call["arguments"] == "".join(deltas) == '{"city":"Paris"}'
    assert (done["output_index"], call["call_id"]) == (0, "call_JwmTNF3O")
    assert found[-1]["response"]["status"] == "completed"


def test_of_calls_that_alternate_each_ends_before_the_next_begins() -> None:
    found = events(
        translated(
            piece(0, id="a", name="f"),
            piece(1, "[", id="b", name="g"),
            piece(2, "{}", id="c", name="h"),
            piece(0, "{"),
            piece(1, "1"),
            piece(0, "}"),
            piece(1, "]"),
            stop("tool_calls"),
            End(),
        )
    )
    assert steps(found) == [
        *[("added", 0), ("delta", 0), ("delta", 0), ("done", 0), ("done", 0)],
        *[("added", 1), ("delta", 1), ("delta", 1), ("delta", 1), ("done", 1), ("done", 1)],
        *[("added", 2), ("delta", 2), ("done", 2), ("done", 2)],
    ]
    calls = [(item["call_id"], item["arguments"]) for item in found[-1]["response"]["output"]]
    assert calls == [("a", "{}"), ("b", "[1]"), ("c", "{}")]


def test_a_whole_call_ends_when_another_begins_and_not_at_the_finish() -> None:
    translator = ChatToResponses(BASE, make_context())
    for one in (piece(0, "{}", id="a", name="f"), piece(0, "\n")):
        translator.feed(one)
    began = translator.feed(piece(1, "{", id="b", name="g"))
    assert names([one.body for one in began if isinstance(one, Chunk)]) == [
        "function_call_arguments.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
    ]


def test_text_in_the_middle_of_a_call_comes_after_it() -> None:
    found = events(
        translated(
            piece(0, "{", id="a", name="f"),
            chunk({"content": "wa"}),
            chunk({"content": "it", "reasoning_content": "Hm"}),
            piece(0, "}"),
            stop("tool_calls"),
            End(),
        )
    )
    assert [name for name in names(found) if name.startswith("output_item")] == [
        "output_item.added",
        "output_item.done",
    ] * 4
    call, first, reasoning, second = found[-1]["response"]["output"]
    assert (call["arguments"], first["content"][0]["text"], second["content"][0]["text"]) == ("{}", "wa", "it")
    assert reasoning["content"][0]["text"] == "Hm"


def test_what_waits_for_a_call_without_an_end_comes_with_the_finish() -> None:
    found = output(
        piece(0, "{", id="a", name="f"),
        piece(1, "{", id="b", name="g"),
        chunk({"content": "x"}),
        stop("length"),
    )
    assert [(item["type"], item["status"]) for item in found] == [
        ("function_call", "incomplete"),
        ("function_call", "incomplete"),
        ("message", "incomplete"),
    ]


def test_text_after_whole_arguments_is_a_loss_unless_it_is_space() -> None:
    ctx = make_context()
    translator = ChatToResponses(BASE, ctx)
    for one in (piece(0, "{}", id="a", name="f"), chunk({"content": "x"}), piece(0, " ")):
        translator.feed(one)
    assert ctx.receipt.losses == []
    translator.feed(piece(0, "}"))
    assert [change.reason for change in ctx.receipt.losses] == ["text after the whole arguments of a call"]


CLIENT_CALLS = st.lists(st.dictionaries(st.text(max_size=4), st.integers(-99, 99), max_size=3), min_size=1, max_size=4)


@given(CLIENT_CALLS, st.data())
def test_any_order_of_pieces_is_an_order_of_items_that_clients_can_follow(
    calls: list[dict[str, int]], data: st.DataObject
) -> None:
    """One item is open at a time, each event names it, and clients that add up the deltas get each call whole."""
    left = [list(orjson.dumps(call).decode()) for call in calls]
    made: list[Output] = [piece(index, id=f"call_{index}", name="f") for index in range(len(calls))]
    while any(left):
        index = data.draw(st.sampled_from([i for i, some in enumerate(left) if some]))
        taken = data.draw(st.integers(1, len(left[index])))
        made.append(piece(index, "".join(left[index][:taken])))
        if data.draw(st.booleans()):
            made.append(chunk({"content": "x"}))
        del left[index][:taken]
    found = events(translated(*made, stop("tool_calls"), End()))
    current, texts = None, {}
    for event in found:
        kind = event["type"].removeprefix("response.")
        if kind == "output_item.added":
            assert current is None and event["output_index"] == len(texts)
            current, texts[event["output_index"]] = event["item"]["id"], ""
        elif "item_id" in event:
            assert event["item_id"] == current
            texts[event["output_index"]] += event.get("delta", "")
        elif kind == "output_item.done":
            assert event["item"]["id"] == current
            current = None
    told = {
        item["call_id"]: text
        for item, text in zip(found[-1]["response"]["output"], texts.values(), strict=True)
        if "call_id" in item
    }
    assert {call_id: orjson.loads(text) for call_id, text in told.items()} == {
        f"call_{index}": call for index, call in enumerate(calls)
    }


def steps(found: list[JsonObject]) -> list[tuple[str, int]]:
    return [(body["type"].rpartition(".")[2], body["output_index"]) for body in found if "output_index" in body]


@pytest.mark.parametrize("pieces", [["ns__f"], ["", "ns__f"], ["ns_", "_f"]])
def test_a_name_may_come_in_pieces_as_clients_of_chat_add_them_up(pieces: list[str]) -> None:
    first, *later = pieces
    named = [piece(0, name=name) for name in later]
    [call] = output(
        piece(0, id="a", name=first), *named, piece(0, "{}"), stop(), names={"ns__f": OriginalTool("f", "ns")}
    )
    assert (call["name"], call["namespace"], call["arguments"]) == ("f", "ns", "{}")


def test_reasoning_is_closed_by_text_and_keeps_its_signature() -> None:
    found = events(
        translated(
            chunk({"reasoning_content": "Hm"}),
            chunk({"reasoning_content": "m."}),
            chunk({"reasoning_signature": "sig"}),
            chunk({"content": "Hi"}),
            stop(),
            End(),
        )
    )
    assert names(found)[2:9] == [
        "output_item.added",
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.delta",
        "reasoning_text.done",
        "content_part.done",
        "output_item.done",
    ]
    reasoning, _ = found[-1]["response"]["output"]
    assert reasoning == {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "Hmm."}],
        "encrypted_content": "sig",
        "status": "completed",
    }


def test_reasoning_that_is_a_summary_says_so() -> None:
    found = events(translated(chunk({"reasoning_content": "Hm"}), stop(), End(), summary=True))
    assert names(found)[2:8] == [
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
    ]
    [reasoning] = found[-1]["response"]["output"]
    assert reasoning["summary"] == [{"type": "summary_text", "text": "Hm"}] and "content" not in reasoning


def test_one_delta_may_hold_everything() -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    delta = {"reasoning_content": "Hm", "content": "Hi", "refusal": "No", "tool_calls": [call]}
    reasoning, message, made = output(chunk(delta, "tool_calls"))
    assert (reasoning["type"], made["arguments"]) == ("reasoning", "{}")
    assert [part["type"] for part in message["content"]] == ["output_text", "refusal"]


def test_a_refusal_is_a_part_of_its_own() -> None:
    [message] = output(chunk({"content": "Well"}), chunk({"refusal": "N"}), chunk({"refusal": "o"}), stop())
    assert message["content"][1] == {"type": "refusal", "refusal": "No"}


def test_reasoning_after_text_is_a_new_item() -> None:
    deltas = [{"content": "a"}, {"reasoning_content": "b"}, {"content": "c"}]
    items = output(*map(chunk, deltas), stop())
    assert [item["type"] for item in items] == ["message", "reasoning", "message"]


def test_of_calls_that_are_cut_short_the_last_is_incomplete() -> None:
    first, second = output(piece(0, "{}", id="a", name="f"), piece(1, "{", id="b", name="g"), stop("length"))
    assert (first["status"], second["status"]) == ("completed", "incomplete")


@pytest.mark.parametrize(("finish", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
def test_a_finish_that_is_none_makes_the_response_and_its_last_item_incomplete(finish: str, reason: str) -> None:
    found = events(translated(chunk({"content": "a"}), piece(0, "{", id="c", name="f"), stop(finish), End()))
    response = found[-1]["response"]
    assert (found[-1]["type"], response["status"]) == ("response.incomplete", "incomplete")
    assert response["incomplete_details"] == {"reason": reason}
    assert response["completed_at"] is None
    assert [item["status"] for item in response["output"]] == ["completed", "incomplete"]


@pytest.mark.parametrize("beside", [True, False])
def test_usage_comes_beside_the_finish_or_after_it(beside: bool) -> None:
    last = stop()
    if beside:
        last.body["usage"] = USAGE
    rest: list[Output] = [] if beside else [Chunk({**ENVELOPE, "choices": [], "usage": USAGE})]
    response = events(translated(chunk({"content": "a"}), last, *rest, End()))[-1]["response"]
    assert response["usage"]["input_tokens"] == 3 and response["usage"]["total_tokens"] == 7
    assert (response["completed_at"], response["created_at"]) == (1_700_000_009, 1_700_000_000)


def test_annotations_join_the_open_text_and_are_dropped_without_one() -> None:
    inner = {"url": "http://a", "title": "a", "start_index": 0, "end_index": 1}
    annotation = {"type": "url_citation", "url_citation": inner}
    [message] = output(chunk({"content": "a"}), chunk({"annotations": [annotation]}), stop())
    assert message["content"][0]["annotations"] == [{"type": "url_citation", **inner}]
    assert output(chunk({"annotations": [annotation]}), stop()) == []


def test_positions_count_from_the_part_of_the_annotation() -> None:
    inner = {"url": "http://a", "title": "a", "start_index": 2, "end_index": 4}
    annotated = chunk({"annotations": [{"type": "url_citation", "url_citation": inner}]})
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    pieces = [chunk({"content": "ab"}), chunk({"tool_calls": [call]}), chunk({"content": "cd"}), annotated]
    *_, last = output(*pieces, stop())
    found = [{**inner, "type": "url_citation", "start_index": 0, "end_index": 2}]
    assert (last["content"][0]["text"], last["content"][0]["annotations"]) == ("cd", found)


def test_log_probabilities_ride_on_the_deltas_with_their_bytes() -> None:
    tokens = [{"token": "é", "logprob": -0.5, "bytes": None, "top_logprobs": [{"token": "e", "logprob": -1.0}]}]
    logprobs = {"content": tokens, "refusal": None}
    found = events(
        translated(chunk({"content": "é"}, logprobs=logprobs), chunk({"content": ""}, logprobs=logprobs), stop(), End())
    )
    whole = {"token": "é", "logprob": -0.5, "bytes": [195, 169]}
    whole["top_logprobs"] = [{"token": "e", "logprob": -1.0, "bytes": [101]}]
    deltas = [body["logprobs"] for body in found if body["type"] == "response.output_text.delta"]
    assert deltas == [[whole], [whole]]
    assert found[-1]["response"]["output"][0]["content"][0]["logprobs"] == [whole, whole]


def test_names_that_stand_for_a_namespace_are_taken_apart() -> None:
    [call] = output(
        piece(0, "{}", id="c", name="files__read"), stop(), names={"files__read": OriginalTool("read", "files")}
    )
    assert (call["namespace"], call["name"]) == ("files", "read")


def test_a_free_form_call() -> None:
    first = {"index": 0, "id": "c", "type": "custom", "custom": {"name": "patch", "input": "*** Be"}}
    more = {"index": 0, "custom": {"input": "gin"}}
    found = events(translated(chunk({"tool_calls": [first]}), chunk({"tool_calls": [more]}), stop(), End()))
    [call] = found[-1]["response"]["output"]
    assert (call["type"], call["input"], call["call_id"]) == ("custom_tool_call", "*** Begin", "c")
    assert "custom_tool_call_input.done" in names(found)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [('{"input": "*** Begin\\n"}', "*** Begin\n"), ("*** Begin", "*** Begin"), ("{}", ""), ("[]", "[]")],
)
def test_a_function_that_stands_for_free_text_is_told_as_such(arguments: str, text: str) -> None:
    pieces = [piece(0, arguments[:4], id="c", name="patch"), piece(0, arguments[4:])]
    found = events(translated(*pieces, stop(), End(), names={"patch": OriginalTool("patch", takes_free_text=True)}))
    [call] = found[-1]["response"]["output"]
    assert (call["type"], call["input"], call["name"]) == ("custom_tool_call", text, "patch")
    told = [event["delta"] for event in found if event["type"] == "response.custom_tool_call_input.delta"]
    assert told == [text], "the text shows when the arguments are whole"


def test_a_name_told_late_and_a_call_in_the_old_form() -> None:
    [call] = output(piece(0, id="c"), piece(0, "{}", name="f"), stop())
    assert (call["name"], call["arguments"]) == ("f", "{}")
    [old] = output(
        chunk({"function_call": {"name": "f", "arguments": "{"}}), chunk({"function_call": {"arguments": "}"}}), stop()
    )
    assert (old["name"], old["arguments"], old["type"]) == ("f", "{}", "function_call")


def test_only_the_first_choice_is_translated() -> None:
    other = Chunk({**ENVELOPE, "choices": [{"index": 1, "delta": {"content": "b"}, "finish_reason": "stop"}]})
    [message] = output(chunk({"content": "a"}), other, stop())
    assert message["content"][0]["text"] == "a"


def test_a_fault_goes_on_unchanged_and_nothing_follows() -> None:
    fault = Fault("upstream_timeout", "late")
    translator = ChatToResponses(BASE, make_context())
    assert translator.feed(fault) == [fault]
    assert translator.feed(chunk({"content": "a"})) == translator.feed(End()) == []
    assert translator.dropped == 1


def test_a_fault_shows_the_items_so_far() -> None:
    found = events(translated(chunk({"content": "Hel"}), piece(0, "{", id="c", name="f"), Fault("internal", "m")))
    assert names(found)[-2:] == ["error", "failed"]
    message, call = found[-1]["response"]["output"]
    assert (message["status"], call["status"], call["arguments"]) == ("completed", "incomplete", "{")


@pytest.mark.parametrize("path", sorted(CHAT_STREAMS.glob("*.sse")), ids=lambda path: path.stem)
def test_every_known_stream_makes_a_valid_one(path: Path) -> None:
    made = outputs_of(path.stem)
    if isinstance(made[0], Fault):
        assert len(made) == 1
    else:
        assert events(made)[-1]["type"] in ("response.completed", "response.incomplete", "response.failed")


def test_of_several_choices_the_first_is_told_and_the_others_are_a_loss() -> None:
    ctx = make_context()
    translator = ChatToResponses(BASE, ctx)
    for index, text in ((1, "b"), (0, "a"), (1, "b")):
        translator.feed(chunk({"content": text}, index=index))
    translator.feed(chunk({}, "stop"))
    last, _ = translator.feed(End())[-2:]
    assert isinstance(last, Chunk)
    [item] = last.body["response"]["output"]
    assert item["content"][0]["text"] == "a"
    assert [change.public()["before"] for change in ctx.receipt.losses] == ["choices[1]"]


def test_audio_is_a_loss() -> None:
    ctx = make_context()
    translator = ChatToResponses(BASE, ctx)
    translator.feed(chunk({"audio": {"id": "x"}}))
    assert [change.public()["before"] for change in ctx.receipt.losses] == ["choices[0].delta.audio"]


def test_a_signature_ends_the_reasoning_that_it_belongs_to() -> None:
    found = output(
        chunk({"reasoning_content": "a", "reasoning_signature": "S1"}),
        chunk({"reasoning_content": "b"}),
        chunk({"reasoning_signature": "S2"}),
        chunk({"content": "x"}),
        stop(),
    )
    thoughts = [(item["content"][0]["text"], item["encrypted_content"]) for item in found[:-1]]
    assert thoughts == [("a", "S1"), ("b", "S2")]


PIECE = {"tool_calls": [{"index": 0, "function": {"arguments": ""}}]}
RUNS: dict[str, tuple[Chunk, JsonObject, tuple[str | int, ...], list[bytes]]] = {
    "text": (chunk({"content": "H"}), {"content": ""}, ("content",), [b"i", b""]),
    "reasoning": (chunk({"reasoning_content": "H"}), {"reasoning_content": ""}, ("reasoning_content",), [rb"\n"]),
    "arguments": (
        piece(0, "{", id="a", name="f"),
        PIECE,
        ("tool_calls", 0, "function", "arguments"),
        [rb"\"a\":", b"", b"1}"],
    ),
}


@pytest.mark.parametrize("kind", RUNS)
def test_a_run_stays_a_run_and_says_the_same_as_its_chunks(kind: str) -> None:
    first, delta, path, texts = RUNS[kind]
    run = DeltaRun(chunk(delta).body, ("choices", 0, "delta", *path), texts)
    fast, slow = (ChatToResponses(BASE, make_context()) for _ in range(2))
    made = [[made for one in (first, run, run) for made in fast.feed(one)]]
    assert [type(one) for one in made[0][-2:]] == [DeltaRun, DeltaRun]
    made.append([made for one in expand([first, run, run]) for made in slow.feed(one)])
    for outputs, translator in zip(made, (fast, slow), strict=True):
        outputs += [*translator.feed(stop("tool_calls")), *translator.feed(End())]
    assert expand(made[0]) == made[1]
