"""What a target lacks, for a Messages client over a chat provider: the answer is that of a target that has it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, JsonObject, Target
from dragoman.adapters.opt_ins import OptIns
from dragoman.adapters.pipeline import Attempt, Pipeline, plan_target
from dragoman.adapters.routes import Route
from tests.adapters.translate.message_oracles import accumulate_message

from .opted import SCHEMA, Said, Scripted, read, run

TOOLS = [{"name": name, "input_schema": {"type": "object"}} for name in ("f", "g")]
STREAMED = pytest.mark.parametrize("stream", [False, True])


def prepare(
    request: JsonObject, *, protocol: str = "chat", lacks: tuple[str, ...] = (), opt_ins: OptIns | None = None
) -> Attempt:
    served = dialects["anthropic"].served["messages"]
    call = Call("POST", "/v1/messages", {}, {}, {"anthropic-version": "2023-06-01"})
    pipeline = Pipeline(Route(dialects["anthropic"], "messages", served, "actual"), call, clock=lambda: 1.0)
    asked = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "x"}], **request}
    pipeline.receive(orjson.dumps(asked))
    names = frozenset({"stop", "stop_sequences", "parallel_tool_calls", "disable_parallel_tool_use"})
    target = Target("up", lacks=frozenset(lacks), emulates=names, opt_ins=opt_ins or OptIns())
    return pipeline.prepare(plan_target("p", dialects["openai"], [protocol], target))


def answer(attempt: Attempt, model: Scripted) -> JsonObject:
    bodies = read(run(attempt, model))
    assert attempt.outcome.state == "complete"
    return bodies[0] if "content" in bodies[0] else accumulate_message(bodies)


@STREAMED
@pytest.mark.parametrize("lacks", [(), ("stop",)])
def test_stop_sequences(stream: bool, lacks: tuple[str, ...]) -> None:
    attempt = prepare({"stop_sequences": ["END", "#"], "stream": stream}, lacks=lacks)
    model = Scripted(Said("one two END three" if lacks else "one two "))
    made = answer(attempt, model)
    assert made["content"] == [{"type": "text", "text": "one two "}]
    assert ("stop" in model.asked[0]) == (not lacks)
    if lacks:
        assert (made["stop_reason"], made["stop_sequence"]) == ("stop_sequence", "END")
        assert "stop_sequences" in {str(change.before[0]) for change in attempt.receipt.changes if change.before}


@STREAMED
def test_more_stop_sequences_than_chat_takes(stream: bool) -> None:
    attempt = prepare({"stop_sequences": ["1", "2", "3", "4", "END"], "stream": stream})
    made = answer(attempt, Scripted(Said("one END two")))
    assert (made["content"], made["stop_sequence"]) == ([{"type": "text", "text": "one "}], "END")


@STREAMED
def test_one_call_at_a_time(stream: bool) -> None:
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    attempt = prepare({"tools": TOOLS, "tool_choice": choice, "stream": stream}, lacks=("parallel_tool_calls",))
    model = Scripted(Said(calls=[("f", '{"a":1}'), ("g", "{}")]))
    made = answer(attempt, model)
    assert [(block["name"], block["input"]) for block in made["content"]] == [("f", {"a": 1})]
    assert made["stop_reason"] == "tool_use"
    assert "parallel_tool_calls" not in model.asked[0]


@STREAMED
@pytest.mark.parametrize("mode", ["tool", "instruct"])
def test_a_format(stream: bool, mode: Any) -> None:
    form = {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}
    attempt = prepare({**form, "stream": stream}, lacks=("response_format",), opt_ins=OptIns(response_format=mode))
    text = '{"city":"Oslo"}'
    said = Said(calls=[("json", text)]) if mode == "tool" else Said(text)

    def reply(body: JsonObject) -> Said:
        tools = body.get("tools")
        return Said(calls=[(tools[0]["function"]["name"], text)]) if tools else said

    made = answer(attempt, Scripted(reply))
    assert made["content"] == [{"type": "text", "text": text}]
    assert made["stop_reason"] == "end_turn"


@STREAMED
def test_tools_by_instruction(stream: bool) -> None:
    attempt = prepare({"tools": TOOLS, "stream": stream}, lacks=("tools",), opt_ins=OptIns(tools="instruct"))
    made = answer(attempt, Scripted(Said('<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>')))
    calls = [(block["name"], block["input"]) for block in made["content"] if block["type"] == "tool_use"]
    assert calls == [("f", {"a": 1})] and made["stop_reason"] == "tool_use"
