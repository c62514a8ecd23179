"""`usage: count`: the tokens that a provider does not report."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from dragoman.adapters.call import JsonObject
from dragoman.adapters.emulation import tokenizers
from dragoman.adapters.pipeline import Attempt

from .opted import Said, Scripted, ask, form, prepare, read, run

TEXT = "The quick brown fox jumps over the lazy dog."
STREAMS = pytest.mark.parametrize("stream", [False, True])


def count(text: str) -> int:
    return len(tokenizers.load_encoding("o200k_base").encode_ordinary(text))


def attempt_for(model: str = "gpt-4o", **more: Any) -> Attempt:
    target = {key: more.pop(key) for key in [*more] if key in ("lacks", "response_format_mode")}
    if more.get("stream"):
        more.setdefault("stream_options", {"include_usage": True})
    return prepare(ask(**more), model=model, usage="count", **target)


@STREAMS
@pytest.mark.parametrize("lacks", [[], ["stream_options"]])
def test_what_is_not_reported_is_counted_and_marked_as_an_estimate(stream: bool, lacks: list[str]) -> None:
    attempt = attempt_for(stream=stream, messages=[{"role": "user", "content": TEXT}], lacks=lacks)
    events = read(run(attempt, Scripted(Said(TEXT), usage=False)))
    usage = events[-1]["usage"]
    assert usage["completion_tokens"] == count(TEXT) == 10
    assert usage["prompt_tokens"] == count(TEXT) + 7
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert 'filled;path="usage"' in attempt.headers["x-dragoman-changes"]
    assert "estimate" in attempt.headers["x-dragoman-changes"]


@STREAMS
def test_what_is_reported_stays(stream: bool) -> None:
    attempt, model = attempt_for(stream=stream), Scripted(Said(TEXT))
    assert read(run(attempt, model))[-1]["usage"] == model.usage
    assert attempt.receipt.losses == []


def test_a_stream_whose_client_did_not_ask_has_none() -> None:
    attempt = attempt_for(stream=True, stream_options=None)
    assert all(event.get("usage") is None for event in read(run(attempt, Scripted(Said(TEXT), usage=False))))
    assert attempt.receipt.losses == []


@STREAMS
def test_calls_and_tools_count(stream: bool) -> None:
    arguments = '{"city": "Oslo"}'
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]
    attempt = attempt_for(stream=stream, tools=tools)
    usage = read(run(attempt, Scripted(Said(calls=[("get_weather", arguments)]), usage=False)))[-1]["usage"]
    assert usage["completion_tokens"] == count("get_weather") + count(arguments)
    assert usage["prompt_tokens"] == count("x") + count(orjson.dumps(tools).decode()) + 7


@STREAMS
def test_a_model_with_an_unknown_tokenizer_is_not_counted(stream: bool) -> None:
    attempt = attempt_for(model="qwen3-32b", stream=stream)
    assert all(event.get("usage") is None for event in read(run(attempt, Scripted(Said(TEXT), usage=False))))
    assert attempt.receipt.is_lost(("usage",))


def test_without_the_package_nothing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizers, "_PACKAGE", "no_such_package")
    attempt = attempt_for()
    assert "usage" not in read(run(attempt, Scripted(Said(TEXT), usage=False)))[0]
    assert "extra tokens" in attempt.receipt.losses[0].reason


def test_both_calls_of_a_repair_are_counted() -> None:
    attempt = prepare(
        ask(response_format=form()),
        model="gpt-4o",
        usage="count",
        response_format="instruct",
        lacks=["response_format"],
    )
    model = Scripted(Said("no"), Said('{"city": "Oslo"}'), usage=False)
    usage: JsonObject = read(run(attempt, model))[0]["usage"]
    assert usage["completion_tokens"] == count("no") + count('{"city": "Oslo"}')
    texts = [message["content"] for body in model.asked for message in body["messages"]]
    assert usage["prompt_tokens"] == sum(map(count, texts)) + 4 * len(texts) + 3 * 2


def test_an_image_is_not_counted() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}
    attempt = attempt_for(messages=[{"role": "user", "content": [{"type": "text", "text": TEXT}, image]}])
    assert read(run(attempt, Scripted(Said(TEXT), usage=False)))[0]["usage"]["prompt_tokens"] == count(TEXT) + 7


@STREAMS
def test_a_client_of_responses(stream: bool) -> None:
    asked = {"model": "m", "input": TEXT, "stream": stream}
    attempt = prepare(asked, "responses", model="gpt-4o", usage="count")
    last = read(run(attempt, Scripted(Said(TEXT), usage=False)))[-1]
    assert last.get("response", last)["usage"]["output_tokens"] == count(TEXT)


def test_a_cut_stream_has_no_count() -> None:
    attempt = attempt_for(stream=True)
    data = run(attempt, Scripted(Said(TEXT), usage=False), cut=0)
    assert attempt.outcome.state == "failed"
    assert b"prompt_tokens" not in data


@pytest.mark.parametrize(("prompt", "tokens"), [(TEXT, 10), ([TEXT, TEXT], 20), ([1, 2, 3], 3), ([[1, 2], [3]], 3)])
@STREAMS
def test_prompts_of_completions(prompt: Any, tokens: int, stream: bool) -> None:
    asked = {"model": "m", "prompt": prompt, "stream": stream, "stream_options": {"include_usage": True}}
    asked = asked if stream else {"model": "m", "prompt": prompt}
    number = len(prompt) if isinstance(prompt, list) and not isinstance(prompt[0], int) else 1
    top = {"id": "c", "created": 1, "model": "m", "object": "text_completion"}
    choices = [{"index": i, "text": TEXT, "logprobs": None, "finish_reason": "stop"} for i in range(number)]
    attempt = prepare(asked, "completions", model="gpt-4o", usage="count", protocols=["completions"])
    events = [orjson.dumps({**top, "choices": [choice]}) for choice in choices]
    data = b"".join(b"data: " + event + b"\n\n" for event in [*events, b"[DONE]"])
    attempt.start_reply(0, 200, {"content-type": "text/event-stream" if stream else "application/json"})
    sent = attempt.feed(0, data if stream else orjson.dumps({**top, "choices": choices})).data
    usage = read(sent + attempt.close(0).data)[-1]["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (tokens, number * 10)
