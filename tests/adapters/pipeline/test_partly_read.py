"""An item of a stream that causes an unexpected error: what came before it reaches the client, in however many reads it
came, and the error is reported as a defect."""

from __future__ import annotations

import json

import pytest

from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Chunk, Output
from dragoman.adapters.translate.responses_to_chat import ResponsesToChat
from dragoman.contract.json_types import JsonObject

from .conftest import CreatePlan, ReceiveRequest

SSE = {"content-type": "text/event-stream"}
ASKED: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
BAD = b'data: {"error": {"message": "boom"}}\n\n'


def text(word: str) -> bytes:
    choices = [{"index": 0, "delta": {"content": word}, "finish_reason": None}]
    return b"data: " + json.dumps({"choices": choices}).encode() + b"\n\n"


def event(kind: str, **more: str) -> bytes:
    return b"data: " + json.dumps({"type": kind, **more}).encode() + b"\n\n"


def feed(receive: ReceiveRequest, plan: CreatePlan, protocol: str, reads: list[bytes]) -> tuple[bytes, list[str]]:
    defects: list[str] = []
    report = lambda provider, error: defects.append(type(error).__name__)  # noqa: E731
    attempt = receive("openai/chat", ASKED, report=report).prepare(plan("openai", protocol))
    outputs = [attempt.start_reply(0, 200, SSE), *(attempt.feed(0, read) for read in reads), attempt.close(0)]
    assert attempt.outcome.fault is not None
    return b"".join(output.data for output in outputs), defects


def test_by_a_reader(receive: ReceiveRequest, plan: CreatePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Fault:
        raise KeyError("a defect")

    monkeypatch.setattr("dragoman.adapters.common.stream_reader.read_error_object", fail)
    whole, defects = feed(receive, plan, "chat", [text("one") + text("two") + BAD])
    assert defects == ["KeyError"]
    assert whole.count(b'"content":"one"') == whole.count(b'"content":"two"') == 1
    assert b"upstream_invalid_response" in whole
    last = feed(receive, plan, "chat", [text("one"), text("two"), BAD])[0]
    assert [line for line in last.splitlines() if b"two" in line] != []
    assert last.count(b"data: ") == whole.count(b"data: ")


def test_by_a_bridge(receive: ReceiveRequest, plan: CreatePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = ResponsesToChat.feed

    def feed_or_fail(self: ResponsesToChat, output: Output) -> list[Output]:
        if isinstance(output, Chunk) and output.body.get("delta") == "bad":
            raise KeyError("a defect")
        return usual(self, output)

    monkeypatch.setattr(ResponsesToChat, "feed", feed_or_fail)
    pieces = [event("response.output_text.delta", delta=word, item_id="a") for word in ("one", "bad", "two")]
    whole, defects = feed(receive, plan, "responses", [b"".join(pieces)])
    assert defects == ["KeyError"]
    assert whole.count(b'"content":"one"') == 1
    assert b"upstream_invalid_response" in whole
    assert b"two" not in whole


def test_by_a_reader_of_a_stream_that_becomes_one_reply(
    receive: ReceiveRequest, plan: CreatePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Fault:
        raise ValueError("a defect")

    monkeypatch.setattr("dragoman.adapters.common.stream_reader.read_error_object", fail)
    defects: list[str] = []
    report = lambda provider, error: defects.append(type(error).__name__)  # noqa: E731
    pipeline = receive("openai/responses", {"model": "m", "input": "hi"}, report=report)
    attempt = pipeline.prepare(plan("openai", "chat"))
    outputs = [attempt.start_reply(0, 200, SSE), attempt.feed(0, text("one") + BAD)]
    assert (attempt.outcome.state, defects) == ("failed", ["ValueError"])
    assert b"".join(output.data for output in outputs) == b""
