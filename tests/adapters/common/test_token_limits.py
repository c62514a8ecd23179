"""The limit on tokens reaches each provider under the name that it knows; what a target lacks or takes is obeyed."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, JsonObject, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import Pipeline, plan_target
from dragoman.adapters.routes import Route
from dragoman.adapters.translate.bridge import BRIDGES
from tests.dialects import DIALECTS

OLD, NEW = "max_tokens", "max_completion_tokens"
MESSAGES = [{"role": "user", "content": "hello"}]
VERSION = {"anthropic-version": "2023-06-01"}
GIVEN = pytest.mark.parametrize("given", [OLD, NEW])


def make_context(target: Target, body: JsonObject) -> Context:
    return Context(target.profile, Call("POST", "/", body), Receipt(), target, body)


def send(dialect: str, body: JsonObject, model: str = "m", **settings: Any) -> tuple[Call, Receipt]:
    request = {"model": "public", "messages": MESSAGES, **body}
    ctx = make_context(Target(model, **settings), request)
    return dialects[dialect].called["chat"].write_request(request, ctx), ctx.receipt


def send_response(dialect: str, body: JsonObject, model: str = "m", **settings: Any) -> tuple[JsonObject, Receipt]:
    request = {"model": "public", "input": "hello", **body}
    ctx = make_context(Target(model, **settings), request)
    chat = BRIDGES["responses"][0].request(ctx._replace(request=request)).request
    return dialects[dialect].called["chat"].write_request(chat, ctx._replace(request=chat)).body, ctx.receipt


def limits(body: JsonObject) -> JsonObject:
    return {name: body[name] for name in (OLD, NEW) if name in body}


@GIVEN
@pytest.mark.parametrize("dialect", ["azure", "openai"])
@pytest.mark.parametrize(
    "model", ["gpt-5", "openai/gpt-5-nano", "gpt-5.1-chat", "o1", "o3-mini", "openai/o4-mini", "prod-gpt-5"]
)
def test_reasoning_models_of_openai_get_the_newer_name(dialect: str, model: str, given: str) -> None:
    assert limits(send(dialect, {given: 50}, model)[0].body) == {NEW: 50}


@GIVEN
@pytest.mark.parametrize("model", ["gpt-4o", "Marco-o1", "gpt-oss-120b", "Mistral-Large-3", "llama-3", "o", "phi-4"])
def test_other_models_of_azure_get_the_older_name(model: str, given: str) -> None:
    call, _ = send("azure", {given: 50}, model)
    assert limits(call.body) == {OLD: 50}
    assert "extra-parameters" not in call.headers


@GIVEN
@pytest.mark.parametrize("dialect", ["databricks", "mindie"])
def test_services_that_refuse_unknown_names_get_the_older_name(dialect: str, given: str) -> None:
    assert limits(send(dialect, {given: 50}, "databricks-gpt-5")[0].body) == {OLD: 50}


@GIVEN
def test_servers_of_the_dialect_openai_get_the_clients_name(given: str) -> None:
    assert limits(send("openai", {given: 50})[0].body) == {given: 50}


def test_azure_gets_the_newer_name_as_an_extra_parameter() -> None:
    call, receipt = send("azure", {OLD: 50}, "gpt-5")
    assert call.headers["extra-parameters"] == "pass-through"
    assert [(change.action, change.weight) for change in receipt.changes if OLD in change.before] == [
        ("renamed", "form")
    ]
    assert receipt.unmap((NEW,)) == (OLD,)


@pytest.mark.parametrize("policy", ["error", "drop"])
def test_no_policy_on_extra_parameters_loses_the_limit(policy: Any) -> None:
    call, _ = send("azure", {NEW: 50}, "gpt-5", policy=Policy(extra_parameters=policy))
    assert limits(call.body) == {NEW: 50}


def test_a_null_limit_is_not_sent_under_another_name() -> None:
    call, receipt = send("azure", {OLD: None}, "gpt-5")
    assert limits(call.body) == {}
    assert "extra-parameters" not in call.headers
    assert [(change.before, change.weight) for change in receipt.changes if change.action == "dropped"] == [
        ((OLD,), "form")
    ]


@GIVEN
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", [OLD, NEW])
def test_the_configured_name_precedes_all_others(dialect: str, name: Any, given: str) -> None:
    assert limits(send(dialect, {given: 50}, "gpt-5", max_tokens_name=name)[0].body) == {name: 50}


def test_responses_clients_keep_their_limit_over_servers_that_know_the_older_name_only() -> None:
    body, receipt = send_response("openai", {"max_output_tokens": 16}, "tiny.gguf")
    assert limits(body) == {OLD: 16}
    assert receipt.unmap((OLD,)) == ("max_output_tokens",)


@pytest.mark.parametrize(
    ("model", "address", "name"), [("gpt-5", None, NEW), ("o3", None, NEW), ("prod", "azure-openai", NEW)]
)
def test_responses_clients_keep_their_limit_over_openai(model: str, address: str | None, name: str) -> None:
    body, _ = send_response("openai", {"max_output_tokens": 16}, model, address=address)
    assert limits(body) == {name: 16}


def test_completions_know_one_name_only() -> None:
    body = {"model": "public", "prompt": "x", OLD: 5}
    ctx = make_context(Target("gpt-5", max_tokens_name="max_completion_tokens"), body)
    assert limits(dialects["openai"].called["completions"].write_request(body, ctx).body) == {OLD: 5}


# What a target lacks


@GIVEN
@pytest.mark.parametrize("dialect", ["azure", "databricks", "mindie"])
def test_a_lack_of_the_name_that_is_sent_is_obeyed(dialect: str, given: str) -> None:
    with pytest.raises(Fault) as caught:
        send(dialect, {given: 50}, lacks=frozenset({OLD}))
    assert caught.value.kind == "unsupported_parameter"
    call, receipt = send(dialect, {given: 50}, lacks=frozenset({OLD}), policy=Policy(unsupported="drop"))
    assert limits(call.body) == {}
    assert [change.weight for change in receipt.changes if change.action == "dropped"] == ["loss"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_lack_of_the_clients_name_is_obeyed(dialect: str) -> None:
    with pytest.raises(Fault) as caught:
        send(dialect, {NEW: 50}, lacks=frozenset({NEW}))
    assert caught.value.path == (NEW,)


def test_a_lack_of_what_a_conversion_writes_is_obeyed() -> None:
    lacks = frozenset({"chat_template_kwargs"})
    with pytest.raises(Fault) as caught:
        send("mindie", {"reasoning_effort": "high"}, lacks=lacks)
    assert caught.value.kind == "unsupported_parameter"


@pytest.mark.parametrize("name", ["max_output_tokens", "max_completion_tokens", "max_tokens"])
def test_a_lack_is_obeyed_before_and_after_a_translation(name: str) -> None:
    body, receipt = send_response(
        "azure", {"max_output_tokens": 16}, lacks=frozenset({name}), policy=Policy(unsupported="drop")
    )
    assert limits(body) == {}
    assert [change.weight for change in receipt.changes if change.action == "dropped"] == ["loss"]


def test_tools_that_a_target_lacks_are_not_translated() -> None:
    tool = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": False}
    body, _ = send_response("openai", {"tools": [tool]}, lacks=frozenset({"tools"}), policy=Policy(unsupported="drop"))
    assert "tools" not in body


# What a target takes


def test_azure_gets_what_a_deployment_takes_as_an_extra_parameter() -> None:
    call, receipt = send("azure", {"reasoning_effort": "low", "n": 2}, takes=frozenset({"reasoning_effort", "n"}))
    assert call.body["reasoning_effort"] == "low"
    assert call.body["n"] == 2
    assert call.headers["extra-parameters"] == "pass-through"
    assert not receipt.changes


@pytest.mark.parametrize("policy", ["error", "drop"])
@pytest.mark.parametrize("dialect", ["azure", "databricks", "mindie"])
def test_what_a_target_takes_is_sent_under_every_policy(dialect: str, policy: Any) -> None:
    call, _ = send(
        dialect, {"parallel_tool_calls": False}, takes=frozenset({"parallel_tool_calls"}), policy=Policy(policy)
    )
    assert call.body["parallel_tool_calls"] is False


def test_usage_is_asked_for_where_a_deployment_takes_stream_options() -> None:
    body, _ = send_response("azure", {"stream": True}, takes=frozenset({"stream_options"}))
    assert body["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("dialect", ["databricks", "mindie"])
def test_stream_options_reach_a_target_that_takes_them(dialect: str) -> None:
    body = {"stream": True, "stream_options": {"include_usage": True}}
    assert send(dialect, body, takes=frozenset({"stream_options"}))[0].body["stream_options"] == {"include_usage": True}
    assert "stream_options" not in send(dialect, body)[0].body


def test_a_pay_per_token_endpoint_may_take_several_choices() -> None:
    assert send("databricks", {"n": 2}, takes=frozenset({"n"}))[0].body["n"] == 2
    with pytest.raises(Fault):
        send("databricks", {"n": 2})


def test_an_effort_that_a_target_takes_is_neither_clamped_nor_converted() -> None:
    takes = frozenset({"reasoning_effort"})
    assert (
        send("databricks", {"reasoning_effort": "none"}, profile="documented", takes=takes)[0].body["reasoning_effort"]
        == "none"
    )
    assert "chat_template_kwargs" not in send("mindie", {"reasoning_effort": "high"}, takes=takes)[0].body


def test_a_limit_applies_to_a_parameter_that_is_taken() -> None:
    with pytest.raises(Fault) as caught:
        send("azure", {OLD: 50}, "gpt-5", limits={OLD: 40, NEW: 40})
    assert caught.value.code == "out_of_range"


# Parameters that providers of chat add to OpenAI's

SAMPLING = {"top_k": 40, "min_p": 0.1, "repetition_penalty": 1.1}


@pytest.mark.parametrize(
    ("dialect", "kept"),
    [("openai", SAMPLING), ("databricks", {"top_k": 40}), ("mindie", {"top_k": 40, "repetition_penalty": 1.1})],
)
def test_sampling_parameters_of_responses_clients_reach_providers_of_chat(dialect: str, kept: JsonObject) -> None:
    body, receipt = send_response(dialect, SAMPLING, policy=Policy(unsupported="drop"))
    assert {name: body[name] for name in SAMPLING if name in body} == kept
    assert {change.before for change in receipt.changes if change.action == "dropped"} == {
        (name,) for name in SAMPLING.keys() - kept
    }


# The least limit of Responses

SHORT: dict[str, tuple[str, JsonObject]] = {
    "a probe of Claude Code": ("anthropic/messages", {"max_tokens": 1, "messages": MESSAGES}),
    "the older name": ("openai/chat", {OLD: 15, "messages": MESSAGES}),
    "the newer name": ("openai/chat", {NEW: 1, "messages": MESSAGES}),
    "another dialect of chat": ("azure/chat", {OLD: 1, "messages": MESSAGES}),
}


def prepare_response(client: str, body: JsonObject, dialect: str, **target: Any) -> tuple[JsonObject, Receipt]:
    name, protocol = client.split("/")
    route = Route(dialects[name], protocol, dialects[name].served[protocol], "actual")
    pipeline = Pipeline(route, Call("POST", "/", {}, query={"api-version": "2025-05-01"}, headers=VERSION))
    pipeline.receive(orjson.dumps({"model": "m", **body}))
    plan = plan_target("p", dialects[dialect], ["responses"], Target("m", **target))
    attempt = pipeline.prepare(plan)
    return attempt.calls[0].call.body, attempt.receipt


@pytest.mark.parametrize("policy", ["error", "clamp", "drop"])
@pytest.mark.parametrize("dialect", ["openai", "databricks"])
@pytest.mark.parametrize("said", SHORT)
def test_a_limit_below_the_least_of_responses_is_raised(said: str, dialect: str, policy: Any) -> None:
    client, body = SHORT[said]
    sent, receipt = prepare_response(client, body, dialect, policy=Policy(out_of_range=policy))
    assert sent["max_output_tokens"] == 16
    given = {name: body[name] for name in (OLD, NEW) if name in body}
    assert [(change.action, change.before) for change in receipt.losses] == [("clamped", (*given,))]


def test_a_limit_that_the_target_accepts_is_not_raised() -> None:
    client, body = SHORT["the older name"]
    for given, target in (
        ({OLD: 16}, {}),
        ({OLD: 15}, {"takes": frozenset({"max_output_tokens"})}),
        ({OLD: 1}, {"profile": "documented"}),
    ):
        dialect = "databricks" if "profile" in target else "openai"
        sent, receipt = prepare_response(client, {**body, **given}, dialect, **target)
        assert sent["max_output_tokens"] == given[OLD]
        assert not receipt.losses


def test_a_limit_of_none_at_all_is_refused_by_its_own_name() -> None:
    with pytest.raises(Fault) as caught:
        prepare_response("anthropic/messages", {"max_tokens": 0, "messages": MESSAGES}, "openai")
    assert caught.value.param == OLD
