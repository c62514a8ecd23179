"""`response_format: tool`: the format becomes the parameters of a tool."""

from __future__ import annotations

import pytest

from dragoman.adapters.call import JsonObject, Policy
from dragoman.adapters.faults import Fault

from .opted import SCHEMA, Said, Scripted, ask, form, join_message, prepare, read, run

LACKS = ("response_format",)
ANSWER = '{"city": "Oslo"}'
OWN: list[JsonObject] = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
STREAMS = pytest.mark.parametrize("stream", [False, True])


@STREAMS
def test_the_arguments_become_the_content(stream: bool) -> None:
    attempt = prepare(ask(response_format=form(), stream=stream), lacks=LACKS, response_format="tool")
    model = Scripted(Said(calls=[("final_answer", ANSWER)]))
    assert join_message(read(run(attempt, model))) == (ANSWER, [], "stop")
    (body,) = model.asked
    assert "response_format" not in body
    assert body["tools"][0]["function"]["parameters"] == SCHEMA
    assert body["tool_choice"] == {"type": "function", "function": {"name": "final_answer"}}
    assert attempt.headers["x-dragoman-changes"].startswith('emulated;path="response_format"')
    assert attempt.receipt.losses == []


@STREAMS
def test_any_json_object(stream: bool) -> None:
    asked = ask(response_format={"type": "json_object"}, stream=stream)
    attempt = prepare(asked, lacks=LACKS, response_format="tool")
    model = Scripted(Said(calls=[("final_answer", '{"x": 1}')], finish="stop"))
    assert join_message(read(run(attempt, model))) == ('{"x": 1}', [], "stop")
    assert model.asked[0]["tools"][0]["function"]["parameters"] == {"type": "object"}


def test_argument_deltas_are_content_deltas() -> None:
    attempt = prepare(ask(response_format=form(), stream=True), lacks=LACKS, response_format="tool")
    model = Scripted(Said(calls=[("final_answer", ANSWER)]), cuts=4)
    deltas = [event["choices"][0]["delta"].get("content") for event in read(run(attempt, model))]
    assert [one for one in deltas if one] == ['{"ci', 'ty":', ' "Os', 'lo"}']


@STREAMS
@pytest.mark.parametrize("choice", [None, "auto"])
def test_the_clients_tools_can_be_called_instead(stream: bool, choice: str | None) -> None:
    asked = ask(response_format=form(), tools=OWN, stream=stream, **({"tool_choice": choice} if choice else {}))
    for said, wanted in (
        (Said(calls=[("f", "{}")]), ("", [("f", "{}")], "tool_calls")),
        (Said(calls=[("final_answer", ANSWER)]), (ANSWER, [], "stop")),
        (Said(calls=[("final_answer", ANSWER), ("f", "{}")]), (ANSWER, [("f", "{}")], "tool_calls")),
    ):
        model = Scripted(said)
        assert join_message(read(run(prepare(asked, lacks=LACKS, response_format="tool"), model))) == wanted
        assert model.asked[0]["tool_choice"] == "required"
        assert [tool["function"]["name"] for tool in model.asked[0]["tools"]] == ["f", "final_answer"]


def test_a_tool_that_must_be_called_makes_the_format_pointless() -> None:
    for choice in ("required", {"type": "function", "function": {"name": "f"}}):
        asked = ask(response_format=form(), tools=OWN, tool_choice=choice)
        attempt, model = prepare(asked, lacks=LACKS, response_format="tool"), Scripted(Said(calls=[("f", "{}")]))
        assert join_message(read(run(attempt, model)))[1] == [("f", "{}")]
        assert model.asked[0]["tools"] == OWN
        assert attempt.receipt.losses == []


def test_tools_that_must_not_be_called_leave_only_the_answer() -> None:
    asked = ask(response_format=form(), tools=OWN, tool_choice="none")
    model = Scripted(Said(calls=[("final_answer", ANSWER)]))
    run(prepare(asked, lacks=LACKS, response_format="tool"), model)
    assert model.asked[0]["tool_choice"]["function"]["name"] == "final_answer"


