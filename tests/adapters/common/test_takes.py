"""What a target is configured to take is sent as it is, by the client's name for it or by the name that is sent."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, JsonObject, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import Pipeline, plan_target
from dragoman.adapters.routes import Route
from tests.tables import for_each

SAID: dict[str, JsonObject] = {
    "chat": {"messages": [{"role": "user", "content": "x"}]},
    "responses": {"input": "x"},
}
CHAT: JsonObject = {
    "seed": 1,
    "n": 2,
    "stop": ["a"],
    "logit_bias": {"1": 2},
    "logprobs": True,
    "parallel_tool_calls": False,
    "presence_penalty": 1,
    "reasoning_effort": "low",
    "response_format": {"type": "json_object"},
    "service_tier": "flex",
    "modalities": ["text"],
    "top_k": 4,
    "min_p": 0.1,
    "user": "u",
    "verbosity": "low",
    "x_unknown": {"a": 1},
}
RESPONSES: JsonObject = {
    "max_tool_calls": 3,
    "prompt": {"id": "p"},
    "truncation": "auto",
    "top_k": 4,
    "x_unknown": {"a": 1},
}
CALLED = [
    (name, profile) for name, dialect in dialects.items() if "chat" in dialect.called for profile in dialect.profiles
]


def _send(client: str, provider: str, body: JsonObject, *takes: str, **target: Any) -> tuple[JsonObject, Receipt]:
    name, protocol = client.split("/")
    route = Route(dialects[name], protocol, dialects[name].served[protocol], "actual")
    pipeline = Pipeline(route, Call("POST", "/", {}))
    pipeline.receive(orjson.dumps({"model": "m", **SAID[protocol], **body}))
    pipeline.start_conversation()
    name, protocol = provider.split("/")
    plan = plan_target("p", dialects[name], [protocol], Target("m", takes=frozenset(takes), **target))
    attempt = pipeline.prepare(plan)
    return attempt.calls[0].call.body, attempt.receipt


@for_each(("name", "profile"), CALLED)
@for_each("field", CHAT)
def test_every_dialect_sends_what_the_target_takes(name: str, profile: str, field: str) -> None:
    body, receipt = _send("openai/chat", f"{name}/chat", {field: CHAT[field]}, field, profile=profile)
    assert body[field] == CHAT[field]
    assert not receipt.losses


@pytest.mark.parametrize("field", RESPONSES)
def test_a_parameter_without_a_place_in_chat_is_sent_if_the_target_takes_it(field: str) -> None:
    body, receipt = _send("openai/responses", "azure/chat", {field: RESPONSES[field]}, field)
    assert body[field] == RESPONSES[field]
    assert not receipt.losses


@pytest.mark.parametrize("field", ["seed", "n", "stop", "logit_bias", "top_k", "x_unknown"])
def test_a_parameter_without_a_place_in_responses_is_sent_if_the_target_takes_it(field: str) -> None:
    body, receipt = _send("openai/chat", "openai/responses", {field: CHAT[field]}, field)
    assert body[field] == CHAT[field]
    assert not receipt.losses


@pytest.mark.parametrize("takes", ["reasoning", "reasoning_effort"])
@pytest.mark.parametrize("provider", ["azure/chat", "mindie/chat"])
def test_the_clients_name_and_the_name_that_is_sent_both_count(provider: str, takes: str) -> None:
    body, receipt = _send("openai/responses", provider, {"reasoning": {"effort": "low"}}, takes)
    assert body["reasoning_effort"] == "low"
    assert not receipt.losses


@pytest.mark.parametrize("takes", ["text", "response_format"])
def test_a_format_is_sent_by_either_name(takes: str) -> None:
    form = {"type": "json_object"}
    body, _ = _send("openai/responses", "mindie/chat", {"text": {"format": form}}, takes, profile="documented")
    assert body["response_format"] == form


def test_log_probabilities_are_sent_by_the_clients_name() -> None:
    body, _ = _send("openai/responses", "azure/chat", {"top_logprobs": 3}, "top_logprobs")
    assert (body["logprobs"], body["top_logprobs"]) == (True, 3)


@pytest.mark.parametrize("client", ["openai/chat", "openai/responses"])
def test_a_parameter_goes_with_the_one_that_it_requires(client: str) -> None:
    asked = {"top_logprobs": 3, **({"logprobs": True} if client == "openai/chat" else {})}
    target = {"lacks": frozenset({"logprobs"}), "policy": Policy(unsupported="drop")}
    body, receipt = _send(client, "mindie/chat", asked, **target)
    assert body.keys().isdisjoint(("logprobs", "top_logprobs"))
    assert any("which it requires" in change.reason for change in receipt.losses)


def test_azure_gets_the_header_for_what_its_api_lacks() -> None:
    route = Route(dialects["openai"], "chat", dialects["openai"].served["chat"], "actual")
    pipeline = Pipeline(route, Call("POST", "/", {}))
    pipeline.receive(orjson.dumps({"model": "m", **SAID["chat"], "n": 2}))
    target = Target("m", takes=frozenset({"n"}))
    call = pipeline.prepare(plan_target("p", dialects["azure"], ["chat"], target)).calls[0].call
    assert call.headers["extra-parameters"] == "pass-through"


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"reasoning_effort": "low"}, "reasoning"),
        ({"verbosity": "low"}, "text"),
        ({"response_format": {"type": "json_object"}}, "text"),
        ({"verbosity": "low", "response_format": {"type": "json_object"}}, "text"),
    ],
)
def test_what_is_nested_for_responses_is_refused_by_the_clients_name(given: JsonObject, sent: str) -> None:
    route = Route(dialects["openai"], "chat", dialects["openai"].served["chat"], "actual")
    pipeline = Pipeline(route, Call("POST", "/", {}))
    pipeline.receive(orjson.dumps({"model": "m", **SAID["chat"], **given}))
    target = Target("m", lacks=frozenset({sent}))
    with pytest.raises(Fault) as caught:
        pipeline.prepare(plan_target("p", dialects["openai"], ["responses"], target))
    assert {one.param for one in caught.value.reasons} == {*given}


@pytest.mark.parametrize("takes", ["verbosity", "text"])
def test_what_is_nested_for_responses_is_taken_by_either_name(takes: str) -> None:
    body, receipt = _send("openai/chat", "databricks/responses", {"verbosity": "low"}, takes, profile="documented")
    assert body["text"] == {"verbosity": "low"}
    assert not receipt.losses
