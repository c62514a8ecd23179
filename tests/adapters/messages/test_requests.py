"""What a request is refused for, besides its schema: how its parameters, calls and results fit together."""

from __future__ import annotations

import pytest

from dragoman.adapters.faults import Fault
from dragoman.adapters.messages.requests import check_request
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue

VALIDATOR = load_validator("anthropic/messages.request", "actual")
TOOL = {"name": "f", "input_schema": {"type": "object"}}
USER = {"role": "user", "content": "x"}
LATE = "messages.5.content.0.tool_use_id"


def use(*ids: str) -> JsonObject:
    blocks = [{"type": "tool_use", "id": one, "name": "f", "input": {}} for one in ids]
    return {"role": "assistant", "content": blocks}


def result(*ids: str) -> JsonObject:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": one} for one in ids]}


def find_faults(betas: tuple[str, ...] = (), **body: JsonValue) -> list[tuple[str, str]]:
    given = {"model": "m", "max_tokens": 16, "messages": [USER], **body}
    try:
        check_request(given, VALIDATOR, betas)
    except Fault as fault:
        return [(".".join(map(str, one.path)), one.message) for one in (fault, *fault.others)]
    return []


def list_paths(**body: JsonValue) -> list[str]:
    return [path for path, _ in find_faults(**body)]


def test_keys_inside_values_that_nobody_knows_are_extra_parameters() -> None:
    body = {"model": "m", "max_tokens": 1, "messages": [{**USER, "news": 1}]}
    assert check_request(body, VALIDATOR) is False  # the schema is open: the policy decides when it is written


@pytest.mark.parametrize(
    "messages",
    [
        [USER, use("a"), result("a")],
        [USER, use("a", "b"), result("b", "a")],
        [USER, use("a"), use("b"), result("a"), result("b")],
        [USER, use("a"), {"role": "system", "content": "x"}, result("a"), use("a"), result("a")],
        [USER, {"role": "assistant", "content": "prefill"}],
    ],
)
def test_calls_with_their_results_are_accepted(messages: list[JsonObject]) -> None:
    assert find_faults(messages=messages) == []


@pytest.mark.parametrize(
    ("messages", "paths"),
    [
        ([USER, use("a")], ["messages.1"]),
        ([USER, use("a"), USER], ["messages.1"]),
        ([USER, use("a", "b"), result("b")], ["messages.1"]),
        (
            [USER, use("a"), USER, use("b"), result("b"), result("a")],
            ["messages.1", "messages.5.content.0.tool_use_id"],
        ),
        ([result("a")], ["messages.0.content.0.tool_use_id"]),
        ([USER, use("a"), result("a"), result("a")], ["messages.3.content.0.tool_use_id"]),
        ([{**use("a"), "role": "user"}], ["messages.0.content.0"]),
        ([{**result("a"), "role": "assistant"}], ["messages.0.content.0"]),
    ],
)
def test_calls_and_results_belong_together(messages: list[JsonObject], paths: list[str]) -> None:
    assert list_paths(messages=messages) == paths


def test_the_ids_without_a_result_are_named() -> None:
    [(_, text)] = find_faults(messages=[USER, use("toolu_a", "toolu_b"), USER])
    assert "toolu_a, toolu_b. Each tool_use block must have a corresponding tool_result block" in text


def test_the_turns_before_a_continued_thread_are_not_known() -> None:
    thread = {"type": "continue", "previous_message_id": "msg_1"}
    assert find_faults(messages=[result("a")], thread=thread) == []


def test_a_budget_for_thinking_is_below_the_limit() -> None:
    thinking = {"type": "enabled", "budget_tokens": 1024}
    assert list_paths(thinking=thinking, max_tokens=1024) == ["max_tokens"]
    assert list_paths(thinking=thinking, max_tokens=1025) == []
    assert find_faults(("interleaved-thinking-2025-05-14",), thinking=thinking, max_tokens=1024) == []


def test_thinking_goes_with_no_temperature_and_no_forced_tool() -> None:
    body = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000, "tools": [TOOL]}
    assert list_paths(**body, temperature=0.5, tool_choice={"type": "any"}) == ["temperature", "thinking"]
    assert list_paths(**body, temperature=1, tool_choice={"type": "auto"}) == []


def test_tools_have_names_of_their_own_and_the_chosen_one_is_there() -> None:
    assert list_paths(tools=[TOOL, TOOL]) == ["tools.1.name"]
    assert list_paths(tools=[TOOL], tool_choice={"type": "tool", "name": "g"}) == ["tool_choice.name"]
    assert list_paths(tools=[TOOL], tool_choice={"type": "tool", "name": "f"}) == []
    toolset = {"type": "mcp_toolset", "mcp_server_name": "s"}
    assert list_paths(tools=[TOOL, toolset], tool_choice={"type": "tool", "name": "g"}) == []


def test_keys_that_steer_a_proxy_are_refused() -> None:
    assert list_paths(api_base="http://e") == ["api_base"]
    assert list_paths(fallbacks="default") == ["fallbacks"]


@pytest.mark.parametrize("place", ["tools", "output_config", "output_format"])
def test_hostile_schemas_are_refused(place: str) -> None:
    schema: JsonObject = {"type": "object", "$ref": "https://e/x"}
    form = {"type": "json_schema", "schema": schema}
    body = {"tools": [{"name": "f", "input_schema": schema}], "output_config": {"format": form}, "output_format": form}
    assert list_paths(**{place: body[place]})[0].startswith(place)


def test_many_faults_are_found_in_bounded_number() -> None:
    found = list_paths(messages=[USER, *[one for _ in range(2000) for one in (use("a"), USER)]])
    assert len(found) == 32
