"""A whole reply with an empty finish reason, as Snowflake's Cortex sends it for all models but OpenAI's."""

from __future__ import annotations

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Context, Reply
from dragoman.adapters.faults import Fault
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.adapters.conftest import MakeContext

CALL = {
    "custom": {"input": "", "name": ""},
    "function": {"arguments": '{"city":"Mexico City"}', "name": "get_weather"},
    "id": "toolu_1",
    "type": "function",
}


def reply(finish: JsonValue = "", tokens: int | None = 21, calls: JsonValue = None, choices: int = 1) -> JsonObject:
    """A reply with the keys of Cortex's; None for `tokens` leaves the counts out."""
    message: JsonObject = {
        "annotations": None,
        "audio": {"data": "", "expires_at": 0, "id": "", "transcript": ""},
        "content": "" if calls else "Sunny.",
        "function_call": {"arguments": "", "name": ""},
        "refusal": "",
        "role": "assistant",
        "tool_calls": calls,
    }
    logprobs = {"content": None, "refusal": None}
    body: JsonObject = {
        "choices": [
            {"finish_reason": finish, "index": i, "logprobs": logprobs, "message": message} for i in range(choices)
        ],
        "created": 1783468051,
        "id": "",
        "model": "claude-sonnet-4-6",
        "object": "chat.completion",
        "service_tier": "",
        "system_fingerprint": "",
    }
    if tokens is not None:
        body["usage"] = {"completion_tokens": tokens, "prompt_tokens": 642, "total_tokens": 642 + tokens}
    return body


def silent() -> JsonObject:
    body = reply()
    body["choices"][0]["message"]["content"] = ""
    return body


def read(body: JsonObject, ctx: Context) -> JsonObject:
    return dialects["openai"].called["chat"].read_reply(Reply(200, body), ctx)


@pytest.mark.parametrize(
    ("body", "request_", "word"),
    [
        (reply(), {}, "stop"),
        (reply(), {"max_tokens": 22}, "stop"),
        (reply(), {"max_tokens": 21}, "length"),
        (reply(), {"max_completion_tokens": 21}, "length"),
        (reply(tokens=4096), {}, "length"),
        (reply(tokens=4096), {"max_tokens": 5000}, "stop"),
        (reply(calls=[CALL]), {}, "tool_calls"),
        (reply(calls=[CALL]), {"max_tokens": 21}, "length"),
    ],
)
def test_the_counts_of_tokens_say_how_it_ended(
    body: JsonObject, request_: JsonObject, word: str, context: MakeContext
) -> None:
    ctx = context(request=request_)
    choice = read(body, ctx)["choices"][0]
    assert (choice["finish_reason"], choice["native_finish_reason"]) == (word, "")
    losses = [change for change in ctx.receipt.changes if change.weight == "loss"]
    assert [change.after for change in losses] == [("choices", 0, "finish_reason")]
    assert "does not say how the answer ended" in losses[0].reason


@pytest.mark.parametrize(
    "body", [reply(None), reply("null"), reply(tokens=None), reply(tokens=0), reply(choices=2), silent()], ids=str
)
@pytest.mark.parametrize("replies", ["off", "report", "repair"])
def test_other_replies_without_finish_reason_are_incomplete(
    body: JsonObject, replies: str, context: MakeContext
) -> None:
    with pytest.raises(Fault, match="no finish reason") as caught:
        read(body, context(policy={"replies": replies}))
    assert caught.value.code == "upstream_truncated"


@pytest.mark.parametrize("replies", ["off", "report"])
def test_policies_that_leave_replies_unchanged_leave_it(replies: str, context: MakeContext) -> None:
    ctx = context(policy={"replies": replies})
    assert read(reply(), ctx) == reply()
    assert ctx.receipt.violations


def test_the_strict_policy_takes_no_guess(context: MakeContext) -> None:
    with pytest.raises(Fault) as caught:
        read(reply(), context(policy={"replies": "strict"}))
    assert caught.value.owner == "provider"
