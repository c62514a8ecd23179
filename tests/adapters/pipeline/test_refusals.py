"""A request that cannot be served is answered once, with every reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, JsonObject, Policy, Reply, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import MOST_REASONS, Fault
from dragoman.adapters.pipeline import Attempt, Pipeline, plan_target
from dragoman.adapters.pipeline.refusals import find_refusals
from dragoman.adapters.routes import Route
from dragoman.adapters.validation import Validator, Violation, load_validator

AUDIO = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
FILE = {"type": "file", "file": {"file_id": "f"}}
TOOLS = [
    {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}},
    {"type": "custom", "custom": {"name": "c"}},
]
CHAT: JsonObject = {
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "x"}, AUDIO]},
        {"role": "user", "content": [{"type": "text", "text": "x"}, FILE]},
    ],
    "seed": 1,
    "logprobs": True,
    "top_logprobs": 2,
    "n": 3,
    "stop": ["a"],
    "parallel_tool_calls": False,
    "logit_bias": {"1": 2},
    "presence_penalty": 1,
    "temperature": 0,
    "top_p": 0,
    "reasoning_effort": "low",
    "tools": TOOLS,
    "tool_choice": "required",
    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}},
    "modalities": ["text", "audio"],
    "audio": {"voice": "alloy", "format": "wav"},
    "metadata": {"a": "b"},
    "service_tier": "flex",
    "user": "u",
    "web_search_options": {},
    "x_unknown": 1,
}
RESPONSES: JsonObject = {
    "input": "hi",
    "instructions": "i",
    "temperature": 0,
    "top_p": 0,
    "top_logprobs": 3,
    "include": ["message.output_text.logprobs"],
    "tools": [{"type": "web_search"}, {"type": "function", "name": "f", "parameters": {}}],
    "tool_choice": {"type": "web_search"},
    "max_tool_calls": 3,
    "truncation": "auto",
    "parallel_tool_calls": False,
    "reasoning": {"effort": "low"},
    "text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}},
    "x_unknown": 1,
}
REQUIRED = {"chat": ("messages",), "responses": ("input",)}
NEEDS = {"tools": "tool_choice", "logprobs": "top_logprobs"}
STRICT = Policy(extra_parameters="error")
CALLED = [
    (name, protocol, profile)
    for name, dialect in dialects.items()
    for protocol in dialect.called
    for profile in dialect.profiles
    if protocol in REQUIRED
]


def _prepare(client: str, provider: str, body: JsonObject, target: Target) -> tuple[Pipeline, Attempt]:
    dialect, protocol = (dialects[client.split("/")[0]], client.split("/")[1])
    route = Route(dialect, protocol, dialect.served[protocol], "actual")
    pipeline = Pipeline(route, Call("POST", "/", {}, {"api-version": "2024-05-01-preview"}), clock=lambda: 1.0)
    pipeline.receive(orjson.dumps({"model": "m", **body}))
    name, called = provider.split("/")
    return pipeline, pipeline.prepare(plan_target("p", dialects[name], [called], target))


def _refuse(client: str, provider: str, body: JsonObject, **target: Any) -> Fault:
    with pytest.raises(Fault) as caught:
        _prepare(client, provider, body, Target("m", policy=STRICT, **target))
    return caught.value


def _params(fault: Fault) -> list[str | None]:
    return [one.param for one in fault.reasons]


def test_a_request_with_usual_fields_gets_every_reason_of_a_databricks_provider() -> None:
    fault = _refuse("openai/chat", "databricks/chat", CHAT)
    assert _params(fault) == [
        "n",
        "seed",
        "parallel_tool_calls",
        "logit_bias",
        "presence_penalty",
        "modalities",
        "audio",
        "service_tier",
        "web_search_options",
        "x_unknown",
        "messages[1].content[1].type",
        "messages[2].content[1].type",
        "top_p",
        "tools[1].type",
    ]
    assert {one.kind for one in fault.reasons} == {"unsupported_parameter", "extra_parameter"}


def test_a_parameter_that_needs_a_refused_one_is_a_reason_of_its_own() -> None:
    fault = _refuse("openai/chat", "azure/chat", {**CHAT, "seed": None})
    assert _params(fault)[:2] == ["logprobs", "top_logprobs"]


def test_paths_are_the_clients_after_a_message_before_them_is_removed() -> None:
    fault = _refuse("openai/chat", "mindie/chat", CHAT, profile="documented")
    assert {"messages[1].content", "messages[2].content"} <= {*_params(fault)}


def test_reasons_have_the_clients_paths_through_a_bridge() -> None:
    fault = _refuse("openai/responses", "azure/chat", RESPONSES)
    assert {"tool_choice", "reasoning.effort", "top_logprobs", "x_unknown"} <= {*_params(fault)}


@pytest.mark.parametrize(("client", "full"), [("openai/chat", CHAT), ("openai/responses", RESPONSES)])
@given(called=st.sampled_from(CALLED), data=st.data())
def test_a_request_without_everything_that_is_named_is_served(
    client: str, full: JsonObject, called: tuple[str, str, str], data: st.DataObject
) -> None:
    name, protocol, profile = called
    required = REQUIRED[client.split("/")[1]]
    chosen = data.draw(st.sets(st.sampled_from(sorted(full.keys() - set(required)))))
    chosen |= {"tools"} if "tool_choice" in chosen else set()
    chosen |= {"logprobs"} if "top_logprobs" in chosen and "messages" in full else set()
    body = {key: value for key, value in full.items() if key in chosen or key in required}
    target = Target("m", profile=profile, policy=STRICT)
    try:
        _prepare(client, f"{name}/{protocol}", body, target)
    except Fault as fault:
        assert all(one.path and one.message for one in fault.reasons)
        assert len({one.path for one in fault.reasons}) == len(fault.reasons)
        named = {one.path[0] for one in fault.reasons}
        if "messages" in named:
            named -= {"messages"}
            body["messages"] = [{"role": "user", "content": "x"}]
        named |= {NEEDS[name] for name in named & NEEDS.keys()}
        rest = {key: value for key, value in body.items() if key not in named}
        _prepare(client, f"{name}/{protocol}", rest, target)


def test_a_refusal_has_at_most_32_reasons() -> None:
    fault = _refuse("openai/chat", "databricks/chat", {**CHAT, **{f"x_{i}": i for i in range(100)}})
    assert len(fault.reasons) == MOST_REASONS


def test_a_value_that_the_protocol_requires_ends_the_search() -> None:
    body = {"messages": [{"role": "user", "content": [AUDIO]}], "n": 2}
    fault = _refuse("openai/chat", "openai/responses", body)
    assert _params(fault) == ["messages[0].content[0]"]


def _create_context(request: JsonObject) -> Context:
    return Context("actual", Call("POST", "/", request), Receipt(), request=request)


class _Target:
    """A target that refuses names, unless they are emulated."""

    def __init__(self, *names: str, can_emulate: str = "") -> None:
        self.names = {*names}
        self.can_emulate = can_emulate
        self.written: list[JsonObject] = []

    def write(self, ctx: Context) -> None:
        self.written.append(ctx.request)
        for name in sorted(self.names):
            if name in ctx.request:
                raise Fault("unsupported_parameter", f"{name} cannot be served", (name,), place=(name,))

    def emulate(self, fault: Fault) -> bool:
        if fault.place[:1] != (self.can_emulate,):
            return False
        self.names.remove(self.can_emulate)
        return True


def _find(request: JsonObject, target: _Target) -> list[str | None]:
    with pytest.raises(Fault) as caught:
        target.write(_create_context(request))
    found = find_refusals(caught.value, _create_context(request), "chat", target.write, target.emulate)
    return [fault.param for fault in found]


def _count_writes(request: JsonObject, names: list[str]) -> int:
    _find(request, target := _Target(*names))
    return len(target.written)


def test_a_large_request_is_written_fewer_times() -> None:
    names = [f"x{i}" for i in range(20)]
    small = {"model": "m", "messages": [{"role": "user", "content": "x"}], **dict.fromkeys(names, 1)}
    large = {**small, "messages": [{"role": "user", "content": "x"}] * 4000}
    assert _count_writes(small, names) == 21
    assert _count_writes(large, names) == 3
    larger = {**small, "messages": [{"role": "user", "content": "x"}] * 40_000}
    assert _count_writes(larger, names) == 1


def test_a_large_request_is_not_searched_for_all_its_violations(monkeypatch: pytest.MonkeyPatch) -> None:
    violations, sizes = Validator.violations, []

    def watch(self: Validator, body: JsonObject) -> Iterator[Violation]:
        sizes.append(len(orjson.dumps(body)))
        return violations(self, body)

    monkeypatch.setattr(Validator, "violations", watch)
    wrong = [{"role": "user", "content": "x", "name": 1}] * 2_000
    assert _find({"model": "m", "x0": 1, "x1": 1, "messages": wrong}, _Target("x0", "x1")) == ["x0", "x1"]
    assert sizes
    assert max(sizes) < 2_000


def test_what_can_be_emulated_is_not_refused() -> None:
    request = {"model": "m", "messages": [{"role": "user", "content": "x"}], "n": 2, "seed": 1}
    assert _find(request, _Target("n", "seed", can_emulate="n")) == ["seed"]
    assert _find(request, target := _Target("n", can_emulate="n")) == []
    assert target.written[-1] is request, "the whole request is written, and what writes it emulates"


def test_a_fault_that_is_no_refusal_is_the_only_reason_and_nothing_is_written_again() -> None:
    fault = Fault("invalid_request", "No", ("n",), place=("n",))
    client, target = _create_context({"model": "m", "messages": [{"role": "user", "content": "x"}], "n": 2}), _Target()
    assert find_refusals(fault, client, "chat", target.write, target.emulate) == [fault]
    assert target.written == []


def test_the_request_itself_is_never_altered() -> None:
    before = orjson.dumps({"model": "m", **CHAT})
    client = Route(dialects["openai"], "chat", dialects["openai"].served["chat"], "actual")
    pipeline = Pipeline(client, Call("POST", "/", {}))
    pipeline.receive(before)
    with pytest.raises(Fault):
        pipeline.prepare(plan_target("p", dialects["mindie"], ["chat"], Target("m", policy=STRICT)))
    assert orjson.dumps(pipeline.request) == before


# The client's own schema


@pytest.mark.parametrize("client", ["openai", "databricks", "azure", "mindie"])
def test_every_violation_of_the_clients_own_schema_is_named(client: str) -> None:
    body = {"messages": [{"role": "wizard", "content": "x"}, {"role": "user", "content": 5}], "top_p": "x", "stop": 5}
    with pytest.raises(Fault) as caught:
        _prepare(f"{client}/chat", "openai/chat", body, Target("m"))
    assert {"top_p", "messages[0].role"} < {*_params(caught.value)}
    assert caught.value.others


def test_a_large_body_gets_the_violations_of_the_first_items_only() -> None:
    body = {"model": "m", "messages": [{}] * 9_999, "n": "x"}
    with pytest.raises(Fault) as caught:
        load_validator("openai/chat.request").check(body)
    assert [one.param for one in caught.value.reasons] == [*(f"messages[{i}].role" for i in range(16)), "n"]
    few = {**body, "messages": [{}] * 100}
    with pytest.raises(Fault) as caught_few:
        load_validator("openai/chat.request").check(few)
    assert caught_few.value.path == caught.value.path
    assert len(caught_few.value.reasons) == MOST_REASONS


# What clients see


def _render(client: str, body: JsonObject) -> Reply:
    dialect = dialects[client]
    pipeline = Pipeline(
        Route(dialect, "chat", dialect.served["chat"], "actual"),
        Call("POST", "/", {}, {"api-version": "2024-05-01-preview"}),
    )
    with pytest.raises(Fault) as caught:
        pipeline.receive(orjson.dumps({"model": "m", **body}))
        pipeline.prepare(plan_target("p", dialects["mindie"], ["chat"], Target("m", profile="documented")))
    reply = pipeline.render_fault(caught.value)
    load_validator(f"{client}/chat.error", "actual").check(reply.body)
    return reply


REFUSED = {"messages": [{"role": "user", "content": "x"}], "stop": ["a"], "response_format": {"type": "json_object"}}


def test_openai_clients_find_every_reason_in_the_details() -> None:
    error = _render("openai", REFUSED).body["error"]
    assert error["param"] == "stop"
    assert error["message"].endswith(" (and 1 more reason: response_format)")
    assert [(one["param"], one["code"]) for one in error["details"]] == [
        ("stop", "unsupported_parameter"),
        ("response_format", "unsupported_parameter"),
    ]
    assert error["details"][1]["message"].startswith("response_format cannot be served: ")


def test_databricks_clients_find_every_reason_as_field_violations() -> None:
    body = _render("databricks", REFUSED).body
    assert body["message"].endswith(" (and 1 more reason: response_format)")
    (detail,) = body["details"]
    assert detail["@type"] == "type.googleapis.com/google.rpc.BadRequest"
    assert [one["field"] for one in detail["field_violations"]] == ["stop", "response_format"]
    assert detail["field_violations"][1]["description"].startswith("response_format cannot be served: ")


def test_azure_clients_find_every_reason_in_the_details() -> None:
    body = _render("azure", REFUSED).body
    assert body["detail"]["loc"] == ["body", "stop"]
    assert [one["loc"] for one in body["error"]["details"]] == [["body", "stop"], ["body", "response_format"]]
    assert body["error"]["details"][1]["input"] == {"type": "json_object"}


def test_mindie_clients_read_every_sentence() -> None:
    body = _render("mindie", REFUSED).body
    assert body.keys() == {"error", "error_type"}
    assert " (and 1 more reason: response_format cannot be served: " in body["error"]


def test_one_reason_leaves_the_error_as_it_was() -> None:
    body = _render("databricks", {"messages": [{"role": "user", "content": "x"}], "stop": ["a"]}).body
    assert body.keys() == {"error_code", "message"}
    assert "more reason" not in body["message"]
