"""Checks of streams."""

from __future__ import annotations

import json

import pytest

from dragoman.contract.checks import REPLY_CHECKS
from dragoman.contract.exchange import Chunk, Response
from dragoman.contract.json_types import JsonObject
from dragoman.contract.outcome import Outcome

CHUNK = b'data: {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": null}]}\n\n'
END = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"


def make_outcome(*chunks: tuple[float, bytes], broken: str | None = None) -> Outcome:
    """The outcome of a stream; each chunk has its time in seconds."""
    headers = (("content-type", "text/event-stream"),)
    response = Response(200, headers, tuple(Chunk(at, data) for at, data in chunks), broken)
    return Outcome("openai", "documented", "chat", "m", {}, response)


@pytest.mark.parametrize(
    ("times", "problems"),
    [((0.0, 20.0, 40.0), []), ((0.0, 20.0, 55.0), ["no bytes for 35.0 s"]), ((100.0, 101.0, 102.0), [])],
)
def test_silent_at_most_limits_the_pauses_after_the_first_chunk(
    times: tuple[float, float, float], problems: list[str]
) -> None:
    first, comment, last = times
    outcome = make_outcome((first, CHUNK), (comment, b": keep-alive\n\n"), (last, END))
    assert REPLY_CHECKS["silent_at_most"].find_problems(outcome, 30) == problems


@pytest.mark.parametrize(
    ("check", "data", "problem"),
    [
        ("done", CHUNK + END, "[DONE] is missing"),
        ("done", END + DONE + DONE, "[DONE] comes 2 times"),
        ("done", DONE + END, "1 events after [DONE]"),
        ("no_done", END + DONE, "[DONE] ends a stream that failed"),
        ("one_terminal", CHUNK + DONE, "choice 0 has 0 finish reasons: []"),
        ("sse.framing", b"text\n\n", "a line that is not an SSE field: 'text'"),
        ("sse.plain_lines", b": comment\n\n", "a line that does not begin with `data: `: ': comment'"),
    ],
)
def test_check_finds_a_faulty_stream(check: str, data: bytes, problem: str) -> None:
    rule = REPLY_CHECKS[check]
    assert rule.find_problems(make_outcome((0.0, data)), None) == [problem]


def test_checks_accept_a_correct_stream() -> None:
    outcome = make_outcome((0.0, CHUNK), (0.1, END + DONE))
    for check in ("done", "one_terminal", "sse.framing", "sse.plain_lines"):
        assert REPLY_CHECKS[check].find_problems(outcome, None) == []


def test_items_of_the_last_response_may_lack_keys_that_were_null() -> None:
    """LiteLLM sends `logprobs: null` in the done event, and no logprobs in the last response."""
    part: JsonObject = {"type": "output_text", "text": "a"}
    done: JsonObject = {"id": "msg_1", "content": [{**part, "logprobs": None}]}
    for id_, problems in (("msg_1", 0), ("msg_2", 1)):
        final: JsonObject = {"output": [{"id": id_, "content": [part]}]}
        events = [
            {"type": "response.output_item.done", "item": done},
            {"type": "response.completed", "response": final},
        ]
        outcome = make_outcome((0.0, b"".join(b"data: " + json.dumps(body).encode() + b"\n\n" for body in events)))
        assert len(REPLY_CHECKS["deltas_equal_final"].find_problems(outcome, None)) == problems


def test_done_may_follow_an_error_event() -> None:
    """OpenAI's SDKs raise at the error event; whether [DONE] should follow is the check no_done."""
    error = b'data: {"error": {"message": "it failed"}}\n\n'
    rule = REPLY_CHECKS["error_event"]
    assert rule.find_problems(make_outcome((0.0, CHUNK + error + DONE)), None) == []
    assert rule.find_problems(make_outcome((0.0, error + CHUNK)), None) == ["an event follows the error event"]
    assert rule.find_problems(make_outcome((0.0, CHUNK + DONE)), None) == ["the stream has no error event"]


@pytest.mark.parametrize(
    ("pieces", "read"),
    [(["read"], "read"), (["re", "ad"], "read or ad"), (["read", "read"], "readread or read"), ([], "")],
)
def test_name_in_pieces_is_read_as_both_sdks_read_it(pieces: list[str], read: str) -> None:
    calls = [{"index": 0, "id": "a", "function": {"name": piece}} for piece in pieces]
    calls.append({"index": 0, "function": {"arguments": "{}"}})
    bodies = [{"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]} for call in calls]
    outcome = make_outcome((0.0, b"".join(b"data: " + json.dumps(body).encode() + b"\n\n" for body in bodies)))
    problems = REPLY_CHECKS["calls_are"].find_problems(outcome, [{"name": "read", "arguments": "{}"}])
    assert problems == ([] if read == "read" else [f"the calls are [('{read}', {{}})], expected [('read', {{}})]"])
