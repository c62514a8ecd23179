"""When an answer is complete: what each sign of a stream's end leads to, and what a whole reply must say."""

from __future__ import annotations

import json

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Context, Reply
from dragoman.adapters.faults import Fault
from dragoman.adapters.sse import Framer
from dragoman.adapters.streams import End, Output
from dragoman.contract.json_types import JsonObject
from tests.adapters.conftest import MakeContext

DONE = b"data: [DONE]\n\n"
CUT = Fault("upstream_timeout", "late")
TRUNCATED = "upstream_truncated"


def event(body: JsonObject) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def chat(finish: str | None, index: int = 0) -> bytes:
    choice = {"index": index, "delta": {"content": "a"}, "text": "a", "finish_reason": finish}
    return event({"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})


CREATED = event({"type": "response.created", "sequence_number": 0, "response": {"id": "resp_1"}})
COMPLETED = event({"type": "response.completed", "sequence_number": 1, "response": {"id": "resp_1", "output": []}})
UNFINISHED = {"chat": chat(None), "completions": chat(None), "responses": CREATED}
FINISHED = {"chat": chat("stop"), "completions": chat("stop"), "responses": CREATED + COMPLETED}


def terminal(ctx: Context, protocol: str, data: bytes, cut: Fault | None = None) -> Output:
    """The last output, which is the only terminal."""
    reader = dialects["openai"].called[protocol].read_stream(ctx)
    outputs = [*reader.receive(data), *reader.close(cut)]
    assert [isinstance(output, End | Fault) for output in outputs].index(True) == len(outputs) - 1
    assert reader.has_ended and reader.receive(data) == reader.close(CUT) == []
    return outputs[-1]


@pytest.mark.parametrize("protocol", UNFINISHED)
@pytest.mark.parametrize("replies", ["off", "report", "repair"])
def test_the_signs_of_an_end(protocol: str, replies: str, context: MakeContext) -> None:
    def found(data: bytes, cut: Fault | None = None) -> str | None:
        last = terminal(context(policy={"replies": replies}), protocol, data, cut)
        return last.code or last.kind if isinstance(last, Fault) else None

    for complete in (FINISHED[protocol], FINISHED[protocol] + DONE):
        assert found(complete) is None
        assert found(complete, CUT) is None
    assert found(UNFINISHED[protocol]) == found(UNFINISHED[protocol] + DONE) == found(b"") == found(DONE) == TRUNCATED
    assert found(UNFINISHED[protocol], CUT) == "upstream_timeout"


@pytest.mark.parametrize("protocol", UNFINISHED)
@pytest.mark.parametrize("rest", [b'data: {"cho', b"da", b'{"error', b"data: [1]"])
def test_a_torn_event_is_truncation(protocol: str, rest: bytes, context: MakeContext) -> None:
    torn = terminal(context(), protocol, UNFINISHED[protocol] + rest)
    assert isinstance(torn, Fault)
    assert (torn.code, torn.message) == (TRUNCATED, "the provider's stream ended in the middle of an event")
    assert terminal(context(), protocol, UNFINISHED[protocol] + rest, CUT) is CUT


@pytest.mark.parametrize("protocol", UNFINISHED)
def test_a_text_at_the_end_is_no_torn_event(protocol: str, context: MakeContext) -> None:
    last = terminal(context(), protocol, UNFINISHED[protocol] + b"upstream gone", CUT)
    assert isinstance(last, Fault) and last.code == "upstream_invalid_event"


@pytest.mark.parametrize("protocol", UNFINISHED)
def test_an_unfinished_event_that_can_be_read_counts(protocol: str, context: MakeContext) -> None:
    assert isinstance(terminal(context(), protocol, FINISHED[protocol].removesuffix(b"\n\n"), CUT), End)


@pytest.mark.parametrize("data", [b"data: " + b"x" * 900 + b"\n\n", b"data: " + b"x" * 900])
@pytest.mark.parametrize("before", [b"", chat(None)])
def test_a_too_long_event(before: bytes, data: bytes, context: MakeContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.adapters.common.stream_reader.Framer", lambda: Framer(500))
    last = terminal(context(), "chat", before + data)
    assert isinstance(last, Fault)
    assert (last.kind, last.code) == ("upstream_invalid_response", "upstream_response_too_large")


def test_nothing_counts_after_the_terminal_even_if_it_is_too_long(
    context: MakeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.adapters.common.stream_reader.Framer", lambda: Framer(500))
    assert isinstance(terminal(context(), "chat", chat("stop") + DONE + b"x" * 600), End)


@pytest.mark.parametrize(("index", "needs", "code"), [(1, True, "upstream_invalid_response"), (1, False, None)])
@pytest.mark.parametrize("sign", [b"", DONE])
def test_a_translated_stream_needs_choice_0(
    index: int, needs: bool, code: str | None, sign: bytes, context: MakeContext
) -> None:
    ctx = context()._replace(needs_first_choice=needs)
    last = terminal(ctx, "chat", chat("stop", index) + sign)
    assert (last.code if isinstance(last, Fault) else None) == code
    assert isinstance(terminal(ctx, "chat", chat("stop", 0) + chat("stop", index) + sign), End)


@pytest.mark.parametrize("needs", [True, False])
def test_a_translated_reply_needs_choice_0(needs: bool, context: MakeContext) -> None:
    choice = {"index": 1, "message": {"role": "assistant", "content": "b"}, "finish_reason": "stop"}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    ctx = context()._replace(needs_first_choice=needs)
    if not needs:
        assert dialects["openai"].called["chat"].read_reply(Reply(200, body), ctx)["choices"][0]["index"] == 1
        return
    with pytest.raises(Fault, match="no choice with index 0") as caught:
        dialects["openai"].called["chat"].read_reply(Reply(200, body), ctx)
    assert caught.value.code == "upstream_invalid_response"


@pytest.mark.parametrize("replies", ["off", "report", "repair"])
@pytest.mark.parametrize(
    ("protocol", "body"),
    [
        ("chat", {"choices": [{"message": {"role": "assistant", "content": "a"}, "finish_reason": None}]}),
        ("completions", {"choices": [{"text": "a"}]}),
        ("responses", {"status": "queued", "output": []}),
        ("responses", {"status": "in_progress", "output": []}),
    ],
)
def test_whole_replies_that_have_not_ended(protocol: str, body: JsonObject, replies: str, context: MakeContext) -> None:
    with pytest.raises(Fault) as caught:
        dialects["openai"].called[protocol].read_reply(Reply(200, body), context(policy={"replies": replies}))
    assert caught.value.code == TRUNCATED
