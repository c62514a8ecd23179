"""What Azure's clients and models have beyond the published API: names in messages, and the usage of streams."""

from __future__ import annotations

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Target
from dragoman.adapters.extras import EXTRA_PARAMETERS
from dragoman.adapters.pipeline import Attempt, Pipeline, plan_target
from dragoman.adapters.routes import Route
from dragoman.contract.json_types import JsonObject

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TURN: list[JsonObject] = [
    {"role": "system", "content": "s", "name": "it"},
    {"role": "user", "content": "x", "name": "ann"},
    {"role": "assistant", "content": None, "tool_calls": [CALL], "name": "bot"},
    {"role": "tool", "content": "r", "tool_call_id": "c", "name": "f"},
]
USAGE = {"include_usage": True}
STREAM: JsonObject = {"messages": [{"role": "user", "content": "x"}], "stream": True}


def prepare(client: str, provider: str, body: JsonObject, profile: str = "actual") -> Attempt:
    dialect = dialects[client]
    route = Route(dialect, "chat", dialect.served["chat"], "actual")
    pipeline = Pipeline(route, Call("POST", dialect.paths["chat"][-1], {}, dict(dialect.query)))
    pipeline.receive(orjson.dumps({"model": "m", **body}))
    return pipeline.prepare(plan_target("p", dialects[provider], ["chat"], Target("m", profile)))


def list_names(attempt: Attempt) -> list[str | None]:
    return [message.get("name") for message in attempt.calls[0].call.body["messages"]]


@pytest.mark.parametrize("provider", ["azure", "openai", "mindie"])
def test_names_in_messages_go_through(provider: str) -> None:
    attempt = prepare("azure", provider, {"messages": TURN})
    assert list_names(attempt) == ["it", "ann", "bot", "f"]
    assert attempt.receipt.losses == []
    assert EXTRA_PARAMETERS not in attempt.calls[0].call.headers


def test_names_that_a_provider_lacks_are_dropped_and_named() -> None:
    attempt = prepare("azure", "databricks", {"messages": TURN})
    assert list_names(attempt) == [None, "ann", None, None]
    assert {change.before for change in attempt.receipt.losses} == {("messages", 0, "name"), ("messages", 2, "name")}
    weights = [change.weight for change in attempt.receipt.changes if change.before == ("messages", 3, "name")]
    assert weights == ["form"]


def test_the_name_of_a_result_is_lost_if_its_call_has_another() -> None:
    attempt = prepare("openai", "databricks", {"messages": [*TURN[1:3], {**TURN[3], "name": "g"}]})
    assert ("messages", 2, "name") in [change.before for change in attempt.receipt.losses]


@pytest.mark.parametrize("client", ["openai", "databricks", "azure", "mindie"])
def test_azure_is_asked_for_the_usage_of_a_stream(client: str) -> None:
    attempt = prepare(client, "azure", {**STREAM, "stream_options": USAGE})
    call = attempt.calls[0].call
    assert (call.body["stream_options"], call.headers[EXTRA_PARAMETERS]) == (USAGE, "pass-through")
    assert attempt.receipt.losses == []


@pytest.mark.parametrize("client", ["databricks", "mindie"])
def test_clients_whose_streams_report_usage_get_it_from_azure(client: str) -> None:
    assert prepare(client, "azure", STREAM).calls[0].call.body["stream_options"] == USAGE


def test_the_documented_azure_has_no_usage_in_streams() -> None:
    attempt = prepare("openai", "azure", {**STREAM, "stream_options": USAGE}, "documented")
    assert "stream_options" not in attempt.calls[0].call.body
    assert [change.before for change in attempt.receipt.losses] == [("stream_options",)]
