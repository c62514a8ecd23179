"""Requests that are long in one way: the steps that write them grow as they do, no faster."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.translate.bridge import BRIDGES
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.adapters.step_count import count_steps

COUNT = 400
USER: JsonObject = {"role": "user", "content": "x"}


def write(dialect: str, protocol: str, request: JsonObject, profile: str = "actual", **policy: JsonValue) -> None:
    target = Target("m", profile=profile, policy=Policy(**policy))
    ctx = Context(profile, Call("POST", "/", request), Receipt(), target, request)
    dialects[dialect].called[protocol].write_request(request, ctx)


def translate(dialect: str, request: JsonObject) -> None:
    ctx = Context("actual", Call("POST", "/", request), Receipt(), Target("m"), request)
    made = BRIDGES["responses"][0].request(ctx._replace(request=request)).request
    dialects[dialect].called["chat"].write_request(made, ctx._replace(request=made))


def chat(*messages: JsonObject) -> JsonObject:
    return {"model": "m", "messages": list(messages)}


def responses(*items: JsonObject) -> JsonObject:
    return {"model": "m", "input": list(items)}


def unknown_keys(count: int) -> JsonObject:
    return {f"unknown_key_{number}": 1 for number in range(count)}


def tool_results(count: int) -> list[JsonObject]:
    """A turn of the assistant with many calls, and the results of the calls in reverse."""
    function = {"name": "f", "arguments": "{}"}
    calls = [{"id": f"c{number}", "type": "function", "function": function} for number in range(count)]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "r"} for call in reversed(calls)]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


def write_repeated_results(count: int) -> None:
    turn, *_, first_result = tool_results(count)
    write("databricks", "chat", chat(USER, turn, *[first_result] * (count // 4)))


def write_encrypted_reasoning(count: int) -> None:
    items = [{"type": "reasoning", "id": f"r{n}", "summary": [], "encrypted_content": "e"} for n in range(count)]
    write("databricks", "responses", responses(USER, *items, USER), "documented")


CASES: dict[str, Callable[[int], None]] = {
    "results in reverse": lambda count: write("databricks", "chat", chat(USER, *tool_results(count))),
    "results of one call": write_repeated_results,
    "system messages": lambda count: write(
        "databricks", "chat", chat(*[{"role": "system", "content": "x"}] * count, USER)
    ),
    "developer items": lambda count: write(
        "databricks", "responses", responses(*[{"role": "developer", "content": "x"}] * count, USER)
    ),
    "developer items, translated": lambda count: translate(
        "mindie", responses(*[{"role": "developer", "content": "x"}] * count, USER)
    ),
    "encrypted reasoning": write_encrypted_reasoning,
    "keys of a message": lambda count: write("databricks", "chat", chat({**USER, **unknown_keys(count)})),
    "keys of a message, dropped": lambda count: write(
        "databricks", "chat", chat({**USER, **unknown_keys(count)}), extra_parameters="drop"
    ),
}


def write_long_request(case: str, count: int) -> None:
    try:
        CASES[case](count)
    except Fault as fault:
        assert fault.code == "unknown_parameter"


@pytest.mark.parametrize("case", CASES)
def test_writing_a_long_request(case: str) -> None:
    write_long_request(case, COUNT)  # what is built once must not count
    few, many = (count_steps(lambda count=count: write_long_request(case, count)) for count in (COUNT, 2 * COUNT))
    assert few > COUNT / 8
    assert many < 2.2 * few


def test_reading_a_long_request_of_azure() -> None:
    def read(count: int) -> Fault:
        body = {"model": "m", "messages": [USER], **unknown_keys(count)}
        call = Call("POST", "/", body, {"api-version": "2024-05-01-preview"})
        with pytest.raises(Fault) as caught:
            dialects["azure"].served["chat"].read_request(call, Context("actual", call, Receipt()))
        return caught.value

    message = read(8000).message
    assert len(message) < 1000
    assert "'unknown_key_9'] and 7990 more are" in message
    few, many = (count_steps(lambda count=count: read(count)) for count in (COUNT, 2 * COUNT))
    assert many < 2.2 * few
