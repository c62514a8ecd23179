"""Endings that contradict themselves: each choice ends once, after its last piece, and no text is lost."""

from __future__ import annotations

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Context, Reply
from dragoman.adapters.faults import Fault
from dragoman.adapters.sse import encode
from dragoman.adapters.streams import Chunk, End, Output, expand
from dragoman.adapters.translate.bridge import BRIDGES
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.adapters.conftest import MakeContext
from tests.dialects import called
from tests.tables import for_each

RESPONSES = {"model": "m", "input": "x", "stream": True}
DONE = b"data: [DONE]\n\n"


def piece(text: str | None, finish: str | None = None, index: int = 0, **delta: JsonValue) -> bytes:
    said = delta if text is None else {"content": text, **delta}
    choice = {"index": index, "delta": said, "logprobs": None, "finish_reason": finish}
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return encode(orjson.dumps({**head, "choices": [choice]}))


def call(arguments: str, head: bool = False) -> JsonObject:
    function = {"name": "f", "arguments": arguments} if head else {"arguments": arguments}
    return {"tool_calls": [{"index": 0, **({"id": "a", "type": "function"} if head else {}), "function": function}]}


def read(data: bytes, ctx: Context, dialect: str = "openai") -> list[Output]:
    reader = dialects[dialect].called["chat"].read_stream(ctx)
    return [*expand(reader.receive(data)), *reader.close()]


def say(outputs: list[Output], index: int = 0) -> tuple[str, list[str]]:
    """The text of a choice, and its finish reasons in order. Asserts that no text comes after a finish reason."""
    text, endings = "", []
    for output in outputs:
        for choice in output.body["choices"] if isinstance(output, Chunk) else ():
            if choice["index"] == index:
                said = choice["delta"].get("content") or ""
                assert not (said and endings)
                text += said
                endings += [choice["finish_reason"]] if choice["finish_reason"] else []
    return text, endings


def respond(outputs: list[Output], ctx: Context) -> JsonObject:
    """The response that a Responses client gets of a chat stream."""
    translator = BRIDGES["responses"][0].stream(RESPONSES, ctx)
    *_, last, end = [made for output in outputs for made in translator.feed(output)]
    assert isinstance(last, Chunk) and isinstance(end, End)
    body: JsonObject = last.body["response"]
    return body


STREAMS = [
    ("stop on every chunk", piece("a", "stop") + piece("b", "stop") + piece("c", "stop"), "abc", "stop"),
    ("length on every chunk", piece("a", "length") + piece("b", "length"), "ab", "length"),
    ("text after the finish reason", piece("a") + piece(None, "stop") + piece("b") + piece("c"), "abc", "stop"),
    ("the same end twice", piece("a") + piece(None, "stop") + piece(None, "stop"), "a", "stop"),
    ("an end with an empty text twice", piece("a") + piece("", "length") + piece("", "length"), "a", "length"),
    ("length, then stop", piece("a") + piece(None, "length") + piece(None, "stop"), "a", "length"),
    ("stop, then length", piece("a") + piece(None, "stop") + piece(None, "length"), "a", "length"),
    ("stop, then a filter", piece("a", "stop") + piece("b") + piece(None, "SAFETY"), "ab", "content_filter"),
    (
        "stop on every chunk, then length",
        piece("a", "stop") + piece("b", "stop") + piece("c", "length"),
        "abc",
        "length",
    ),
]


@for_each("dialect", called("chat"))
@for_each(("data", "text", "finish"), [case[1:] for case in STREAMS])
def test_a_choice_ends_once_after_its_text(
    data: bytes, text: str, finish: str, dialect: str, context: MakeContext
) -> None:
    for end in (DONE, b""):
        ctx = context()
        outputs = read(data + end, ctx, dialect)
        assert isinstance(outputs[-1], End)
        assert say(outputs) == (text, [finish])
        assert ctx.receipt.changes
    body = respond(outputs, context())
    assert body["status"] == ("completed" if finish == "stop" else "incomplete")
    assert "".join(part["text"] for item in body["output"] for part in item["content"]) == text


def test_finish_reasons_that_differ_are_a_loss_that_names_them(context: MakeContext) -> None:
    ctx = context()
    read(piece("a") + piece(None, "length") + piece(None, "stop") + DONE, ctx)
    assert ["'length' and with 'stop'" in change.reason for change in ctx.receipt.losses] == [True]


def test_calls_with_a_finish_reason_on_every_chunk_come_whole(context: MakeContext) -> None:
    for word in ("stop", "tool_calls"):
        data = (
            piece(None, word, **call("", head=True))
            + piece(None, word, **call('{"x"'))
            + piece(None, word, **call(":1}"))
        )
        outputs = read(data + DONE, context(request={"tools": [{"type": "function", "function": {"name": "f"}}]}))
        assert say(outputs) == ("", ["tool_calls"])
        pieces = [c["delta"].get("tool_calls") for o in outputs if isinstance(o, Chunk) for c in o.body["choices"]]
        assert "".join(p["function"]["arguments"] for some in pieces if some for p in some) == '{"x":1}'


