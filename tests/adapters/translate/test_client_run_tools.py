"""Tools of Anthropic that the client runs are functions for other providers, and their calls come back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from dragoman.adapters.call import Call, Context, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Chunk, End
from dragoman.adapters.translate.bridge import BRIDGES
from dragoman.adapters.translate.client_run_tools import define_tool
from dragoman.adapters.translate.message_requests import messages_to_chat_request
from dragoman.contract.json_types import JsonObject

EDITOR = "str_replace_based_edit_tool"
NAMES = {
    "bash_20250124": "bash",
    "text_editor_20250124": "str_replace_editor",
    "text_editor_20250728": EDITOR,
    "memory_20250818": "memory",
}
TO_CHAT, *_ = BRIDGES["messages"]
INPUT = {"command": "view", "path": "/a"}


def context() -> Context:
    return Context("actual", Call("POST", "/v1/messages", {}), Receipt(), Target("m"), clock=lambda: 1.0)


def ask(*tools: JsonObject, **more: Any) -> JsonObject:
    messages = more.pop("messages", [{"role": "user", "content": "hi"}])
    return {"model": "m", "max_tokens": 9, "messages": messages, "tools": list(tools), **more}


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("choice", [{}, {"tool_choice": {"type": "any"}}])
def test_they_are_functions(kind: str, choice: JsonObject) -> None:
    ctx = context()
    made = messages_to_chat_request(ask({"type": kind, "name": NAMES[kind], "cache_control": None}, **choice), ctx)
    [tool] = made["tools"]
    function = tool["function"]
    assert (tool["type"], function["name"]) == ("function", NAMES[kind])
    assert function["description"] and "command" in function["parameters"]["properties"]
    conversions = [change for change in ctx.receipt.changes if change.before == ("tools", 0, "type")]
    assert [(change.action, change.weight) for change in conversions] == [("converted", "form")]
    assert not [change for change in ctx.receipt.changes if change.weight == "loss"]


def test_a_forced_one_and_the_options_of_the_editor() -> None:
    tool = {"type": "text_editor_20250728", "name": EDITOR, "max_characters": 900}
    made = messages_to_chat_request(ask(tool, tool_choice={"type": "tool", "name": EDITOR}), context())
    assert made["tool_choice"] == {"type": "function", "function": {"name": EDITOR}}
    assert "max_characters" not in str(made)


def test_commands_are_those_of_the_version() -> None:
    def inputs(kind: str) -> tuple[set[str], set[str]]:
        properties = (define_tool({"type": kind, "name": "x"}) or {})["input_schema"]["properties"]
        return set(properties), set(properties["command"]["enum"])

    old, new, memory = map(inputs, ("text_editor_20250124", "text_editor_20250728", "memory_20250818"))
    assert "undo_edit" in old[1] and "insert_text" not in old[0]
    assert "undo_edit" not in new[1] and "insert_text" in new[0]
    assert {"delete", "rename"} <= memory[1] and {"old_path", "new_path", "insert_text"} <= memory[0]


def test_a_tool_that_anthropic_runs_is_refused_as_before() -> None:
    with pytest.raises(Fault, match="web_search"):
        messages_to_chat_request(ask({"type": "web_search_20250305", "name": "web_search"}), context())


def read_chunks() -> Iterator[Chunk | End]:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": EDITOR, "arguments": ""}}
    pieces: list[tuple[JsonObject, str | None]] = [({"role": "assistant", "tool_calls": [call]}, None)]
    text = orjson.dumps(INPUT).decode()
    pieces += [({"tool_calls": [{"index": 0, "function": {"arguments": one}}]}, None) for one in (text[:5], text[5:])]
    for delta, finish in [*pieces, ({}, "tool_calls")]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        yield Chunk({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})
    yield End()


def test_calls_come_back_with_their_name_whole_and_streamed() -> None:
    request = ask({"type": "text_editor_20250728", "name": EDITOR})
    function = {"name": EDITOR, "arguments": orjson.dumps(INPUT).decode()}
    calls = [{"id": "c1", "type": "function", "function": function}]
    message = {"role": "assistant", "content": None, "refusal": None, "tool_calls": calls}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls"}
    hub = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    [block] = TO_CHAT.reply(hub, request, context())["content"]
    assert (block["type"], block["id"], block["name"], block["input"]) == ("tool_use", "c1", EDITOR, INPUT)
    translator = TO_CHAT.stream(request, context())
    events = [made.body for one in read_chunks() for made in translator.feed(one) if isinstance(made, Chunk)]
    [start] = [event["content_block"] for event in events if event["type"] == "content_block_start"]
    parts = [event["delta"]["partial_json"] for event in events if event["type"] == "content_block_delta"]
    assert (start["type"], start["name"], orjson.loads("".join(parts))) == ("tool_use", EDITOR, INPUT)


def test_results_answer_their_calls() -> None:
    call = {"type": "tool_use", "id": "c1", "name": EDITOR, "input": INPUT}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "1: x"}
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [call]}]
    made = messages_to_chat_request(
        ask({"type": "text_editor_20250728", "name": EDITOR}, messages=[*turns, {"role": "user", "content": [result]}]),
        context(),
    )
    assert made["messages"][-1] == {"role": "tool", "tool_call_id": "c1", "content": "1: x"}
