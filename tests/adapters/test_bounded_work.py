"""What a body costs besides its bytes is bounded: errors that are looked for, values that are quoted, keys that are
looked at."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Target
from dragoman.adapters.error_replies import format_value, keep_if_small
from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import Pipeline, plan_target
from dragoman.adapters.routes import RouteTable
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.adapters.step_count import count_steps
from tests.dialects import DIALECTS

HELLO = {"role": "user", "content": "hello"}
ROUTES = RouteTable(dialects, {})


def measure_peak(function: Callable[[], object]) -> int:
    """The bytes that Python's memory grows by at most while the function runs."""
    function()  # what is loaded on first use stays
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def check(schema: str, body: JsonObject) -> Fault:
    with pytest.raises(Fault) as caught:
        load_validator(schema).check(body)
    return caught.value


BODIES: dict[str, tuple[str, JsonObject, str]] = {
    "items": ("openai/responses.request", {"model": "m", "input": [[]] * 9_000}, "input[0]"),
    "objects": ("openai/chat.request", {"model": "m", "messages": [{}] * 9_000}, "messages[0].role"),
    "too many": ("openai/chat.request", {"model": "m", "messages": [HELLO] * 12_000}, "messages"),
    "numbers": ("openai/chat.request", {"model": "m", "messages": [HELLO], "user": [1.5] * 1_000_000}, "user"),
    "text": ("openai/chat.request", {"model": "m", "messages": [HELLO], "n": "é" * 10_000_000}, "n"),
    "the last": ("openai/chat.request", {"model": "m", "messages": [*[HELLO] * 9_000, 7]}, "messages[9000]"),
}


@pytest.mark.parametrize("case", BODIES)
def test_one_error_of_a_large_body_is_found_in_little_memory(case: str) -> None:
    schema, body, param = BODIES[case]
    fault = check(schema, body)
    assert fault.param == param
    assert len(fault.message) < 400
    assert measure_peak(lambda: check(schema, body)) < 8_000_000


def test_errors_at_the_beginning_of_a_large_body_are_found_together() -> None:
    body: JsonObject = {"model": "m", "messages": [{"role": "x"}, *[HELLO] * 2_000], "n": "one"}
    fault = check("openai/chat.request", body)
    assert {one.param for one in fault.reasons} >= {"messages[0].role", "n"}


@pytest.mark.parametrize("value", [[[1]] * 1_000_000, {"a": ["x" * 1_000_000]}, "x" * 10_000_000, [[]] * 1_000_000])
def test_a_large_value_is_not_written_out_for_an_error(value: JsonValue) -> None:
    assert keep_if_small(value) is None
    assert len(format_value(value)) <= 500
    assert measure_peak(lambda: (keep_if_small(value), format_value(value))) < 100_000
    assert count_steps(lambda: (keep_if_small(value), format_value(value))) < 100


@pytest.mark.parametrize(
    ("value", "text"), [([1, {"a": "b"}], '[1,{"a":"b"}]'), ("é" * 400, "é" * 248 + "..."), (7, "7")]
)
def test_a_small_value_is_quoted(value: JsonValue, text: str) -> None:
    assert format_value(value) == text
    assert keep_if_small(value) == value


@pytest.mark.parametrize("dialect", DIALECTS)
def test_countless_parameters_are_refused(dialect: str) -> None:
    pipeline = Pipeline(ROUTES.match("/v1/chat/completions"), Call("POST", "/v1/chat/completions", {}))
    pipeline.receive_object({"model": "m", "messages": [HELLO], **{f"k{i}": 1 for i in range(1_001)}})
    with pytest.raises(Fault, match="1001 parameters that nobody knows") as caught:
        pipeline.prepare(plan_target(dialect, dialects[dialect], ["chat"], Target("m")))
    assert (caught.value.kind, caught.value.param) == ("extra_parameter", "k0")