def test_choices_end_apart_and_in_the_order_of_the_provider(context: MakeContext) -> None:
    data = piece("a") + piece("b", index=1) + piece(None, "stop") + piece("c", index=1) + piece(None, "length", index=1)
    outputs = read(data + DONE, context(request={"n": 2}))
    assert (say(outputs), say(outputs, 1)) == (("a", ["stop"]), ("bc", ["length"]))
    order = [choice["index"] for one in outputs if isinstance(one, Chunk) for choice in one.body["choices"]]
    assert order == [0, 1, 0, 1, 1]


def test_two_choices_with_a_finish_reason_on_every_chunk_end_once_each(context: MakeContext) -> None:
    data = b"".join(piece(text, "stop", index) for text in "abc" for index in (0, 1))
    outputs = read(data + DONE, context(request={"n": 2}))
    for index in (0, 1):
        choices = [c for o in outputs if isinstance(o, Chunk) for c in o.body["choices"] if c["index"] == index]
        assert "".join(choice["delta"].get("content") or "" for choice in choices) == "abc"
        assert [choice["finish_reason"] for choice in choices if choice["finish_reason"]] == ["stop"]


def test_a_fault_after_a_finish_reason_comes_alone(context: MakeContext) -> None:
    outputs = read(piece("a") + piece(None, "stop") + encode(b'{"error":{"message":"it broke"}}'), context())
    assert isinstance(outputs[-1], Fault)
    assert say(outputs) == ("a", [])


def test_a_coherent_stream_keeps_its_bytes(context: MakeContext) -> None:
    data = [piece("a", role="assistant"), piece("b"), piece(None, "stop")]
    ctx = context()
    *chunks, end = read(b"".join(data) + DONE, ctx)
    assert isinstance(end, End) and ctx.receipt.changes == []
    assert [encode(one.raw) for one in chunks if isinstance(one, Chunk) and one.raw is not None] == data


# Completions

TEXT_STREAMS = [
    ([("a", "stop"), ("b", "stop")], "ab", "stop"),
    ([("a", None), ("", "length"), ("b", "stop")], "ab", "length"),
    ([("a", None), ("", "stop"), ("", "stop")], "a", "stop"),
]


@pytest.mark.parametrize(("said", "text", "finish"), TEXT_STREAMS)
def test_a_text_ends_once(said: list[tuple[str, str | None]], text: str, finish: str, context: MakeContext) -> None:
    head = {"id": "c", "object": "text_completion", "created": 1, "model": "m"}
    choices = [{"index": 0, "text": one, "logprobs": None, "finish_reason": word} for one, word in said]
    data = b"".join(encode(orjson.dumps({**head, "choices": [choice]})) for choice in choices) + DONE
    reader = dialects["openai"].called["completions"].read_stream(context(request={"prompt": "x"}))
    outputs = expand(reader.receive(data))
    made = [choice for one in outputs if isinstance(one, Chunk) for choice in one.body["choices"]]
    assert "".join(choice["text"] for choice in made) == text
    assert [choice["finish_reason"] for choice in made if choice["finish_reason"]] == [finish]
    assert made[-1]["finish_reason"] == finish


# Calls that a finish reason names, and that did not come


def whole(finish: str, **message: JsonValue) -> JsonObject:
    choice = {"index": 0, "message": {"role": "assistant", "content": "hi", **message}, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


@for_each("dialect", called("chat"))
@for_each("calls", [{"tool_calls": []}, {"tool_calls": None}, {}])
@for_each("finish", ["tool_calls", "tool_use", "function_call"])
def test_a_finish_reason_of_calls_without_calls_reads_stop(
    finish: str, calls: JsonObject, dialect: str, context: MakeContext
) -> None:
    ctx, streamed = context(), context()
    [choice] = dialects[dialect].called["chat"].read_reply(Reply(200, whole(finish, **calls)), ctx)["choices"]
    assert (choice["finish_reason"], choice["native_finish_reason"]) == ("stop", finish)
    outputs = read(piece("hi", **calls) + piece(None, finish, **calls) + DONE, streamed, dialect)
    assert say(outputs) == ("hi", ["stop"])
    for one in (ctx, streamed):
        assert [change.reason.endswith("reads 'stop'") for change in one.receipt.losses] == [True]
    assert respond(outputs, context())["status"] == "completed"


def test_the_deprecated_function_call_keeps_its_finish_reason(context: MakeContext) -> None:
    function = {"name": "f", "arguments": "{}"}
    for finish in ("function_call", "tool_calls"):
        body = whole(finish, function_call=function)
        [choice] = dialects["openai"].called["chat"].read_reply(Reply(200, body), context())["choices"]
        assert choice["finish_reason"] == "function_call"
        data = piece(None, None, function_call=function) + piece(None, finish) + DONE
        assert say(read(data, context())) == ("", ["function_call"])
