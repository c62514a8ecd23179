"""Bytes of a Messages provider, read as they may come and translated for chat clients and Responses clients.

Seeds are streams of Anthropic's API as its reference and recordings show them.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from dragoman.adapters.faults import Fault
from dragoman.adapters.openai.faults import error_body
from dragoman.adapters.responses.response_object import new_response
from dragoman.adapters.responses.writer import ResponsesStreamWriter
from dragoman.adapters.streams import Chunk, End, Output, expand
from dragoman.adapters.translate.chat_to_responses import ChatToResponses
from dragoman.adapters.translate.message_replies import message_to_chat_reply
from dragoman.adapters.translate.messages_to_chat import MessagesToChat
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject
from tests.adapters.messages.streaming import KEYS, VALUES, encode, read

from .message_oracles import accumulate_message, list_bodies, make_context, translate

RECORDED = sorted((Path(__file__).parent.parent / "messages" / "fixtures" / "streams").glob("*.sse"))
CHUNK: TypeAdapter[Any] = TypeAdapter(ChatCompletionChunk)
RESPONSES: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


@st.composite
def reads(draw: st.DrawFn, raw: bytes) -> list[bytes]:
    cuts = sorted(draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    return [raw[a:b] for a, b in pairwise([0, *cuts, len(raw)])]


def read_messages(*parts: bytes) -> list[Output]:
    return read(parts, make_context())


def to_chat(outputs: list[Output]) -> list[Output]:
    return translate(MessagesToChat(make_context()), outputs)


def check_chunks(outputs: list[Output]) -> list[JsonObject]:
    """The chunks of a chat stream, which has exactly one terminal and one finish reason if it is complete."""
    *chunks, last = expand(outputs)
    assert isinstance(last, End | Fault)
    bodies = [one.body for one in chunks if isinstance(one, Chunk)]
    assert len(bodies) == len(chunks)
    hub = load_validator("hub/chat.event")
    for body in bodies:
        CHUNK.validate_python(body)
        assert [one.message for one in hub.violations(body)] == []
    finishes = [choice["finish_reason"] for body in bodies for choice in body["choices"] if choice["finish_reason"]]
    assert len(finishes) == 1 or (isinstance(last, Fault) and not finishes)
    return bodies


@given(data=st.data(), path=st.sampled_from(RECORDED))
def test_wherever_a_recorded_stream_is_cut_there_is_one_terminal(data: st.DataObject, path: Path) -> None:
    raw = path.read_bytes()
    at = data.draw(st.integers(0, len(raw)))
    chat = to_chat(read_messages(*data.draw(reads(raw[:at]))))
    bodies = check_chunks(chat)
    assert bodies or isinstance(chat[-1], Fault)


@given(data=st.data(), path=st.sampled_from(RECORDED))
def test_however_a_recorded_stream_is_read_the_chunks_are_the_same(data: st.DataObject, path: Path) -> None:
    *chunks, last = expand(to_chat(read_messages(*data.draw(reads(path.read_bytes())))))
    *others, end = expand(to_chat(expand(read_messages(path.read_bytes()))))
    assert chunks == others and (type(last), str(last)) == (type(end), str(end))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_what_both_accumulators_make_of_a_recorded_stream_is_the_same_answer(path: Path) -> None:
    outputs = read_messages(path.read_bytes())
    if isinstance(outputs[-1], Fault):
        check_chunks(to_chat(outputs))
        return
    state = ChatCompletionStreamState()
    for body in check_chunks(to_chat(outputs)):
        state.handle_chunk(CHUNK.validate_python(body))
    streamed = state.current_completion_snapshot.to_dict()["choices"][0]  # type: ignore[index]
    whole = message_to_chat_reply(accumulate_message(list_bodies(outputs)), make_context())["choices"][0]
    said, wanted = streamed["message"], whole["message"]
    assert (said["content"] or None, streamed["finish_reason"]) == (wanted["content"], whole["finish_reason"])
    assert said.get("reasoning_content") == wanted.get("reasoning_content")
    calls = [(call["id"], call["function"]["name"]) for call in said.get("tool_calls") or ()]
    assert calls == [(call["id"], call["function"]["name"]) for call in wanted.get("tool_calls") or ()]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_event_of_a_recorded_stream_for_a_responses_client_is_valid(path: Path) -> None:
    base = new_response({"model": "m"}, "resp_1", "m", 1)
    writer = ResponsesStreamWriter(error_body)
    outputs = translate(ChatToResponses(base, make_context()), to_chat(read_messages(path.read_bytes())))
    for one in expand(outputs):
        if isinstance(one, Chunk):
            RESPONSES.validate_python({**one.body, "sequence_number": 0})
    raw = b"".join(map(writer.write, outputs))
    assert raw.endswith(b"data: [DONE]\n\n") and writer.dropped == 0


ODD = st.fixed_dictionaries(
    {"type": st.sampled_from(["content_block_start", "content_block_delta", "message_delta", "ping", "new"])},
    optional={key: VALUES for key in KEYS if key != "type"},
)


@given(events=st.lists(ODD, max_size=6), start=st.booleans())
def test_events_with_any_values_never_raise(events: list[JsonObject], start: bool) -> None:
    first = {"type": "message_start", "message": {"id": "msg_1", "usage": {"input_tokens": 1, "output_tokens": 1}}}
    last = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}
    check_chunks(to_chat(read_messages(encode(*([first] if start else []), *events, last, {"type": "message_stop"}))))
