"""Facts about well-known models decide what a request becomes, unless the configuration says otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, JsonObject, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.model_facts import NO_FACTS, find_facts
from dragoman.adapters.pipeline import plan_target
from tests.adapters.pipeline.exchanges import write_call

MESSAGES = [{"role": "user", "content": "hello"}]
OPENAI, ELSEWHERE = "api.openai.com", "gateway.test"
REASONING = "Microsoft, Azure OpenAI reasoning models"


def send(
    body: JsonObject, model: str, dialect: str = "openai", protocol: str = "chat", host: str = OPENAI, **settings: Any
) -> tuple[JsonObject, Receipt]:
    said: JsonObject = {"messages": MESSAGES} if protocol == "chat" else {"input": "hello"}
    request = {"model": "public", **said, **body}
    target = Target(model, dialect=dialect, host=host, **settings)
    ctx = Context("actual", Call("POST", "/", request), Receipt(), target, request)
    return dialects[dialect].called[protocol].write_request(request, ctx).body, ctx.receipt


# Finding a model


@pytest.mark.parametrize("name", ["prod", "my-endpoint", "", "Marco-o1", "gpt4all-falcon", "minigpt-4", "photo1", "*"])
def test_nothing_is_assumed_of_unknown_models(name: str) -> None:
    assert find_facts(name) is NO_FACTS


@pytest.mark.parametrize(
    ("name", "vendor", "family"),
    [
        ("gpt-5", "OpenAI", "GPT-5"),
        ("openai/gpt-5-mini-2025-08-07", "OpenAI", "GPT-5"),
        ("databricks-gpt-5-1", "OpenAI", "GPT-5.1"),
        ("system.ai.gpt-5-1", "OpenAI", "GPT-5.1"),
        ("gpt-5.1-chat", "OpenAI", "GPT-5.1 and 5.2 chat"),
        ("databricks-gpt-5-6-sol", "OpenAI", "GPT-5 and later"),
        ("azure/my-gpt-4o", "OpenAI", "GPT-4o"),
        ("gpt-oss:20b", "OpenAI", "gpt-oss"),
        ("us.anthropic.claude-opus-4-7-v1:0", "Anthropic", "Claude Opus 4.7 and 4.8"),
        ("anthropic/claude-4.7-opus", "Anthropic", "Claude Opus 4.7 and 4.8"),
        ("DeepSeek-R1-Distill-Llama-70B", "DeepSeek", "DeepSeek-R1"),
        ("llama3.1:8b", "Meta", "Llama 3.1"),
    ],
)
def test_a_model_is_found_by_the_words_of_its_name(name: str, vendor: str, family: str) -> None:
    facts = find_facts(name)
    assert (facts.vendor, facts.families[-1]) == (vendor, family)


def test_a_fact_may_hold_for_one_dialect_only() -> None:
    assert find_facts("databricks-gpt-5", "databricks").default_effort == "minimal"
    assert find_facts("databricks-gpt-5", "azure").default_effort == "medium"
    assert "responses" in find_facts("databricks-gpt-5", "databricks").protocols


def test_every_fact_is_listed_with_its_family_and_source() -> None:
    facts = {fact.name: fact for fact in find_facts("o3-mini").facts}
    assert facts["max_tokens_name"].value == "max_completion_tokens"
    assert facts["max_tokens_name"].family == "OpenAI's o-series"
    assert facts["max_tokens_name"].source.url.startswith("https://learn.microsoft.com/")


def test_a_plan_has_the_facts_of_its_dialect_and_of_each_model() -> None:
    plan = plan_target("lakehouse", dialects["databricks"], ["chat"], Target("*"))
    assert plan.target.facts is NO_FACTS
    named = plan.with_target(replace(plan.target, model="databricks-gpt-5"))
    assert named.target.facts.protocols == ("chat", "responses")
    assert named.canonical.facts is named.target.facts


# Sampling parameters that a model refuses


@pytest.mark.parametrize("name", ["temperature", "top_p", "frequency_penalty"])
@pytest.mark.parametrize(
    ("dialect", "protocol", "host"),
    [("openai", "chat", OPENAI), ("openai", "chat", "x.openai.azure.com"), ("azure", "chat", "x.test")],
)
def test_what_a_model_refuses_is_refused_with_the_source(dialect: str, protocol: str, host: str, name: str) -> None:
    with pytest.raises(Fault) as caught:
        send({name: 0.5}, "gpt-5", dialect, protocol, host)
    assert (caught.value.kind, caught.value.path) == ("unsupported_parameter", (name,))
    assert caught.value.message.startswith(f"{name} cannot be served: GPT-5 refuses it (")


def test_responses_are_held_to_the_same_facts() -> None:
    with pytest.raises(Fault):
        send({"temperature": 0.5}, "o3-mini", protocol="responses")
    body, _ = send({"temperature": 0.5}, "gpt-5.1", protocol="responses")
    assert body["temperature"] == 0.5
    with pytest.raises(Fault):
        send({"temperature": 0.5, "reasoning": {"effort": "high"}}, "gpt-5.1", protocol="responses")


@pytest.mark.parametrize("host", [OPENAI, ELSEWHERE])
def test_what_a_model_refuses_is_dropped_by_policy_everywhere(host: str) -> None:
    given = {"temperature": 0.5, "stop": ["x"], "logit_bias": {"1": 1}}
    body, receipt = send(given, "gpt-5", host=host, policy=Policy(unsupported="drop"))
    assert not body.keys() & given.keys()
    assert {change.before for change in receipt.losses} == {(name,) for name in given}
    assert f"GPT-5 refuses it ({REASONING})" in {change.reason for change in receipt.changes}


def test_a_service_that_may_ignore_it_gets_it() -> None:
    body, receipt = send({"temperature": 0.5}, "openai/gpt-5", host="openrouter.ai")
    assert body["temperature"] == 0.5
    assert not receipt.losses


@pytest.mark.parametrize(("name", "value"), [("temperature", 1), ("top_p", 1.0), ("logit_bias", {}), ("stop", None)])
def test_values_that_it_accepts_are_sent(name: str, value: Any) -> None:
    assert send({name: value}, "gpt-5")[0][name] == value


@pytest.mark.parametrize(
    ("model", "effort", "is_refused"),
    [
        ("gpt-5.1", None, False),
        ("gpt-5.1", "none", False),
        ("gpt-5.1", "high", True),
        ("gpt-5.1", "minimal", True),
        ("gpt-5", None, True),
        ("gpt-5-chat-latest", None, False),
        ("gpt-4o", None, False),
        ("my-deployment", "high", False),
    ],
)
def test_it_depends_on_the_effort(model: str, effort: str | None, is_refused: bool) -> None:
    body = {"temperature": 0.5} | ({} if effort is None else {"reasoning_effort": effort})
    if is_refused:
        with pytest.raises(Fault):
            send(body, model)
    else:
        assert send(body, model)[0]["temperature"] == 0.5


def test_a_stop_that_the_model_refuses_is_emulated() -> None:
    target = Target("gpt-5", host=OPENAI, emulates=frozenset({"stop"}))
    body, receipt = write_call("openai/chat", "openai/chat", {"messages": MESSAGES, "stop": ["x"]}, target)
    assert "stop" not in body
    assert [(change.action, change.before) for change in receipt.changes] == [("emulated", ("stop",))]


def test_what_a_target_takes_is_sent() -> None:
    assert send({"temperature": 0.5}, "gpt-5", takes=frozenset({"temperature"}))[0]["temperature"] == 0.5


def test_models_that_do_not_reason_refuse_an_effort() -> None:
    with pytest.raises(Fault):
        send({"reasoning_effort": "low"}, "gpt-4o")
    with pytest.raises(Fault):
        send({"reasoning": {"effort": "low"}}, "gpt-4.1", protocol="responses")


def test_azure_gets_the_effort_of_models_that_are_documented_to_have_levels() -> None:
    target = Target("gpt-5", dialect="azure")
    request = {"model": "public", "messages": MESSAGES, "reasoning_effort": "low"}
    ctx = Context("actual", Call("POST", "/", request), Receipt(), target, request)
    call = dialects["azure"].called["chat"].write_request(request, ctx)
    assert (call.body["reasoning_effort"], call.headers["extra-parameters"]) == ("low", "pass-through")
    with pytest.raises(Fault, match="reasoning_effort"):
        send({"reasoning_effort": "low"}, "my-deployment", "azure")


def test_azure_s_mistral_models_get_no_seed() -> None:
    with pytest.raises(Fault):
        send({"seed": 1}, "Mistral-Large-2411", "azure")
    assert send({"seed": 1}, "gpt-4o", "azure")[0]["seed"] == 1
    assert send({"seed": 1}, "Mistral-Large-2411", host="api.mistral.ai")[0]["seed"] == 1


def test_gemini_s_own_address_gets_no_penalties() -> None:
    host = "generativelanguage.googleapis.com"
    body, receipt = send({"frequency_penalty": 0, "presence_penalty": 0}, "gemini-2.5-flash", host=host)
    assert not body.keys() & {"frequency_penalty", "presence_penalty"}
    assert {change.weight for change in receipt.changes if change.action == "dropped"} == {"form"}
    with pytest.raises(Fault):
        send({"seed": 1}, "gemini-2.5-flash", host=host)
    given, lenient = {"seed": 1, "frequency_penalty": 0.5}, Policy(unsupported="drop")
    body, _ = send(given, "google/gemini-2.5-flash", host=ELSEWHERE, policy=lenient)
    assert given.items() <= body.items()


def test_mistral_knows_the_older_name_of_the_limit() -> None:
    body, _ = send({"max_completion_tokens": 5, "store": False}, "mistral-small-latest", host="api.mistral.ai")
    assert body.keys() - {"messages"} == {"model", "max_tokens"}


def test_the_oldest_embedder_refuses_dimensions() -> None:
    with pytest.raises(Fault):
        send({"dimensions": 8}, "text-embedding-ada-002", protocol="embeddings")
    assert send({"dimensions": 8}, "text-embedding-3-small", protocol="embeddings")[0]["dimensions"] == 8


# Reasoning effort


@pytest.mark.parametrize(
    ("model", "given", "sent"),
    [
        ("gpt-5", "xhigh", "high"),
        ("gpt-5", "minimal", "minimal"),
        ("gpt-5.1", "minimal", "low"),
        ("o3", "minimal", "low"),
        ("gpt-5-pro", "low", "high"),
        ("gpt-5", "none", None),
        ("my-deployment", "xhigh", "xhigh"),
    ],
)
@pytest.mark.parametrize("protocol", ["chat", "responses"])
def test_the_effort_moves_to_the_nearest_level(protocol: str, model: str, given: str, sent: str | None) -> None:
    body, receipt = send(
        {"reasoning_effort": given} if protocol == "chat" else {"reasoning": {"effort": given}},
        model,
        "openai",
        protocol,
    )
    found = body.get("reasoning_effort") if protocol == "chat" else body.get("reasoning", {}).get("effort")
    assert found == sent
    assert [change.weight for change in receipt.losses] == ([] if given == sent else ["loss"])


def test_an_effort_that_a_target_takes_is_sent() -> None:
    body, _ = send({"reasoning_effort": "xhigh"}, "gpt-5", takes=frozenset({"reasoning_effort"}))
    assert body["reasoning_effort"] == "xhigh"


# The limit on tokens


def test_more_tokens_than_the_model_generates_are_out_of_range() -> None:
    with pytest.raises(Fault) as caught:
        send({"max_tokens": 20_000}, "gpt-4o")
    assert caught.value.code == "out_of_range"
    assert "16384" in caught.value.message
    body, receipt = send({"max_tokens": 20_000}, "gpt-4o", host=ELSEWHERE, policy=Policy(out_of_range="clamp"))
    assert body["max_tokens"] == 16_384
    assert [change.action for change in receipt.losses] == ["clamped"]


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("gpt-4o", {"host": ELSEWHERE}),
        ("gpt-4o", {"takes": frozenset({"max_tokens"})}),
        ("gpt-4o", {"limits": {"max_tokens": 30_000}}),
        ("prod", {}),
    ],
)
def test_a_limit_that_may_not_hold_is_not_enforced(model: str, settings: JsonObject) -> None:
    assert send({"max_tokens": 20_000}, model, **settings)[0]["max_tokens"] == 20_000


def test_responses_have_the_same_limit() -> None:
    with pytest.raises(Fault):
        send({"max_output_tokens": 200_000}, "gpt-5", protocol="responses")


# Databricks


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("databricks-gpt-5", "/serving-endpoints/responses"),
        ("my-endpoint", "/serving-endpoints/responses"),
        ("databricks-gpt-oss-120b", "/serving-endpoints/open-responses"),
        ("databricks-claude-sonnet-4-5", "/serving-endpoints/open-responses"),
    ],
)
def test_openai_s_models_have_openai_s_responses(model: str, path: str) -> None:
    request = {"model": "public", "input": "hello"}
    ctx = Context("actual", Call("POST", "/", request), Receipt(), Target(model, dialect="databricks"), request)
    assert dialects["databricks"].called["responses"].write_request(request, ctx).path == path


@pytest.mark.parametrize(("model", "is_kept"), [("databricks-gpt-5", True), ("databricks-claude-sonnet-4-5", False)])
def test_strict_tools_are_for_models_that_are_known_to_take_them(model: str, is_kept: bool) -> None:
    tool = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {}, "strict": True}}
    body, _ = send({"tools": [tool]}, model, "databricks")
    assert ("strict" in body["tools"][0]["function"]) == is_kept
