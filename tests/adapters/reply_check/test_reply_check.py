"""A reply is held to its request, whole and streamed, under every policy."""

from __future__ import annotations

from typing import Literal

import orjson
import pytest

from dragoman.adapters.call import JsonObject, Policy
from dragoman.adapters.chat.restream import restream
from dragoman.adapters.completions.restream import restream_text
from dragoman.adapters.pipeline import Attempt
from dragoman.adapters.reply_check import create_reply_check
from dragoman.adapters.responses.restream import restream_response
from tests.adapters.pipeline.conftest import CreatePlan, ReceiveRequest, plan, receive
from tests.tables import for_each

__all__ = ["plan", "receive"]

Replies = Literal["off", "report", "repair", "strict"]
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/number"}},
    "required": ["a"],
    "additionalProperties": False,
    "$defs": {"number": {"type": "integer"}},
}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("f", "g")]
JSON_SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": True}}
LOGPROBS: JsonObject = {
    "content": [{"token": "hi", "logprob": -0.1, "bytes": None, "top_logprobs": []}],
    "refusal": None,
}


def call(name: str, number: int = 0) -> JsonObject:
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": "{}"}}


def chat_reply(*messages: JsonObject, finish: str = "stop", used: int = 2, **choice: object) -> JsonObject:
    choices = [
        {
            "index": index,
            "message": {"role": "assistant", "content": None, "refusal": None, **message},
            "logprobs": None,
            "finish_reason": "tool_calls" if "tool_calls" in message else finish,
            **choice,
        }
        for index, message in enumerate(messages)
    ]
    usage = {"prompt_tokens": 1, "completion_tokens": used, "total_tokens": used + 1}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "up",
        "service_tier": "default",
        "system_fingerprint": "fp",
        "choices": choices,
        "usage": usage,
    }


TEXT = chat_reply({"content": "hi there"})
CALLS_F = chat_reply({"tool_calls": [call("f")]})

# what the client asks for, what comes, and the parameter that is not met
MISMATCHES: list[tuple[JsonObject, JsonObject, str]] = [
    ({"n": 2}, TEXT, "n"),
    ({"n": 1}, chat_reply({"content": "a"}, {"content": "b"}), "n"),
    ({"logprobs": True}, TEXT, "logprobs"),
    ({"tools": TOOLS, "tool_choice": "required"}, TEXT, "tool_choice"),
    ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "g"}}}, CALLS_F, "tool_choice"),
    ({"tools": TOOLS, "tool_choice": "none"}, CALLS_F, "tool_choice"),
    (
        {"tools": TOOLS, "parallel_tool_calls": False},
        chat_reply({"tool_calls": [call("f"), call("g", 1)]}),
        "parallel_tool_calls",
    ),
    ({"response_format": {"type": "json_object"}}, TEXT, "response_format"),
    ({"response_format": JSON_SCHEMA}, TEXT, "response_format"),
    ({"response_format": JSON_SCHEMA}, chat_reply({"content": '```json\n{"a":1}\n```'}), "response_format"),
    ({"stop": ["END", "the"]}, TEXT, "stop"),
    ({"stop": "the"}, TEXT, "stop"),
    ({"max_tokens": 5}, chat_reply({"content": "a"}, used=6), "max_tokens"),
    ({"max_completion_tokens": 5}, chat_reply({"content": "a"}, used=6), "max_completion_tokens"),
]
MATCHES: list[tuple[JsonObject, JsonObject]] = [
    ({"n": 2}, chat_reply({"content": "a"}, {"content": "b"})),
    ({"logprobs": True}, chat_reply({"content": "hi"}, logprobs=LOGPROBS)),
    ({"logprobs": True, "tools": TOOLS}, CALLS_F),
    ({"tools": TOOLS, "tool_choice": "required"}, CALLS_F),
    ({"tools": TOOLS, "tool_choice": "required"}, chat_reply({"content": "I was cut"}, finish="length")),
    ({"tools": TOOLS, "tool_choice": "required"}, chat_reply({"content": "no"}, finish="content_filter")),
    ({"tools": TOOLS, "tool_choice": "required"}, chat_reply({"refusal": "I will not"})),
    ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "f"}}}, CALLS_F),
    ({"tools": TOOLS, "tool_choice": "auto"}, TEXT),
    ({"response_format": {"type": "json_object"}}, chat_reply({"content": ' {"b": 2}\n'})),
    ({"response_format": JSON_SCHEMA}, chat_reply({"content": '{"a": 1}'})),
    ({"response_format": JSON_SCHEMA}, chat_reply({"content": '{"a"'}, finish="length")),
    ({"response_format": JSON_SCHEMA}, chat_reply({"refusal": "I will not"})),
    ({"response_format": JSON_SCHEMA, "tools": TOOLS}, CALLS_F),
    ({"response_format": {"type": "text"}}, TEXT),
    ({"stop": ["END"]}, TEXT),
    ({"stop": "hi", "n": 1}, chat_reply({"content": "", "reasoning_content": "hi"})),
    ({"max_tokens": 5, "n": 2}, chat_reply({"content": "a"}, {"content": "b"}, used=9)),
]


