"""What holds for every stream that is translated between chat and Messages."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import orjson
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters import dialects
from dragoman.adapters.chat.assembly import assemble_chat
from dragoman.adapters.faults import Fault
from dragoman.adapters.responses.response_object import new_response
from dragoman.adapters.streams import Chunk, End, Output, expand
from dragoman.adapters.translate.chat_to_messages import ChatToMessages
from dragoman.adapters.translate.chat_to_responses import ChatToResponses
from dragoman.adapters.translate.message_replies import message_to_chat_reply, to_message
from dragoman.adapters.translate.messages_to_chat import MessagesToChat
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject

from .message_oracles import (
    ENVELOPE,
    accumulate_message,
    check_events,
    coalesce,
    list_bodies,
    make_context,
    make_event,
    summarize_message,
    translate,
)

RECORDED = sorted((Path(__file__).parent.parent / "chat" / "fixtures" / "streams").glob("*.sse"))
USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
WORDS = st.text(max_size=4)
SAID = st.text(min_size=1, max_size=4)
INPUTS = st.dictionaries(WORDS, st.none() | st.integers(-9, 9) | WORDS | st.lists(WORDS, max_size=2), max_size=2)


@st.composite
def splits(draw: st.DrawFn, text: str) -> list[str]:
    """The text in pieces, some of them empty."""
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    return [text[a:b] for a, b in pairwise([0, *cuts, len(text)])]


# Chat


@st.composite
def chat_deltas(draw: st.DrawFn) -> list[JsonObject]:
    """Deltas of text, reasoning, refusals and sealed reasoning, and of calls whose pieces interleave."""
    keys = ("content", "reasoning_content", "refusal", "reasoning_signature")
    deltas: list[JsonObject] = [{draw(st.sampled_from(keys)): said} for said in draw(st.lists(WORDS, max_size=8))]
    if draw(st.booleans()):
        deltas.append({"reasoning_details": [{"type": "reasoning.encrypted", "data": "zzz", "index": 0}]})
    order: list[int] = []
    pieces: list[list[JsonObject]] = []
    for index in range(draw(st.integers(0, 3))):
        head, *rest = draw(splits(orjson.dumps(draw(INPUTS)).decode()))
        first = {"index": index, "id": f"call_{index}", "type": "function"}
        said = [{"index": index, "function": {"arguments": text}} for text in rest]
        pieces.append([{**first, "function": {"name": f"f{index}", "arguments": head}}, *said])
        order += [index] * len(pieces[-1])
    for index in draw(st.permutations(order)):
        deltas.insert(draw(st.integers(len(deltas) // 2, len(deltas))), {"tool_calls": [{"index": index}]})
    for delta in deltas:
        if "tool_calls" in delta:
            delta["tool_calls"] = [pieces[delta["tool_calls"][0]["index"]].pop(0)]
    return deltas


@st.composite
def chat_streams(draw: st.DrawFn) -> bytes:
    """A provider's stream, or a recorded one. Another choice may be beside the first."""
    if not draw(st.integers(0, 3)):
        return draw(st.sampled_from([path for path in RECORDED if path.name.startswith("openai")])).read_bytes()
    deltas = draw(chat_deltas())
    called = any("tool_calls" in delta for delta in deltas)
    finish = draw(st.sampled_from(["tool_calls" if called else "stop", "length", "content_filter"]))
    choices: list[JsonObject] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    others = [{"index": 1, "delta": {"content": "other"}, "finish_reason": "stop"}] * draw(st.integers(0, 1))
    bodies = [{**ENVELOPE, "choices": [choice, *others]} for choice in choices]
    if draw(st.booleans()):
        bodies.append({**ENVELOPE, "choices": [], "usage": USAGE})
    return b"".join(b"data: " + orjson.dumps(body) + b"\n\n" for body in bodies) + b"data: [DONE]\n\n"


