"""Requests that are long in one way: the time to write them grows as they do, no faster. What once grew with the square
took seconds at these sizes."""

from __future__ import annotations

import time
from typing import Any

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.translate.bridge import BRIDGES

MANY = 8000
MOST = 0.7  # seconds of processor time
USER = {"role": "user", "content": "x"}
UNKNOWN = {f"unknown_key_{i}": 1 for i in range(MANY)}
MORE = {f"unknown_key_{i}": 1 for i in range(20_000)}
CALLS = [{"id": f"c{i}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for i in range(MANY)]
RESULTS = [{"role": "tool", "tool_call_id": call["id"], "content": "r"} for call in reversed(CALLS)]
SEALED = [{"type": "reasoning", "id": f"r{i}", "summary": [], "encrypted_content": "e"} for i in range(2 * MANY)]
ASKING = {"role": "assistant", "content": None, "tool_calls": CALLS}

Body = dict[str, Any]


def write(dialect: str, protocol: str, request: Body, profile: str = "actual", **policy: str) -> None:
    target = Target("m", profile=profile, policy=Policy(**policy))
    ctx = Context(profile, Call("POST", "/", request), Receipt(), target, request)
    dialects[dialect].called[protocol].write_request(request, ctx)


def translate(dialect: str, request: Body) -> None:
    ctx = Context("actual", Call("POST", "/", request), Receipt(), Target("m"), request)
    made = BRIDGES["responses"][0].request(request, ctx)
    dialects[dialect].called["chat"].write_request(made, ctx._replace(request=made))


CASES = {
    "results in reverse": lambda: write("databricks", "chat", {"model": "m", "messages": [USER, ASKING, *RESULTS]}),
    "results of one call": lambda: write(
        "databricks", "chat", {"model": "m", "messages": [USER, ASKING, *[RESULTS[-1]] * (MANY // 4)]}
    ),
    "system messages": lambda: write(
        "databricks", "chat", {"model": "m", "messages": [*[{"role": "system", "content": "x"}] * MANY, USER]}
    ),
    "developer items": lambda: write(
        "databricks", "responses", {"model": "m", "input": [*[{"role": "developer", "content": "x"}] * MANY, USER]}
    ),
    "developer items, translated": lambda: translate(
        "mindie", {"model": "m", "input": [*[{"role": "developer", "content": "x"}] * (MANY // 2), USER]}
    ),
    "sealed reasoning": lambda: write(
        "databricks", "responses", {"model": "m", "input": [USER, *SEALED, USER]}, "documented"
    ),
    "keys of a message": lambda: write("databricks", "chat", {"model": "m", "messages": [{**USER, **UNKNOWN}]}),
    "keys of a message, dropped": lambda: write(
        "databricks", "chat", {"model": "m", "messages": [{**USER, **MORE}]}, extra_parameters="drop"
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_writing_a_long_request(case: str) -> None:
    before = time.process_time()
    try:
        CASES[case]()
    except Fault as fault:
        assert fault.code == "unknown_parameter"
    assert time.process_time() - before < MOST


def test_reading_a_long_request_of_azure() -> None:
    body = {"model": "m", "messages": [USER], **UNKNOWN}
    call = Call("POST", "/", body, {"api-version": "2024-05-01-preview"})
    before = time.process_time()
    with pytest.raises(Fault) as caught:
        dialects["azure"].served["chat"].read_request(call, Context("actual", call, Receipt()))
    assert time.process_time() - before < MOST
    assert len(caught.value.message) < 1000
    assert f"'unknown_key_9'] and {MANY - 10} more are" in caught.value.message
