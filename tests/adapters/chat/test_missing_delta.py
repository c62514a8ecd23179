"""Azure sends choices without a delta while it filters a text in parallel. No policy makes an error of them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Policy, Reply, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault

STREAM = (Path(__file__).parent / "fixtures" / "streams" / "azure_filters.sse").read_bytes()


PolicyWord: TypeAlias = Literal["off", "report", "repair", "strict"]


def make_context(replies: PolicyWord) -> Context:
    target = Target("up", policy=Policy(replies=replies))
    return Context("actual", Call("POST", "/", {}), Receipt(), target, {"stream": True}, lambda: 1.0, lambda _: "id")


@pytest.mark.parametrize("replies", ["repair", "off", "report"])
@pytest.mark.parametrize("client", ["databricks", "azure", "mindie"])
def test_a_choice_without_a_delta(client: str, replies: PolicyWord) -> None:
    ctx = make_context(replies)
    reader = dialects["azure"].called["chat"].read_stream(ctx)
    writer = dialects[client].served["chat"].write_stream(ctx)
    written = b"".join(map(writer.write, [*reader.receive(STREAM), *reader.close()]))
    assert written.endswith(b"data: [DONE]\n\n")
    assert "Grüße".encode() in written


@pytest.mark.parametrize("dialect", ["openai", "azure"])
@pytest.mark.parametrize("replies", ["off", "report", "repair", "strict"])
def test_a_whole_choice_without_a_message_was_filtered(dialect: str, replies: PolicyWord) -> None:
    hate = {"hate": {"filtered": True, "severity": "high"}}
    choice = {"index": 0, "finish_reason": "content_filter", "logprobs": None, "content_filter_results": hate}
    counts = {"prompt_tokens": 15, "completion_tokens": 19, "total_tokens": 34}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": counts}
    made = dialects[dialect].called["chat"].read_reply(Reply(200, body), make_context(replies))
    [found] = made["choices"]
    assert (found["finish_reason"], found["message"]["content"]) == ("content_filter", None)
    assert found["content_filter_results"] == hate and made["usage"] == counts


@pytest.mark.parametrize("finish", ["stop", None])
def test_any_other_choice_without_a_message_is_a_fault(finish: str | None) -> None:
    with pytest.raises(Fault):
        body = {"id": "c", "choices": [{"index": 0, "finish_reason": finish}]}
        dialects["openai"].called["chat"].read_reply(Reply(200, body), make_context("repair"))