@st.composite
def reads(draw: st.DrawFn, raw: bytes) -> list[bytes]:
    cuts = sorted(draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    return [raw[a:b] for a, b in pairwise([0, *cuts, len(raw)])]


def read_chat(parts: list[bytes], dialect: str = "openai") -> list[Output]:
    reader = dialects[dialect].called["chat"].read_stream(make_context()._replace(needs_first_choice=True))
    return [*[one for part in parts for one in reader.receive(part)], *reader.close()]


def to_messages(outputs: list[Output]) -> list[Output]:
    return translate(ChatToMessages({}, make_context()), outputs)


def to_responses(outputs: list[Output]) -> list[Output]:
    return translate(ChatToResponses(new_response({"model": "m"}, "resp_1", "m", 1), make_context()), outputs)


def join_deltas(bodies: list[JsonObject], key: str) -> str:
    choices = [choice for body in bodies for choice in body["choices"] if choice["index"] == 0]
    return "".join(choice["delta"].get(key) or "" for choice in choices)


def list_calls(bodies: list[JsonObject]) -> dict[int, list[str]]:
    """The id, the name and the arguments of each call of choice 0."""
    calls: dict[int, list[str]] = {}
    choices = [choice for body in bodies for choice in body["choices"] if choice["index"] == 0]
    for piece in (piece for choice in choices for piece in choice["delta"].get("tool_calls") or ()):
        call = calls.setdefault(piece["index"], ["", "", ""])
        said = [piece.get("id"), piece["function"].get("name"), piece["function"].get("arguments")]
        call[:] = [before + (more or "") for before, more in zip(call, said, strict=True)]
    return calls


@given(data=st.data(), raw=chat_streams())
def test_wherever_a_chat_stream_is_cut_there_is_one_terminal(data: st.DataObject, raw: bytes) -> None:
    at = data.draw(st.integers(0, len(raw)))
    check_events(to_messages(read_chat(data.draw(reads(raw[:at])))))


@given(data=st.data(), raw=chat_streams())
def test_however_a_chat_stream_is_read_the_message_is_the_same(data: st.DataObject, raw: bytes) -> None:
    """Runs, and the chunks that they hold, become the same events."""
    whole, parts = read_chat([raw]), read_chat(data.draw(reads(raw)))
    *events, last = expand(to_messages(whole))
    for outputs in (parts, [*expand(whole)]):
        *others, end = expand(to_messages(outputs))
        assert others == events and (type(end), str(end)) == (type(last), str(last))


@given(raw=chat_streams())
def test_the_message_says_what_the_chat_stream_says(raw: bytes) -> None:
    outputs = read_chat([raw])
    events = check_events(to_messages(outputs))
    if isinstance(outputs[-1], Fault):
        return
    made, bodies = accumulate_message(events), list_bodies(outputs)
    texts = {kind: [block for block in made["content"] if block["type"] == kind] for kind in ("text", "thinking")}
    said = "".join(block["text"] for block in texts["text"])
    assert sorted(said) == sorted(join_deltas(bodies, "content") + join_deltas(bodies, "refusal"))
    thoughts = "".join(block["thinking"] for block in texts["thinking"])
    assert thoughts.replace("\n", "") == join_deltas(bodies, "reasoning_content").replace("\n", "")
    calls = [block for block in made["content"] if block["type"] == "tool_use"]
    wanted = list_calls(bodies).values()
    assert {(block["id"], block["name"]) for block in calls} == {(name, function) for name, function, _ in wanted}
    if made["stop_reason"] == "tool_use":
        assert {block["id"]: block["input"] for block in calls} == {
            name: orjson.loads(text) for name, _, text in wanted
        }


@given(raw=chat_streams())
def test_a_streamed_message_is_the_whole_one_except_for_the_order_of_its_blocks(raw: bytes) -> None:
    outputs = read_chat([raw])
    if isinstance(outputs[-1], Fault):
        return
    whole = to_message(assemble_chat(list_bodies(outputs)), {}, make_context())
    streamed = accumulate_message(check_events(to_messages(outputs)))
    keys = whole.keys() - {"content"}
    assert {key: streamed.get(key) for key in keys} == {key: whole[key] for key in keys}
    assert sort_blocks(streamed) == sort_blocks(whole)


def sort_blocks(message: JsonObject) -> JsonObject:
    """The calls, the text and the signed and unsigned reasoning of a message, whatever their order."""
    content = message["content"]
    texts = [char for block in content for char in block.get("text", "")]
    calls = {block["id"]: (block["name"], block["input"]) for block in content if block["type"] == "tool_use"}
    sealed = [block["data"] for block in content if block["type"] == "redacted_thinking"]
    thoughts = [] if sealed else [char for block in content for char in block.get("thinking", "") if char != "\n"]
    return {"text": sorted(texts), "calls": calls, "sealed": sealed, "thoughts": thoughts}


# Messages


@st.composite
def blocks(draw: st.DrawFn, kind: str, index: int) -> list[Chunk]:
    """The events of one block."""
    starts: dict[str, JsonObject] = {
        "text": {"text": ""},
        "thinking": {"thinking": "", "signature": ""},
        "redacted_thinking": {"data": "zzz"},
        "tool_use": {"id": f"toolu_{index}", "name": "f", "input": {}},
    }
    deltas: list[JsonObject] = []
    if kind == "text":
        deltas += [{"type": "text_delta", "text": said} for said in draw(splits(draw(SAID)))]
        deltas += [{"type": "citations_delta", "citation": CITED}] * draw(st.integers(0, 1))
    elif kind == "thinking":
        deltas += [{"type": "thinking_delta", "thinking": said} for said in draw(splits(draw(WORDS)))]
        deltas.append({"type": "signature_delta", "signature": draw(SAID)})
    elif kind == "tool_use":
        said = orjson.dumps(draw(INPUTS)).decode()
        deltas += [{"type": "input_json_delta", "partial_json": text} for text in draw(splits(said))]
    return [
        make_event("content_block_start", index=index, content_block={"type": kind, **starts[kind]}),
        *[make_event("content_block_delta", index=index, delta=delta) for delta in deltas],
        make_event("content_block_stop", index=index),
    ]


CITED = {"type": "char_location", "cited_text": "c", "document_index": 0, "start_char_index": 0, "end_char_index": 1}
REASONS = ["end_turn", "max_tokens", "tool_use", "pause_turn", "refusal", "model_context_window_exceeded"]
COUNTS = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"]


@st.composite
def message_streams(draw: st.DrawFn) -> list[Output]:
    """The events of a message, with pings."""
    usage = {**{key: draw(st.integers(0, 9)) for key in COUNTS}, "output_tokens": 0}
    envelope = {"id": "msg_x", "type": "message", "role": "assistant", "model": "m", "content": []}
    message = {**envelope, "stop_reason": None, "stop_sequence": None, "usage": usage}
    events = [make_event("message_start", message=message)]
    kinds = st.sampled_from(["text", "thinking", "redacted_thinking", "tool_use"])
    for index, kind in enumerate(draw(st.lists(kinds, max_size=5))):
        events += draw(blocks(kind, index))
    delta: JsonObject = {"stop_reason": draw(st.sampled_from(REASONS)), "stop_sequence": None}
    if draw(st.booleans()):
        delta = {"stop_reason": "stop_sequence", "stop_sequence": "END"}
    events.append(make_event("message_delta", delta=delta, usage={"output_tokens": draw(st.integers(0, 9))}))
    events.insert(draw(st.integers(1, len(events))), make_event("ping"))
    return [*events, make_event("message_stop"), End()]


def to_chat(outputs: list[Output]) -> list[Output]:
    return translate(MessagesToChat(make_context()), outputs)


def list_events(outputs: list[Output]) -> list[JsonObject]:
    return [body for body in list_bodies(outputs) if body["type"] != "ping"]


@given(events=message_streams())
def test_there_and_back_a_message_is_the_same_except_for_its_groups_of_text(events: list[Output]) -> None:
    before = accumulate_message(list_events(events))
    after = accumulate_message(check_events(to_messages(to_chat(events))))
    assert summarize_message(after) == summarize_message(before)
    assert {key: after[key] for key in ("id", "model", "usage")} == {
        key: before[key] for key in ("id", "model", "usage")
    }


@given(events=message_streams())
def test_a_streamed_chat_reply_is_the_whole_one(events: list[Output]) -> None:
    whole = message_to_chat_reply(accumulate_message(list_events(events)), make_context())
    streamed = assemble_chat(list_bodies(to_chat(events)))
    said = streamed["choices"][0]["message"]
    said["content"] = said["content"] or None
    for message in (said, whole["choices"][0]["message"]):
        if "reasoning_details" in message:
            message.pop("reasoning_signature", None)  # a stream has those of all blocks
    assert streamed == whole


@given(events=message_streams())
def test_runs_become_runs_that_say_the_same_as_their_events(events: list[Output]) -> None:
    """Through one translator, and through two."""
    runs, singles = to_chat(coalesce(events)), to_chat(events)
    assert expand(runs) == singles
    assert expand(to_messages(runs)) == to_messages(singles)
    assert expand(to_responses(runs)) == to_responses(singles)


@given(data=st.data(), events=message_streams())
def test_every_chunk_is_valid_and_a_cut_stream_has_one_terminal(data: st.DataObject, events: list[Output]) -> None:
    at = data.draw(st.integers(0, len(events) - 1))
    broken = Fault("upstream_invalid_response", "It broke.", code="upstream_truncated")
    *bodies, last = to_chat([*events[:at], broken, *events[at:]])
    assert last is broken
    hub = load_validator("hub/chat.event")
    for one in bodies:
        assert isinstance(one, Chunk)
        assert [violation.message for violation in hub.violations(one.body)] == []
