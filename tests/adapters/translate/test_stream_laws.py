"""What holds for every chat stream that is told as a Responses stream, and told back."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import assume, given
from hypothesis import strategies as st
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from dragoman.adapters.call import Call, Context, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.chat.reply import ChatStreamReader
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.faults import Fault
from dragoman.adapters.openai.faults import error_body
from dragoman.adapters.responses.accumulator import Accumulator
from dragoman.adapters.responses.response_object import new_response
from dragoman.adapters.responses.stream import ResponsesStreamReader
from dragoman.adapters.responses.writer import ResponsesStreamWriter
from dragoman.adapters.sse import Event, Framer
from dragoman.adapters.streams import Chunk, End, Output
from dragoman.adapters.translate.chat_to_responses import ChatToResponses
from dragoman.adapters.translate.replies import MORE_CHOICES
from dragoman.adapters.translate.responses_to_chat import ResponsesToChat
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject

ORACLE: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
ENVELOPE = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
BASE = new_response({"model": "m"}, "resp_1", "m", 1)
USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
REQUEST = {"model": "m", "messages": [], "stream": True, "stream_options": {"include_usage": True}}
TERMINALS = {"response.completed", "response.incomplete", "response.failed"}

TEXT = st.text(max_size=4)
STEP = st.one_of(
    st.tuples(st.sampled_from(["content", "reasoning_content", "refusal", "reasoning_signature"]), TEXT),
    st.tuples(st.integers(0, 2), TEXT),
)


def context() -> Context:
    counter = iter(range(100_000))
    call = Call("POST", "/", REQUEST)
    return Context("actual", call, Receipt(), Target("up"), REQUEST, lambda: 1.7e9, lambda p: f"{p}_{next(counter)}")


def chunk(delta: JsonObject, finish: str | None = None) -> JsonObject:
    return {**ENVELOPE, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


@st.composite
def streams(draw: st.DrawFn) -> list[JsonObject]:
    """Chunks of text, reasoning, refusal and calls that interleave, with a finish and perhaps the usage. Another choice
    may stand beside the first, before it or behind it."""
    chunks, calls = [chunk({"role": "assistant", "content": ""})], dict[int, int]()
    for what, text in draw(st.lists(STEP, max_size=12)):
        if isinstance(what, str):
            chunks.append(chunk({what: text}))
            continue
        new = what not in calls
        index = calls.setdefault(what, len(calls))
        function = {"name": f"f{what}", "arguments": text} if new else {"arguments": text}
        head = {"id": f"call_{what}", "type": "function"} if new else {}
        chunks.append(chunk({"tool_calls": [{"index": index, **head, "function": function}]}))
    words = ["tool_calls" if calls else "stop", "length", "content_filter"]
    chunks.append(chunk({}, draw(st.sampled_from(words))))
    place = draw(st.sampled_from([None, 0, 1]))
    for body in chunks if place is not None else ():
        finish = body["choices"][0]["finish_reason"] and "stop"
        body["choices"].insert(place, {"index": 1, "delta": {"content": "other"}, "finish_reason": finish})
    if draw(st.booleans()):
        chunks.append({**ENVELOPE, "choices": [], "usage": USAGE})
    return chunks


def as_responses(outputs: list[Output], ctx: Context | None = None) -> list[Output]:
    translator = ChatToResponses(BASE, ctx or context())
    return [made for output in outputs for made in translator.feed(output)]


def write_responses(chunks: list[JsonObject]) -> tuple[bytes, list[str]]:
    """The bytes of the Responses stream, and the reasons of its losses except of other choices."""
    writer, ctx = ResponsesStreamWriter(error_body), context()
    raw = b"".join(map(writer.write, as_responses([*(Chunk(body) for body in chunks), End()], ctx)))
    return raw, [change.reason for change in ctx.receipt.losses if change.reason != MORE_CHOICES]


def parsed(raw: bytes) -> list[JsonObject]:
    *items, done = Framer().feed(raw)
    assert done == Event(b"[DONE]")
    return [orjson.loads(item.data) for item in items if isinstance(item, Event)]


def first_of(body: JsonObject) -> list[JsonObject]:
    return [choice for choice in body["choices"] if choice["index"] == 0]


def heard(chunks: list[JsonObject]) -> JsonObject:
    """What a chat client makes of a stream. Thoughts are pairs of a text and the signature that ended it, without line
    ends: texts of several items are separated by an empty line."""
    said: JsonObject = {"content": "", "refusal": "", "thoughts": [["", ""]], "calls": {}, "finish": []}
    for body in chunks:
        said["usage"] = body["usage"]["total_tokens"] if body.get("usage") else None
        for choice in first_of(body):
            for key in ("content", "refusal"):
                said[key] += choice["delta"].get(key) or ""
            for place, key in enumerate(("reasoning_content", "reasoning_signature")):
                text = (choice["delta"].get(key) or "").replace("\n", "")
                if text and said["thoughts"][-1][1]:
                    said["thoughts"].append(["", ""])
                said["thoughts"][-1][place] += text
            for piece in choice["delta"].get("tool_calls", ()):
                call = said["calls"].setdefault(piece["index"], ["", "", ""])
                call[0] += piece.get("id", "")
                call[1] += piece["function"].get("name", "")
                call[2] += piece["function"].get("arguments", "")
            said["finish"] += [choice["finish_reason"]] if choice["finish_reason"] else []
    return said


@given(chunks=streams(), data=st.data())
def test_every_stream_ends_in_one_terminal_that_tells_what_the_events_add_up_to(
    chunks: list[JsonObject], data: st.DataObject
) -> None:
    cut = data.draw(st.none() | st.integers(0, len(chunks)))
    broken = Fault("upstream_invalid_response", "It broke.", code="upstream_truncated")
    read: list[Output] = [Chunk(body) for body in chunks[:cut]]
    writer = ResponsesStreamWriter(error_body)
    raw = b"".join(map(writer.write, as_responses([*read, End() if cut is None else broken])))
    assert writer.dropped == 0
    final = told(parsed(raw))
    assert (final is None) == (cut == 0)
    assert final is None or (final["status"] == "failed") == (cut is not None)


def told(events: list[JsonObject]) -> JsonObject | None:
    """The response in the one terminal event, which is what the other events add up to; None where an error came first.
    The events are valid, and numbered without a gap."""
    accumulator, hub = Accumulator(), load_validator("hub/responses.event")
    for number, body in enumerate(events):
        assert body["sequence_number"] == number
        ORACLE.validate_python(body)
        assert hub.accepts(body)
        if body["type"] not in TERMINALS:
            accumulator.add(body)
    ends = [body for body in events if body["type"] in TERMINALS]
    if not ends:
        assert [body["type"] for body in events] == ["error"]
        return None
    assert ends == [events[-1]]
    final: JsonObject = events[-1]["response"]
    assert final == accumulator.response(final["status"], final["error"], final["incomplete_details"]) | {
        "completed_at": final["completed_at"],
        "usage": final["usage"],
    }
    return final


@given(chunks=streams(), data=st.data())
def test_wherever_the_bytes_end_there_is_one_terminal(chunks: list[JsonObject], data: st.DataObject) -> None:
    raw = sse(chunks)
    final = told(parsed(relayed([raw[: data.draw(st.integers(0, len(raw)))]])))
    finish = next(one["finish_reason"] for body in chunks for one in first_of(body) if one["finish_reason"])
    whole = "incomplete" if finish in ("length", "content_filter") else "completed"
    assert final is None or final["status"] in ("failed", whole)


def test_arguments_that_go_on_after_they_were_whole_and_text_followed_are_a_recorded_loss() -> None:
    call = {"index": 0, "id": "call_0", "type": "function", "function": {"name": "f0", "arguments": "[]"}}
    late = {"index": 0, "function": {"arguments": "0"}}
    deltas: list[JsonObject] = [{"tool_calls": [call]}, {"content": "x"}, {"tool_calls": [late]}]
    raw, losses = write_responses([*map(chunk, deltas), chunk({}, "tool_calls")])
    assert losses == ["text after the whole arguments of a call"]
    assert heard_again(raw, context())["calls"] == {0: ["call_0", "f0", "[]"]}


@given(chunks=streams())
def test_there_and_back_again_a_client_hears_the_same(chunks: list[JsonObject]) -> None:
    raw, losses = write_responses(chunks)
    assume(not losses)
    ctx = context()
    after = heard_again(raw, ctx)
    assert ctx.receipt.losses == []
    assert joined(after) == joined(heard(chunks))


@given(chunks=streams(), first=st.integers(0, 4))
def test_what_only_the_last_event_tells_a_client_hears_too(chunks: list[JsonObject], first: int) -> None:
    """Of the items from `first` on, no event but the last tells."""
    raw, losses = write_responses(chunks)
    assume(not losses)
    events = [body for body in parsed(raw) if body.get("output_index", -1) < first]
    assert joined(heard_again(sse(events), context())) == joined(heard(chunks))


def joined(said: JsonObject) -> JsonObject:
    """Without the empty lines between the texts of two messages: a text behind reasoning is a message of its own; and
    without white space behind a call's arguments, which means nothing, as no arguments mean an empty object."""
    texts = {key: said[key].replace("\n\n", "") for key in ("content", "refusal")}
    calls = {
        index: [*names, arguments.rstrip(" \t\r\n") or "{}"] for index, (*names, arguments) in said["calls"].items()
    }
    return {**said, **texts, "calls": calls}


