"""`response_format: instruct`: an instruction asks for the format, and the answer is checked."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.adapters.call import JsonObject, Policy
from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import Attempt

from .opted import Said, Scripted, ask, form, join_message, prepare, read, run

ANSWER = '{"city": "Oslo"}'
WRONG = '{"town": "Oslo"}'
STREAMS = pytest.mark.parametrize("stream", [False, True])


def attempt_for(format: JsonObject | None = None, **more: Any) -> Attempt:
    target = {key: more.pop(key) for key in [*more] if key in ("policy", "hold_streams", "tools", "provider")}
    asked = ask(response_format=format or form(), **more)
    return prepare(asked, lacks=["response_format"], response_format="instruct", **target)


@STREAMS
def test_the_schema_is_in_an_instruction(stream: bool) -> None:
    attempt, model = attempt_for(stream=stream), Scripted(Said(ANSWER))
    assert join_message(read(run(attempt, model))) == (ANSWER, [], "stop")
    (body,) = model.asked
    assert body.keys().isdisjoint({"response_format", "stream"})
    system, user = body["messages"]
    assert system["role"] == "system" and '"additionalProperties":false' in system["content"]
    assert user == {"role": "user", "content": "x"}
    assert attempt.receipt.losses == []


@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.parametrize("content", ["Be brief.", [{"type": "text", "text": "Be brief."}]])
def test_the_clients_instruction_stays_the_only_system_message(role: str, content: Any) -> None:
    messages = [{"role": role, "content": content}, {"role": "user", "content": "x"}]
    model = Scripted(Said(ANSWER))
    run(attempt_for(messages=messages), model)
    first, second = model.asked[0]["messages"]
    assert second == messages[1]
    text = first["content"] if isinstance(content, str) else "".join(part["text"] for part in first["content"])
    assert text.startswith("Be brief.") and "JSON Schema" in text


@STREAMS
@pytest.mark.parametrize("text", [f"```json\n{ANSWER}\n```", f"Here it is:\n```\n{ANSWER}\n```\nBye."])
def test_a_fence_is_stripped(stream: bool, text: str) -> None:
    attempt = attempt_for(stream=stream)
    assert join_message(read(run(attempt, Scripted(Said(text)))))[0] == ANSWER
    assert attempt.receipt.losses == []


@STREAMS
@pytest.mark.parametrize("first", ["I think Oslo.", WRONG, "[1]", "{"])
def test_an_invalid_answer_is_asked_for_once_more(stream: bool, first: str) -> None:
    attempt, model = attempt_for(stream=stream), Scripted(Said(first), Said(ANSWER))
    events = read(run(attempt, model))
    assert join_message(events) == (ANSWER, [], "stop")
    repaired = model.asked[1]["messages"]
    assert repaired[:-2] == model.asked[0]["messages"]
    assert repaired[-2] == {"role": "assistant", "content": first}
    assert repaired[-1]["role"] == "user" and "cannot be used" in repaired[-1]["content"]
    assert "2 calls" in attempt.headers["x-dragoman-changes"]
    assert "cost 12 tokens" in attempt.headers["x-dragoman-changes"]
    if not stream:
        assert events[0]["usage"] == {"prompt_tokens": 14, "completion_tokens": 10, "total_tokens": 24}


@STREAMS
def test_an_empty_answer_is_not_repeated(stream: bool) -> None:
    model = Scripted(Said(""), Said(ANSWER))
    assert join_message(read(run(attempt_for(stream=stream), model)))[0] == ANSWER
    assert [message["role"] for message in model.asked[1]["messages"]] == ["system", "user", "user"]


@STREAMS
def test_a_second_invalid_answer_is_a_loss_or_a_fault(stream: bool) -> None:
    attempt, model = attempt_for(stream=stream), Scripted(Said("no"), Said(WRONG))
    assert join_message(read(run(attempt, model)))[0] == WRONG
    assert attempt.receipt.is_lost(("response_format",))
    assert len(model.asked) == 2
    strict = attempt_for(stream=stream, policy=Policy(replies="strict"))
    assert run(strict, Scripted(Said("no"))) == b""
    assert strict.outcome.fault is not None
    assert (strict.outcome.fault.kind, strict.outcome.fault.code) == (
        "upstream_invalid_response",
        "upstream_invalid_format",
    )
    assert strict.outcome.fault.param == "response_format"


def test_any_json_object() -> None:
    json_object = {"type": "json_object"}
    model = Scripted(Said("[1]"), Said('{"a": 1}'))
    assert join_message(read(run(attempt_for(json_object), model)))[0] == '{"a": 1}'
    assert "JSON object" in model.asked[0]["messages"][0]["content"]


def test_a_schema_of_any_type() -> None:
    assert join_message(read(run(attempt_for(form({"type": "array"})), Scripted(Said("{}"), Said("[1]")))))[0] == "[1]"


@pytest.mark.parametrize(
    "said", [Said("{", finish="length"), Said(more={"refusal": "No."}), Said(finish="content_filter")]
)
def test_an_answer_that_is_none_is_not_asked_for_again(said: Said) -> None:
    attempt, model = attempt_for(), Scripted(said)
    run(attempt, model)
    assert len(model.asked) == 1
    assert attempt.outcome.state == "complete"


def test_a_call_of_a_tool_is_no_answer() -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    asked = ask(response_format=form(), tools=tools)
    attempt, model = (
        prepare(asked, lacks=["response_format"], response_format="instruct"),
        Scripted(Said(calls=[("f", "{}")])),
    )
    assert join_message(read(run(attempt, model))) == ("", [("f", "{}")], "tool_calls")
    assert len(model.asked) == 1 and model.asked[0]["tools"] == tools


def test_a_schema_that_cannot_be_checked_is_a_loss() -> None:
    tree = {"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}}}}
    attempt = attempt_for(form(tree))
    assert join_message(read(run(attempt, Scripted(Said("[]")))))[0] == "[]"
    assert attempt.receipt.is_lost(("response_format",))


def test_a_stream_that_is_not_held_comes_as_it_is_written() -> None:
    attempt = attempt_for(stream=True, hold_streams=False, stream_options={"include_usage": True})
    model = Scripted(Said(ANSWER), cuts=4)
    assert model.usage is not None
    events = read(run(attempt, model))
    assert model.asked[0]["stream"] is True
    deltas = [choice["delta"].get("content") for event in events for choice in event["choices"]]
    assert [one for one in deltas if one] == ['{"ci', 'ty":', ' "Os', 'lo"}']
    assert attempt.receipt.losses == []
    assert events[-1]["usage"] == model.usage


@pytest.mark.parametrize("size", [7, 10_000])
def test_a_stream_that_is_not_held_is_judged_at_its_end(size: int) -> None:
    attempt, model = attempt_for(stream=True, hold_streams=False), Scripted(Said(WRONG))
    assert join_message(read(run(attempt, model, size)))[0] == WRONG
    assert attempt.receipt.is_lost(("response_format",))
    assert len(model.asked) == 1
    strict = attempt_for(stream=True, hold_streams=False, policy=Policy(replies="strict"))
    data = run(strict, Scripted(Said(WRONG)), size)
    assert strict.outcome.fault is not None and strict.outcome.fault.code == "upstream_invalid_format"
    assert read(data)[-1]["error"]["code"] == "upstream_invalid_format"
    assert b"[DONE]" not in data


@pytest.mark.parametrize("cut", [0, 1])
def test_a_reply_that_breaks_off_is_a_failure(cut: int) -> None:
    for stream in (False, True):
        attempt = attempt_for(stream=stream)
        assert run(attempt, Scripted(Said("no"), Said(ANSWER)), cut=cut) == b""
        assert attempt.outcome.state == "failed"


def test_several_choices_are_repaired_one_by_one() -> None:
    asked = ask(response_format=form(), n=2)
    lacks = ["response_format", "n"]
    attempt = prepare(asked, lacks=lacks, response_format="instruct", emulates=frozenset({"n"}))
    model = Scripted(Said(ANSWER), Said("no"), Said('{"city": "Rome"}'))
    (reply,) = read(run(attempt, model))
    assert [choice["message"]["content"] for choice in reply["choices"]] == [ANSWER, '{"city": "Rome"}']
    assert reply["usage"]["total_tokens"] == 36
    assert attempt.outcome.state == "complete"


@STREAMS
def test_a_client_of_responses(stream: bool) -> None:
    asked = {"model": "m", "input": "x", "stream": stream, "text": {"format": {"type": "json_object"}}}
    attempt = prepare(asked, "responses", lacks=["response_format"], response_format="instruct")
    last = read(run(attempt, Scripted(Said("no"), Said(ANSWER))))[-1]
    response = last.get("response", last)
    assert response["output"][0]["content"][0]["text"] == ANSWER
    assert response["usage"]["total_tokens"] == 24


def test_other_formats_are_refused() -> None:
    with pytest.raises(Fault, match="response_format"):
        attempt_for({"type": "regex", "pattern": "a"})


def test_a_fault_of_a_message_has_the_place_that_the_client_wrote() -> None:
    asked = ask(
        response_format=form(),
        messages=[{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}]}],
    )
    with pytest.raises(Fault) as plain:
        prepare({**asked, "response_format": {"type": "text"}}, provider="mindie")
    with pytest.raises(Fault) as emulated:
        prepare(asked, provider="mindie", lacks=["response_format"], response_format="instruct")
    assert emulated.value.param == plain.value.param


def test_a_provider_that_is_only_called_for_responses_refuses_or_drops_it() -> None:
    asked = {"model": "m", "input": "x", "text": {"format": {"type": "json_object"}}}
    options: JsonObject = {"lacks": ["response_format"], "response_format": "instruct", "protocols": ["responses"]}
    with pytest.raises(Fault, match="only toward chat") as caught:
        prepare(ask(response_format=form()), **options)
    assert caught.value.param == "response_format"
    policy = Policy(unsupported="drop")
    assert prepare(ask(response_format=form()), policy=policy, **options).receipt.is_lost(("response_format",))
    assert prepare(asked, "responses", **options).calls[0].call.body["text"] == asked["text"]


@pytest.mark.parametrize(
    ("provider", "profile", "is_emulated"),
    [
        ("mindie", "documented", True),
        ("mindie", "actual", False),
        ("azure", "documented", True),
        ("azure", "actual", False),
        ("databricks", "actual", False),
    ],
)
def test_what_a_dialect_lacks_needs_no_lacks(provider: str, profile: str, is_emulated: bool) -> None:
    attempt = prepare(ask(response_format=form()), response_format="instruct", provider=provider, profile=profile)
    assert ("response_format" in attempt.calls[0].call.body) is not is_emulated
