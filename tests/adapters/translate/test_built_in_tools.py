"""Shells and patches of Responses clients over chat providers: functions there, and items of their own types here."""

from __future__ import annotations

import json

import orjson
import pytest
from openai.types.responses import (
    ResponseApplyPatchToolCall,
    ResponseFunctionShellToolCall,
    ResponseOutputItem,
)
from openai.types.responses.response_output_item import LocalShellCall
from pydantic import TypeAdapter

from dragoman.adapters.call import Policy, Target
from dragoman.adapters.faults import Fault
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject
from tests.adapters.pipeline.exchanges import Exchange, encode_chunks, make_reply, run_exchange, write_call

ASK: JsonObject = {"role": "user", "content": "x"}
SHELL: JsonObject = {"commands": ["ls -l"], "timeout_ms": 1000}
LOCAL: JsonObject = {"command": ["ls", "-l"]}
UPDATE: JsonObject = {"type": "update_file", "path": "a.py", "diff": "@@\n-a\n+b\n"}
CASES = [  # the tool, the arguments in chat, the key of a call, what it holds, the SDK's class
    ("shell", SHELL, "action", SHELL, ResponseFunctionShellToolCall),
    ("local_shell", LOCAL, "action", {"type": "exec", "env": {}, **LOCAL}, LocalShellCall),
    ("apply_patch", UPDATE, "operation", UPDATE, ResponseApplyPatchToolCall),
    ("apply_patch", DELETE := {"type": "delete_file", "path": "a"}, "operation", DELETE, ResponseApplyPatchToolCall),
]
every_case = pytest.mark.parametrize(("tool", "arguments", "key", "action", "kind"), CASES)


def answer(tool: str, arguments: str, streamed: bool) -> bytes:
    call: JsonObject = {"id": "call_1", "type": "function", "function": {"name": tool, "arguments": arguments}}
    if not streamed:
        return make_reply({"content": None, "tool_calls": [call]}, "tool_calls")
    half = len(arguments) // 2
    first = {"index": 0, **call, "function": {"name": tool, "arguments": arguments[:half]}}
    rest = {"index": 0, "function": {"arguments": arguments[half:]}}
    return encode_chunks({"role": "assistant", "tool_calls": [first]}, {"tool_calls": [rest]}, finish="tool_calls")


def ask(tool: str, arguments: str, streamed: bool, **target: Policy) -> Exchange:
    raw = answer(tool, arguments, streamed)
    return run_exchange("openai/responses", "openai/chat", raw, tools=[{"type": tool}], target=Target("m", **target))


@every_case
@pytest.mark.parametrize("streamed", [False, True])
def test_a_call_has_an_item_of_its_own_type(
    tool: str, arguments: JsonObject, key: str, action: JsonObject, kind: type, streamed: bool
) -> None:
    got = ask(tool, json.dumps(arguments), streamed)
    [item] = got.response["output"]
    assert item == {"type": f"{tool}_call", "id": item["id"], "call_id": "call_1", key: action, "status": "completed"}
    assert isinstance(TypeAdapter(ResponseOutputItem).validate_python(item), kind)
    assert got.lost == set()
    if streamed:
        assert all(load_validator("hub/responses.event").accepts(event) for event in got.events)
        items = [event["item"] for event in got.events if event["type"].startswith("response.output_item.")]
        assert items == [{**item, "status": "in_progress"}, item]


@every_case
def test_a_forced_tool_was_called(tool: str, arguments: JsonObject, key: str, action: JsonObject, kind: type) -> None:
    raw = answer(tool, json.dumps(arguments), streamed=False)
    policy = Policy(replies="strict")
    for choice in ("required", {"type": tool}):
        got = run_exchange(
            "openai/responses", "openai/chat", raw, tools=[{"type": tool}], tool_choice=choice,
            target=Target("m", policy=policy),
        )  # fmt: skip
        assert got.response["output"][0]["type"] == f"{tool}_call"


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("shell", "rm -rf"),
        ("shell", '{"commands": "ls"}'),
        ("shell", "[]"),
        ("shell", '{"commands": ["ls"], "x": ' + "[" * 300 + "]" * 300 + "}"),
        ("local_shell", "{}"),
        ("apply_patch", '{"type": "update_file", "path": "a"}'),
    ],
)
def test_arguments_that_do_not_fit_stay_a_function_call(tool: str, arguments: str, streamed: bool) -> None:
    got = ask(tool, arguments, streamed)
    [item] = got.response["output"]
    assert (item["type"], item["name"], item["arguments"]) == ("function_call", tool, arguments)
    assert len(got.receipt.losses) == 1
    assert load_validator("hub/responses.reply").accepts(got.response)