def to_sse(chunks: list[JsonObject]) -> bytes:
    return b"".join(b"data: " + orjson.dumps(chunk) + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def run(attempt: Attempt, reply: JsonObject, chunks: list[JsonObject] | None) -> bytes:
    """Feed the reply, as a stream if there are chunks; return the bytes for the client."""
    if chunks is None:
        attempt.start_reply(0, 200, {"content-type": "application/json"})
        attempt.feed(0, orjson.dumps(reply))
        return attempt.close(0).data
    attempt.start_reply(0, 200, {"content-type": "text/event-stream"})
    stream = to_sse(chunks)
    written = [attempt.feed(0, stream[at : at + 50]).data for at in range(0, len(stream), 50) if attempt.is_reading(0)]
    return b"".join([*written, attempt.close(0).data])


def losses(attempt: Attempt) -> list[str]:
    return [str(change.before[0]) for change in attempt.receipt.changes if change.weight == "loss"]


class Chat:
    """Attempts of a chat client at a chat provider."""

    def __init__(self, receive: ReceiveRequest, plan: CreatePlan) -> None:
        self.receive, self.plan = receive, plan

    def attempt(self, asked: JsonObject, replies: Replies, *, stream: bool) -> Attempt:
        body: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **asked}
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return self.receive("openai/chat", body).prepare(self.plan(policy=Policy(replies=replies)))


@pytest.fixture
def chat(receive: ReceiveRequest, plan: CreatePlan) -> Chat:
    return Chat(receive, plan)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("asked", "reply", "parameter"), MISMATCHES)
class TestMismatch:
    def test_repair_records_it(
        self, chat: Chat, asked: JsonObject, reply: JsonObject, parameter: str, stream: bool
    ) -> None:
        attempt = chat.attempt(asked, "repair", stream=stream)
        run(attempt, reply, restream(reply, with_usage=True) if stream else None)
        assert (attempt.outcome.state, losses(attempt)) == ("complete", [parameter])
        assert stream or f'path="{parameter}"' in attempt.headers["x-dragoman-changes"]

    def test_strict_makes_it_a_fault(
        self, chat: Chat, asked: JsonObject, reply: JsonObject, parameter: str, stream: bool
    ) -> None:
        attempt = chat.attempt(asked, "strict", stream=stream)
        written = run(attempt, reply, restream(reply, with_usage=True) if stream else None)
        fault = attempt.outcome.fault
        assert fault is not None and fault.code == "upstream_mismatch", fault
        assert b"[DONE]" not in written and (b"upstream_mismatch" in written) == stream

    def test_report_counts_it_and_off_ignores_it(
        self, chat: Chat, asked: JsonObject, reply: JsonObject, parameter: str, stream: bool
    ) -> None:
        for policy, violations in (("report", 1), ("off", 0)):
            attempt = chat.attempt(asked, policy, stream=stream)  # type: ignore[arg-type]
            run(attempt, reply, restream(reply, with_usage=True) if stream else None)
            assert (attempt.outcome.state, losses(attempt)) == ("complete", [])
            assert attempt.receipt.violations == violations, policy


@for_each("stream", [False, True])
@for_each(("asked", "reply"), MATCHES)
def test_a_reply_that_is_what_was_asked_for(chat: Chat, asked: JsonObject, reply: JsonObject, stream: bool) -> None:
    attempt = chat.attempt(asked, "repair", stream=stream)
    run(attempt, reply, restream(reply, with_usage=True) if stream else None)
    assert (attempt.outcome.state, losses(attempt)) == ("complete", [])


@pytest.mark.parametrize(("policy", "complete"), [("repair", True), ("strict", False)])
@pytest.mark.parametrize("content", ['{"a": "one"}', '{"a": 1, "b": 2}', "[1]"])
def test_only_strict_judges_by_the_schema(chat: Chat, policy: Replies, complete: bool, content: str) -> None:
    attempt = chat.attempt({"response_format": JSON_SCHEMA}, policy, stream=False)
    run(attempt, chat_reply({"content": content}), None)
    assert (attempt.outcome.state == "complete") is complete