def heard_again(raw: bytes, ctx: Context) -> JsonObject:
    """What a chat client hears of a Responses stream."""
    reader, back = ResponsesStreamReader(ReplyRules("openai"), ctx), ResponsesToChat(ctx)
    made = [one for output in reader.receive(raw) for one in back.feed(output)]
    assert isinstance(made[-1], End)
    returned = [one.body for one in made if isinstance(one, Chunk)]
    assert all(load_validator("hub/chat.event").accepts(body) for body in returned)
    return heard(returned)


@given(chunks=streams(), data=st.data())
def test_any_split_of_the_bytes_gives_the_same_bytes(chunks: list[JsonObject], data: st.DataObject) -> None:
    raw = sse(chunks)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    reads = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert relayed(reads) == relayed([raw])


def sse(chunks: list[JsonObject]) -> bytes:
    return b"".join(b"data: " + orjson.dumps(body) + b"\n\n" for body in chunks) + b"data: [DONE]\n\n"


def relayed(reads: list[bytes]) -> bytes:
    reader, writer = ChatStreamReader(ReplyRules("openai"), context()), ResponsesStreamWriter(error_body)
    outputs = [one for read in reads for one in reader.receive(read)] + reader.close()
    return b"".join(map(writer.write, as_responses(outputs)))