def write(tools: list[JsonObject], items: list[JsonObject], **body: JsonObject) -> tuple[JsonObject, set[str]]:
    request = {"input": [ASK, *items], "tools": tools, **body}
    made, receipt = write_call("openai/responses", "openai/chat", request, Target("m"))
    return made, {str(change.before[-1]) for change in receipt.losses}


@every_case
def test_tools_and_calls_go_to_a_chat_provider(
    tool: str, arguments: JsonObject, key: str, action: JsonObject, kind: type
) -> None:
    call = {"type": f"{tool}_call", "id": "i", "call_id": "c", key: action, "status": "completed"}
    result = {"type": f"{tool}_call_output", "call_id": "c", "output": "done", "status": "completed"}
    made, lost = write([{"type": tool}], [call, result], tool_choice={"type": tool})
    assert lost == set()
    assert made["tools"][0]["function"]["name"] == tool
    assert made["tool_choice"] == {"type": "function", "function": {"name": tool}}
    _, said, told = made["messages"]
    [sent] = said["tool_calls"]
    assert (sent["id"], sent["function"]["name"], json.loads(sent["function"]["arguments"])) == ("c", tool, arguments)
    assert told == {"role": "tool", "tool_call_id": "c", "content": "done"}


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"type": "local_shell_call_output", "id": "c", "output": '{"stdout":"a"}'}, '{"stdout":"a"}'),
        (
            {
                "type": "shell_call_output",
                "call_id": "c",
                "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
            },
            '[{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":0}}]',
        ),
        (
            {"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": "no such file"},
            '{"status":"failed","output":"no such file"}',
        ),
        (
            {"type": "apply_patch_call_output", "call_id": "c", "status": "completed"},
            '{"status":"completed","output":null}',
        ),
    ],
)
def test_results_become_texts(result: JsonObject, text: str) -> None:
    tool = result["type"].removesuffix("_call_output")
    call = {"type": f"{tool}_call", "id": "c", "call_id": "c", "action": {}, "operation": {}}
    made, _ = write([{"type": tool}], [call, result])
    assert made["messages"][-1] == {"role": "tool", "tool_call_id": "c", "content": text}


def test_a_result_without_a_call_is_refused() -> None:
    with pytest.raises(Fault) as caught:
        write([{"type": "shell"}], [{"type": "shell_call_output", "call_id": "c", "output": []}])
    assert caught.value.param == "input[1].call_id"


def test_a_shell_in_a_container_runs_at_the_provider() -> None:
    hosted = {"type": "shell", "environment": {"type": "container_auto"}}
    made, lost = write([hosted, {"type": "shell", "environment": {"type": "local"}}], [])
    assert [tool["function"]["name"] for tool in made["tools"]] == ["shell"]
    assert lost == {"0"}


def test_only_allowed_tools_are_offered() -> None:
    tools = [{"type": "shell"}, {"type": "apply_patch"}]
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "apply_patch"}]}
    made, _ = write(tools, [], tool_choice=choice)
    assert [tool["function"]["name"] for tool in made["tools"]] == ["apply_patch"]


def test_schemas_of_the_functions_are_small_and_plain() -> None:
    made, _ = write([{"type": "shell"}, {"type": "local_shell"}, {"type": "apply_patch"}], [])
    assert load_validator("databricks/chat.request", "actual").accepts({**made, "model": "m"})
    assert len(orjson.dumps(made["tools"])) < 3000