def test_texts_that_come_in_many_pieces_at_once_are_judged(chat: Chat) -> None:
    pieces = ['{"', "a", '":', "1", "1", "}"]
    first = restream(chat_reply({"content": ""}), with_usage=True)
    texts = [
        {**first[0], "choices": [{"index": 0, "delta": {"content": one}, "finish_reason": None}]} for one in pieces
    ]
    for content, expected in ((texts, []), (texts[:-1], ["response_format"])):
        attempt = chat.attempt({"response_format": JSON_SCHEMA}, "repair", stream=True)
        attempt.start_reply(0, 200, {"content-type": "text/event-stream"})
        attempt.feed(0, to_sse([first[0], *content, *first[1:]]))
        assert (attempt.outcome.state, losses(attempt)) == ("complete", expected)


RESPONSE_FORMAT = {"text": {"format": {"type": "json_schema", "name": "x", "schema": SCHEMA, "strict": True}}}
RESPONSES_TOOLS = [{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False}]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("called", ["responses", "chat"])
@pytest.mark.parametrize(
    ("asked", "parameter"),
    [
        (RESPONSE_FORMAT, "text"),
        ({"tools": RESPONSES_TOOLS, "tool_choice": "required"}, "tool_choice"),
        ({"include": ["message.output_text.logprobs"]}, "include"),
        ({"max_output_tokens": 16}, "max_output_tokens"),
    ],
)
def test_responses_are_held_to_their_requests(
    receive: ReceiveRequest, plan: CreatePlan, called: str, asked: JsonObject, parameter: str, stream: bool
) -> None:
    """Through a bridge, too."""
    part = {"type": "output_text", "text": "hi there", "annotations": []}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    usage = {"input_tokens": 1, "output_tokens": 20, "total_tokens": 21}
    response: JsonObject = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "up",
        "status": "completed",
        "output": [message],
        "usage": usage,
    }
    reply = chat_reply({"content": "hi there"}, used=20) if called == "chat" else response
    for policy, state in (("repair", "complete"), ("strict", "failed")):
        request: JsonObject = {"model": "m", "input": "hi", "store": False, "stream": stream, **asked}
        target = plan("openai", called, policy=Policy(replies=policy))  # type: ignore[arg-type]
        attempt = receive("openai/responses", request).prepare(target)
        chunks = restream(reply, with_usage=True) if called == "chat" else restream_response(reply)
        run(attempt, reply, chunks if stream else None)
        assert attempt.outcome.state == state, attempt.outcome
        assert state == "failed" or parameter in losses(attempt)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"n": 2}, ["n"]),
        ({"n": 1, "prompt": ["a", "b"]}, ["n"]),
        ({"logprobs": 0}, ["logprobs"]),
        ({"stop": "there"}, ["stop"]),
        ({"stop": "there", "echo": True}, []),
        ({"max_tokens": 1}, ["max_tokens"]),
        ({"max_tokens": 2, "prompt": [1, 2, 3], "n": 1}, []),
    ],
)
def test_completions_are_held_to_their_requests(
    receive: ReceiveRequest, plan: CreatePlan, asked: JsonObject, expected: list[str], stream: bool
) -> None:
    choice = {"index": 0, "text": "hi there", "logprobs": None, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    reply = {"id": "c", "object": "text_completion", "created": 1, "model": "up", "choices": [choice], "usage": usage}
    body: JsonObject = {"model": "m", "prompt": "hi", "stream": stream, **asked}
    if stream:
        body["stream_options"] = {"include_usage": True}
    attempt = receive("openai/completions", body).prepare(plan("openai", "completions"))
    run(attempt, reply, restream_text(reply, with_usage=True) if stream else None)
    assert (attempt.outcome.state, losses(attempt)) == ("complete", expected)


def test_replies_of_any_shape_are_compared() -> None:
    """Under `report`, replies come as the provider sent them."""
    odd: list[object] = [None, 3, "x", [], [[]], [None], {}, {"a": {}}]
    asked: JsonObject = {
        **RESPONSE_FORMAT,
        "n": 2,
        "logprobs": True,
        "stop": ["a"],
    }
    for protocol in ("chat", "completions", "responses"):
        for value in odd:
            for shape in ("choices", "usage", "output", "response", "incomplete_details", "status"):
                check = create_reply_check(protocol, asked, "report")
                assert check is not None
                check.add_reply({shape: value})
                check.add_chunk({shape: value, "response": {shape: value}})
                check.add_reply({"choices": [{"index": value, "message": value, "delta": value, "text": value}]})
                check.add_reply({"choices": [{"message": {"content": value, "tool_calls": value}}]})
                check.add_reply({"output": [{"type": "message", "content": value}, {"type": "function_call"}]})
                list(check.find_mismatches())
