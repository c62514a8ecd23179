"""An output that no writer can write: what came before it reaches the client, in however many reads it came."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Policy, Target
from dragoman.adapters.pipeline import Pipeline, plan_target
from dragoman.adapters.routes import Route


def event(delta: Any, finish: str | None = None) -> bytes:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    body = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


GOOD, UNWRITABLE, END = event({"content": "Hello"}), event("no object"), event({}, "stop") + b"data: [DONE]\n\n"


def feed(reads: list[bytes], client: str) -> tuple[bytes, Any, list[str]]:
    """The client's bytes, the fault and the defects, if no reply is repaired."""
    defects: list[str] = []
    dialect = dialects[client]
    pipeline = Pipeline(
        Route(dialect, "chat", dialect.served["chat"], "documented"),
        Call("POST", "/", {}),
        report_defect=lambda provider, error: defects.append(type(error).__name__),
    )
    target = Target("m", policy=Policy(replies="off"))
    attempt = pipeline.expect_reply(plan_target("p", dialects["openai"], ["chat"], target), {"stream": True})
    outputs = [attempt.start_reply(0, 200, {"content-type": "text/event-stream"})]
    outputs += [attempt.feed(0, read) for read in reads]
    outputs.append(attempt.close(0))
    return b"".join(output.data for output in outputs), attempt.outcome.fault, defects


@pytest.mark.parametrize("client", ["databricks", "azure", "mindie"])
def test_what_came_before_it_is_written(client: str) -> None:
    data, fault, defects = feed([GOOD + GOOD + UNWRITABLE + END], client)
    assert (fault.kind, fault.code) == ("upstream_invalid_response", "upstream_invalid_response")
    assert defects == []  # nobody normalizes replies here: the provider is to blame
    assert "choices[0].delta" in fault.message
    *events, error = data.split(b"\n\n")[:-1]
    assert [json.loads(one[6:])["choices"][0]["delta"]["content"] for one in events] == ["Hello", "Hello"]
    assert b"error" in error
    assert feed([GOOD, GOOD, UNWRITABLE, END], client)[0] == data


@pytest.mark.parametrize("client", ["databricks", "azure", "mindie"])
def test_nothing_is_written_if_nothing_came_before_it(client: str) -> None:
    data, fault, defects = feed([UNWRITABLE + END], client)
    assert (data, fault.code, defects) == (b"", "upstream_invalid_response", [])
