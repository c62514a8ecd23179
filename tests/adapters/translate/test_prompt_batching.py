"""Several prompts become several questions to a chat model, and their answers one reply."""

from __future__ import annotations

import pytest

from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.translate.bridge import BRIDGES
from dragoman.contract.json_types import JsonObject, JsonValue

BRIDGE = BRIDGES["completions"][0]
assert BRIDGE.batching is not None
BATCHING = BRIDGE.batching


def context(prompt: JsonValue, emulate: bool = True, **fields: JsonValue) -> Context:
    target = Target("up", policy=Policy(emulate_completions=emulate))
    return Context("actual", Call("POST", "/", {}), Receipt(), target, {"model": "m", "prompt": prompt, **fields})


@pytest.mark.parametrize("prompt", ["a", ["a"], [1, 2], [[1], [2]], None])
def test_what_is_not_split(prompt: JsonValue) -> None:
    ctx = context(prompt)
    assert BATCHING.split(ctx) == [ctx]


def test_without_the_policy_nothing_is_split() -> None:
    ctx = context(["a", "b"], emulate=False)
    assert BATCHING.split(ctx) == [ctx]


def test_each_prompt_is_a_request_of_its_own() -> None:
    ctx = context(["a", "b"], n=2, stream=True, stream_options={"include_usage": True})
    parts = BATCHING.split(ctx)
    assert [part.request for part in parts] == [{"model": "m", "prompt": text, "n": 2} for text in "ab"]
    assert ctx.request["stream"] is True, "the client's own request stays"
    for i, part in enumerate(parts):
        body = BRIDGE.request(part).request
        assert body["messages"] == [{"role": "user", "content": "ab"[i]}]
        assert part.receipt.unmap(("messages", 0, "content")) == ("prompt", i)
        assert [change.before for change in part.receipt.losses] == [("prompt", i)]
        assert [change.before for change in part.receipt.changes] == [("stream",), ("prompt", i)]


def test_there_is_a_bound() -> None:
    assert len(BATCHING.split(context(["a"] * 2048))) == 2048
    with pytest.raises(Fault) as caught:
        BATCHING.split(context(["a"] * 2049))
    assert (caught.value.param, caught.value.kind) == ("prompt", "unsupported_parameter")
    assert "at most 2048 prompts" in caught.value.message


def reply(*indices: int, **top: JsonValue) -> JsonObject:
    choices = [{"index": i, "text": f"t{i}", "logprobs": None, "finish_reason": "stop"} for i in indices]
    return {"id": "c", "object": "text_completion", "created": 1, "model": "m", "choices": choices, **top}


def usage(prompt: int, completion: int, **details: int) -> JsonObject:
    counts: JsonObject = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    return {**counts, "completion_tokens_details": details} if details else counts


def test_choices_count_on() -> None:
    joined = BATCHING.join([reply(0, 1), reply(1, 0), reply(0)], context(["a", "b", "c"], n=2))
    assert [choice["index"] for choice in joined["choices"]] == [0, 1, 3, 2, 4]
    assert "usage" not in joined


def test_tokens_are_added_up() -> None:
    parts = [usage(1, 2, reasoning_tokens=1), usage(3, 4), usage(5, 6, reasoning_tokens=4)]
    joined = BATCHING.join([reply(0, usage=part) for part in parts], context(["a", "b", "c"]))
    assert joined["usage"] == usage(9, 12, reasoning_tokens=5)


def test_unknown_tokens_are_no_sum() -> None:
    joined = BATCHING.join([reply(0, usage=usage(1, 1)), reply(0)], context(["a", "b"]))
    assert "usage" not in joined


def test_a_choice_too_many_is_nobodys() -> None:
    with pytest.raises(Fault) as caught:
        BATCHING.join([reply(0), reply(0, 1)], context(["a", "b"]))
    assert (caught.value.kind, caught.value.param) == ("upstream_invalid_response", "prompt[1]")