def test_a_tool_of_the_client_keeps_its_name() -> None:
    own: JsonObject = {"type": "function", "function": {"name": "final_answer", "parameters": {"type": "object"}}}
    model = Scripted(Said(calls=[("final_answer", "{}"), ("final_answer_", ANSWER)]))
    asked = ask(response_format=form(), tools=[own])
    said = join_message(read(run(prepare(asked, lacks=LACKS, response_format="tool"), model)))
    assert said == (ANSWER, [("final_answer", "{}")], "tool_calls")


@STREAMS
def test_a_text_beside_the_answer_is_a_loss(stream: bool) -> None:
    attempt = prepare(ask(response_format=form(), stream=stream), lacks=LACKS, response_format="tool")
    model = Scripted(Said(text="Sure!", calls=[("final_answer", ANSWER), ("final_answer", "{}")]))
    assert join_message(read(run(attempt, model))) == (ANSWER, [], "stop")
    assert len(attempt.receipt.losses) == 2


@STREAMS
def test_an_answer_without_the_tool_is_its_text(stream: bool) -> None:
    attempt = prepare(ask(response_format=form(), stream=stream), lacks=LACKS, response_format="tool")
    assert join_message(read(run(attempt, Scripted(Said(text="I cannot."))))) == ("I cannot.", [], "stop")
    assert attempt.receipt.is_lost(("response_format",))


def test_a_cut_stream_stays_a_failure() -> None:
    attempt = prepare(ask(response_format=form(), stream=True), lacks=LACKS, response_format="tool")
    data = run(attempt, Scripted(Said(calls=[("final_answer", ANSWER)])), cut=0)
    assert attempt.outcome.state == "failed"
    assert b"[DONE]" not in data


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"response_format": form({"type": "array"})}, "not one of objects"),
        ({"response_format": form(), "logprobs": True}, "no log probabilities"),
    ],
)
def test_what_no_tool_can_give_is_refused_or_dropped(more: JsonObject, why: str) -> None:
    with pytest.raises(Fault, match=why) as caught:
        prepare(ask(**more), lacks=LACKS, response_format="tool")
    assert caught.value.param == "response_format"
    dropped = prepare(ask(**more), lacks=LACKS, response_format="tool", policy=Policy(unsupported="drop"))
    assert dropped.receipt.is_lost(("response_format",))


def test_a_target_without_tools_refuses_the_format() -> None:
    lacks = ("response_format", "tools")
    with pytest.raises(Fault, match="what emulates it") as caught:
        prepare(ask(response_format=form()), lacks=lacks, response_format="tool")
    assert caught.value.param == "response_format"
    policy = Policy(unsupported="drop")
    attempt = prepare(ask(response_format=form()), lacks=lacks, response_format="tool", policy=policy)
    assert attempt.receipt.is_lost(("response_format",))
    assert "tools" not in attempt.calls[0].call.body


def test_strictly_it_is_refused() -> None:
    with pytest.raises(Fault, match="not exactly"):
        prepare(
            ask(response_format=form()),
            lacks=LACKS,
            response_format="tool",
            policy=Policy(unsupported="refuse-exactly"),
        )


@STREAMS
def test_a_client_of_responses(stream: bool) -> None:
    asked = {"model": "m", "input": "x", "stream": stream}
    asked |= {"text": {"format": {"type": "json_schema", "name": "trip", "schema": SCHEMA}}}
    attempt = prepare(asked, "responses", lacks=LACKS, response_format="tool")
    last = read(run(attempt, Scripted(Said(calls=[("final_answer", ANSWER)]))))[-1]
    (item,) = last.get("response", last)["output"]
    assert item["content"][0]["text"] == ANSWER
    assert [change.before for change in attempt.receipt.changes if change.action == "emulated"] == [("text", "format")]


def test_it_is_off_by_default() -> None:
    with pytest.raises(Fault, match="response_format cannot be served"):
        prepare(ask(response_format=form()), lacks=LACKS)


def test_a_target_with_the_format_gets_it() -> None:
    attempt = prepare(ask(response_format=form()), response_format="tool")
    assert attempt.calls[0].call.body["response_format"] == form()
