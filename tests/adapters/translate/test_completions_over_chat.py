"""A prompt said to a chat model, and its answer as a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.chat.restream import restream
from dragoman.adapters.completions.restream import restream_text
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Chunk, End
from dragoman.adapters.translate.bridge import BRIDGES
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue

BRIDGE = BRIDGES["completions"][0]


def translate(request: JsonObject, ctx: Context) -> JsonObject:
    return BRIDGE.request(ctx._replace(request=request)).request


def context(request: JsonObject | None = None, **policy: JsonValue) -> Context:
    policy = {"emulate_completions": True, **policy}
    return Context("actual", Call("POST", "/", {}), Receipt(), Target("up", policy=Policy(**policy)), request or {})


def asked(**fields: JsonValue) -> JsonObject:
    return {"model": "m", "prompt": "hello", **fields}


@pytest.mark.parametrize(("prompt", "path"), [("hello", ("prompt",)), (["hello"], ("prompt", 0))])
def test_the_prompt_is_what_a_user_says(prompt: JsonValue, path: tuple[str | int, ...]) -> None:
    ctx = context()
    body = translate(asked(prompt=prompt, stop=["a"], n=2, top_k=4, seed=1, best_of=2), ctx)
    said = [{"role": "user", "content": "hello"}]
    assert body == {"model": "m", "messages": said, "stop": ["a"], "n": 2, "top_k": 4, "seed": 1}
    assert load_validator("hub/chat.request").accepts(body)
    assert [(change.before, change.after) for change in ctx.receipt.losses] == [(path, ("messages", 0, "content"))]
    assert ctx.receipt.unmap(("messages", 0, "content")) == path


def test_it_has_to_be_switched_on() -> None:
    with pytest.raises(Fault) as caught:
        translate(asked(), context(emulate_completions=False))
    assert caught.value.code == "unsupported_protocol"


@pytest.mark.parametrize(("value", "word"), [
    (None, "no prompt"), ([1], "tokens"), ([[1], [2]], "tokens"),
])  # fmt: skip
def test_a_prompt_of_text_and_no_other(value: JsonValue, word: str) -> None:
    with pytest.raises(Fault) as caught:
        translate(asked(prompt=value), context(unsupported="drop"))
    assert caught.value.param == "prompt"
    assert word in caught.value.message


@pytest.mark.parametrize(("field", "value", "neutral"), [
    ("echo", True, False), ("suffix", "s", ""), ("logprobs", 0, None), ("best_of", 3, 1),
    ("error_behavior", "truncate", "error"), ("use_raw_prompt", True, False),
])  # fmt: skip
def test_what_chat_lacks_follows_the_policy(field: str, value: JsonValue, neutral: JsonValue) -> None:
    with pytest.raises(Fault) as caught:
        translate(asked(**{field: value}), context())
    assert (caught.value.kind, caught.value.param) == ("unsupported_parameter", field)
    dropping = context(unsupported="drop")
    assert field not in translate(asked(**{field: value}), dropping)
    assert [change.before for change in dropping.receipt.losses] == [(field,), ("prompt",)]
    silent = context()
    assert field not in translate(asked(**{field: neutral}), silent)
    assert [change.before for change in silent.receipt.losses] == [("prompt",)]


def test_keys_that_nobody_knows_are_not_carried_across() -> None:
    ctx = context()
    assert "made_up" not in translate(asked(made_up=1), ctx)
    assert ("made_up",) in [change.before for change in ctx.receipt.losses]
    with pytest.raises(Fault):
        translate(asked(made_up=1), context(extra_parameters="error"))


MESSAGE = {"role": "assistant", "content": "hi", "refusal": None}


def chat(*messages: JsonObject, finish: str = "stop", **top: JsonValue) -> JsonObject:
    choices = [
        {"index": i, "message": {**MESSAGE, **message}, "logprobs": None, "finish_reason": finish}
        for i, message in enumerate(messages)
    ]
    return {"id": "c1", "object": "chat.completion", "created": 7, "model": "m", "choices": choices, **top}


USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def test_a_reply() -> None:
    ctx = context()
    made = BRIDGE.reply(chat({}, {"content": "ho"}, usage=USAGE, service_tier="flex", cost=0.1), asked(n=2), ctx)
    assert [(one["index"], one["text"], one["finish_reason"]) for one in made["choices"]] == [
        (0, "hi", "stop"),
        (1, "ho", "stop"),
    ]
    assert made["usage"] == USAGE
    assert load_validator("hub/completions.reply").accepts(made)
    assert made["cost"] == 0.1
    assert [change.public()["before"] for change in ctx.receipt.losses] == ["service_tier"]


@pytest.mark.parametrize(("message", "text", "lost"), [
    ({"content": None}, "", []),
    ({"content": None, "refusal": "no"}, "no", []),
    ({"reasoning_content": "hm"}, "hi", ["reasoning_content"]),
    ({"tool_calls": [{"id": "1"}]}, "hi", ["tool_calls"]),
])  # fmt: skip
def test_what_a_message_says(message: JsonObject, text: str, lost: list[str]) -> None:
    ctx = context()
    [one] = BRIDGE.reply(chat(message), asked(), ctx)["choices"]
    assert one["text"] == text
    assert [change.before[-1] for change in ctx.receipt.losses] == lost


@pytest.mark.parametrize(("finish", "word"), [
    ("stop", "stop"), ("length", "length"), ("content_filter", "content_filter"), ("tool_calls", "stop"),
    ("function_call", "stop"),
])  # fmt: skip
def test_finish_reasons(finish: str, word: str) -> None:
    assert BRIDGE.reply(chat({}, finish=finish), asked(), context())["choices"][0]["finish_reason"] == word


def test_a_stream() -> None:
    outputs = [*map(Chunk, restream(chat({}, {"content": "ho"}, usage=USAGE), True)), End()]
    translator = BRIDGE.stream(asked(n=2), context())
    made = [one for output in outputs for one in translator.feed(output)]
    chunks = [one.body for one in made if isinstance(one, Chunk)]
    assert all(load_validator("hub/completions.event").accepts(chunk) for chunk in chunks)
    said = [(one["index"], one["text"], one["finish_reason"]) for chunk in chunks for one in chunk["choices"]]
    assert said == [(0, "hi", None), (0, "", "stop"), (1, "ho", None), (1, "", "stop")]
    assert [chunk["usage"] for chunk in chunks] == [None] * 4 + [USAGE]
    assert isinstance(made[-1], End)


def test_a_fault_goes_on() -> None:
    fault = Fault("upstream_error", "no")
    assert BRIDGE.stream(asked(), context()).feed(fault) == [fault]


TEXTS = st.lists(st.text(max_size=8), min_size=1, max_size=4)
FINISH = st.sampled_from(["stop", "length", "content_filter", "tool_calls"])


@given(TEXTS, FINISH, st.booleans())
def test_a_stream_adds_up_to_the_whole(texts: list[str], finish: str, usage: bool) -> None:
    """Whether a reply is translated and then streamed, or streamed and then translated, it says the same."""
    whole = chat(*({"content": text} for text in texts), finish=finish, **({"usage": USAGE} if usage else {}))
    text_reply: Callable[..., Any] = BRIDGE.reply
    first = restream_text(text_reply(whole, asked(), context()), True)
    translator = BRIDGE.stream(asked(), context())
    second = [one.body for chunk in restream(whole, True) for one in translator.feed(Chunk(chunk))]  # type: ignore[union-attr]
    assert summed(first) == summed(second)


def summed(chunks: list[JsonObject]) -> JsonValue:
    texts: dict[int, str] = {}
    ends: dict[int, str] = {}
    for chunk in chunks:
        for one in chunk["choices"]:
            texts[one["index"]] = texts.get(one["index"], "") + one["text"]
            if one["finish_reason"]:
                ends[one["index"]] = one["finish_reason"]
    return texts, ends, chunks[-1].get("usage")
