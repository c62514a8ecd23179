"""The verbs of completions: requests and whole replies."""

from __future__ import annotations

import copy

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Reply
from dragoman.adapters.faults import Fault
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.adapters.conftest import MakeContext
from tests.dialects import served

USAGE = {"prompt_tokens": 2, "completion_tokens": 4, "total_tokens": 6}


def request(**fields: JsonValue) -> JsonObject:
    return {"model": "public", "prompt": "hello", **fields}


def write(dialect: str, ctx: Context) -> Call:
    return dialects[dialect].called["completions"].write_request(ctx.request, ctx)


def read(dialect: str, ctx: Context, body: JsonValue) -> JsonObject:
    reply = Reply(200, body, {"content-type": "application/json"}, orjson.dumps(body))
    return dialects[dialect].called["completions"].read_reply(reply, ctx)


def choice(index: int, text: str = "hi", finish: JsonValue = "stop", **more: JsonValue) -> JsonObject:
    return {"index": index, "text": text, "finish_reason": finish, **more}


def reply(*choices: JsonObject, **top: JsonValue) -> JsonObject:
    head = {"id": "cmpl-1", "object": "text_completion", "created": 1_700_000_000, "usage": USAGE}
    return {**head, "choices": list(choices), **top}


# Called: requests


def test_openai_gets_its_own_form(context: MakeContext) -> None:
    asked = request(prompt=[[1, 2], [3]], n=2, best_of=3, echo=True, suffix="s", logprobs=0, stop=["a"], seed=1)
    ctx = context(request=asked, model="gpt-3.5-turbo-instruct")
    call = write("openai", ctx)
    assert (call.method, call.path) == ("POST", "/completions")
    assert call.body == {**asked, "model": "gpt-3.5-turbo-instruct"}
    assert ctx.receipt.header() is None


def test_openai_compatible_servers_get_the_extensions_that_many_take(context: MakeContext) -> None:
    body = write("openai", context(request=request(top_k=40, min_p=0.1, stop_token_ids=[2]))).body
    assert (body["top_k"], body["min_p"], body["stop_token_ids"]) == (40, 0.1, [2])


@pytest.mark.parametrize(("name", "neutral", "meant"), [
    ("error_behavior", "error", "truncate"), ("use_raw_prompt", False, True),
])  # fmt: skip
def test_what_only_databricks_takes_is_not_sent_elsewhere(
    name: str, neutral: JsonValue, meant: JsonValue, context: MakeContext
) -> None:
    ctx = context(request=request(**{name: neutral}))
    assert name not in write("openai", ctx).body
    assert ctx.receipt.header() is None
    with pytest.raises(Fault) as caught:
        write("openai", context(request=request(**{name: meant})))
    assert (caught.value.kind, caught.value.param) == ("unsupported_parameter", name)
    ctx = context(request=request(**{name: meant}), policy={"unsupported": "drop"})
    assert name not in write("openai", ctx).body
    assert f'path="{name}"' in (ctx.receipt.header() or "")


def test_databricks_gets_the_endpoint_in_the_address_and_says_whether_to_stream(context: MakeContext) -> None:
    ctx = context(request=request(prompt=["a", "b"], max_tokens=5, user="u", best_of=1), model="llama/x")
    call = write("databricks", ctx)
    assert call.path == "/serving-endpoints/llama%2Fx/invocations"
    assert call.body == {"prompt": ["a", "b"], "max_tokens": 5, "stream": False}
    assert [change.before for change in ctx.receipt.losses] == [("user",)]


@pytest.mark.parametrize(("field", "value"), [
    ("logprobs", 0), ("best_of", 2), ("seed", 1), ("presence_penalty", 0.5), ("logit_bias", {"1": 1}), ("min_p", 0.5),
])  # fmt: skip
def test_databricks_refuses_what_it_lacks(field: str, value: JsonValue, context: MakeContext) -> None:
    with pytest.raises(Fault) as caught:
        write("databricks", context(request=request(**{field: value})))
    assert (caught.value.kind, caught.value.param) == ("unsupported_parameter", field)


def test_databricks_takes_no_tokens(context: MakeContext) -> None:
    with pytest.raises(Fault) as caught:
        write("databricks", context(request=request(prompt=[[1, 2]])))
    assert caught.value.param == "prompt[0]"
    with pytest.raises(Fault) as caught:
        write("databricks", context(request=request(prompt=None)))
    assert caught.value.param == "prompt"


@pytest.mark.parametrize(("kind", "field", "value", "taken"), [
    (None, "n", 2, False),
    ("pay-per-token", "n", 2, False),
    ("provisioned-throughput", "n", 2, True),
    (None, "error_behavior", "truncate", True),
    ("pay-per-token", "error_behavior", "truncate", True),
    ("provisioned-throughput", "error_behavior", "truncate", False),
])  # fmt: skip
def test_the_kind_of_endpoint(
    kind: str | None, field: str, value: JsonValue, taken: bool, context: MakeContext
) -> None:
    ctx = context(request=request(**{field: value}), kind=kind)
    if taken:
        assert write("databricks", ctx).body[field] == value
        return
    with pytest.raises(Fault) as caught:
        write("databricks", ctx)
    assert caught.value.param == field


def test_several_choices_of_a_prompt_are_not_streamed_by_databricks(context: MakeContext) -> None:
    ctx = context(request=request(n=2, stream=True, best_of=2), kind="provisioned-throughput")
    assert write("databricks", ctx).body == {"prompt": "hello", "n": 2, "stream": False}
    assert [(change.action, change.before) for change in ctx.receipt.changes if change.before == ("stream",)] == [
        ("converted", ("stream",))
    ]


def test_out_of_range_follows_the_policy(context: MakeContext) -> None:
    with pytest.raises(Fault) as caught:
        write("databricks", context(request=request(max_tokens=0)))
    assert (caught.value.code, caught.value.param) == ("out_of_range", "max_tokens")
    clamped = context(request=request(max_tokens=0, top_p=0), policy={"out_of_range": "clamp"})
    assert write("databricks", clamped).body["max_tokens"] == 1
    assert len(clamped.receipt.losses) == 2


def test_extra_parameters_follow_the_policy(context: MakeContext) -> None:
    assert write("openai", context(request=request(made_up=1))).body["made_up"] == 1
    dropped = context(request=request(made_up=1))
    assert "made_up" not in write("databricks", dropped).body
    assert 'path="made_up"' in (dropped.receipt.header() or "")
    with pytest.raises(Fault) as caught:
        write("openai", context(request=request(made_up=1), policy={"extra_parameters": "error"}))
    assert caught.value.kind == "extra_parameter"


def test_what_a_target_lacks(context: MakeContext) -> None:
    with pytest.raises(Fault) as caught:
        write("openai", context(request=request(suffix="s"), lacks=frozenset({"suffix"})))
    assert caught.value.param == "suffix"
    ctx = context(request=request(suffix="", logprobs=None), lacks=frozenset({"suffix", "logprobs"}))
    assert write("openai", ctx).body.keys() == {"model", "prompt"}


# Called: replies


def test_databricks_replies_get_a_model_and_indexes_of_their_own(context: MakeContext) -> None:
    native = reply(choice(0, "a0"), choice(0, "a1"), choice(1, "b0"), choice(1, "b1", "length"))
    ctx = context(request=request(prompt=["a", "b"], n=2), model="llama")
    hub = read("databricks", ctx, native)
    assert [(one["index"], one["text"]) for one in hub["choices"]] == [(0, "a0"), (1, "a1"), (2, "b0"), (3, "b1")]
    assert hub["model"] == "llama"
    assert [v.message for v in load_validator("hub/completions.reply").violations(hub)] == []
    assert ctx.receipt.header() is None


def test_choices_in_any_order_are_counted_by_their_prompt(context: MakeContext) -> None:
    native = reply(choice(1, "b0"), choice(0, "a0"), choice(1, "b1"), choice(0, "a1"))
    hub = read("databricks", context(request=request(prompt=["a", "b"], n=2)), native)
    assert {one["index"]: one["text"] for one in hub["choices"]} == {0: "a0", 1: "a1", 2: "b0", 3: "b1"}


def test_indexes_that_are_unique_already_stay(context: MakeContext) -> None:
    hub = read("databricks", context(request=request(n=2)), reply(choice(0), choice(1)))
    assert [one["index"] for one in hub["choices"]] == [0, 1]


@pytest.mark.parametrize("replies", ["off", "report"])
def test_choices_are_told_apart_whatever_the_policy(replies: str, context: MakeContext) -> None:
    ctx = context(request=request(n=2), policy={"replies": replies})
    hub = read("databricks", ctx, reply(choice(0), choice(0)))
    assert [one["index"] for one in hub["choices"]] == [0, 1]


@pytest.mark.parametrize("choice", [{}, {"index": "0"}, {"text": 1, "made_up": 2}])
def test_whole_replies_left_alone_may_hold_anything(choice: JsonValue, context: MakeContext) -> None:
    body = {"choices": [{**choice, "finish_reason": "stop"}] * 2}
    ctx = context(request=request(n=2), policy={"replies": "off"})
    assert read("databricks", ctx, copy.deepcopy(body)) == body


@pytest.mark.parametrize("body", [{"x": 1}, {"choices": [1]}, {"choices": [{}, {}]}, {"choices": []}])
def test_replies_left_alone_are_still_whole(body: JsonValue, context: MakeContext) -> None:
    with pytest.raises(Fault) as caught:
        read("databricks", context(request=request(n=2), policy={"replies": "off"}), body)
    assert caught.value.kind == "upstream_invalid_response"


@pytest.mark.parametrize(("native", "word"), [
    ("stop", "stop"), ("length", "length"), ("content_filter", "content_filter"), ("end_turn", "stop"),
    ("max_tokens", "length"), ("tool_calls", "stop"), ("made up", "stop"),
])  # fmt: skip
def test_finish_reasons(native: str, word: str, context: MakeContext) -> None:
    for dialect in served("completions"):
        [one] = read(dialect, context(request=request()), reply(choice(0, finish=native)))["choices"]
        assert one["finish_reason"] == word
        assert one.get("native_finish_reason") == (None if native == word else native)


@pytest.mark.parametrize(
    "body",
    [
        reply(),
        reply(choice(0, finish=None)),
        reply(choice(0, finish="")),
        reply({"index": 0, "finish_reason": "stop"}),
        reply({"index": 0, "message": {"content": "hi"}, "finish_reason": "stop"}),
        reply(choice(0, text=["hi"])),  # type: ignore[arg-type]
        {**reply(), "choices": ["hi"]},
        {**reply(), "choices": None},
        {"error": {"message": "no"}},
        {"error_code": "INTERNAL_ERROR", "message": "no"},
    ],
)
def test_what_is_no_reply_is_a_fault(body: JsonValue, context: MakeContext) -> None:
    for dialect in served("completions"):
        with pytest.raises(Fault) as caught:
            read(dialect, context(request=request()), copy.deepcopy(body))
        assert caught.value.owner == "provider"


def test_log_probabilities_pass_with_their_nulls(context: MakeContext) -> None:
    told = {"tokens": ["a"], "token_logprobs": [None], "top_logprobs": [None], "text_offset": [0]}
    hub = read("openai", context(request=request(echo=True, logprobs=1)), reply(choice(0, logprobs=told), model="m"))
    assert hub["choices"][0]["logprobs"] == told


# Served


def ask(dialect: str, ctx: Context, body: JsonObject, path: str = "/") -> JsonObject:
    return dialects[dialect].served["completions"].read_request(Call("POST", path, body), ctx)


def test_openai_requests_are_the_hub(context: MakeContext) -> None:
    body = request(prompt=["a"], n=2, best_of=2)
    assert ask("openai", context(), body) is body


@pytest.mark.parametrize(("body", "path"), [
    ({"prompt": ["a", 1]}, "prompt[1]"),
    ({"prompt": []}, "prompt"),
    ({"n": 2, "best_of": 1}, "best_of"),
    ({"stream": True, "best_of": 2}, "best_of"),
    ({"logprobs": 6}, "logprobs"),
    ({"stream_options": {"include_usage": True}}, "stream_options"),
    ({"api_base": "http://x"}, "api_base"),
    ({"chat_template": "x"}, "chat_template"),
])  # fmt: skip
def test_what_openai_refuses(body: JsonObject, path: str, context: MakeContext) -> None:
    with pytest.raises(Fault) as caught:
        ask("openai", context(), request(**body))
    assert (caught.value.owner, caught.value.param) == ("client", path)


@pytest.mark.parametrize("body", [{"best_of": 0}, {"best_of": 1}, {"n": 2, "best_of": 2, "stream": True}])
def test_a_best_of_that_leaves_no_choice_is_taken(body: JsonObject, context: MakeContext) -> None:
    assert ask("openai", context(), request(**body))


@pytest.mark.parametrize(("profile", "streams"), [("documented", True), ("actual", None)])
def test_databricks_requests(profile: str, streams: JsonValue, context: MakeContext) -> None:
    hub = ask("databricks", context(profile), {"prompt": "x"}, "/serving-endpoints/my%2Fendpoint/invocations")
    assert hub["model"] == "my/endpoint"
    assert hub.get("stream") is streams
    assert hub.get("stream_options") == ({"include_usage": True} if streams else None)


def test_databricks_requests_name_their_model_where_the_address_does_not(context: MakeContext) -> None:
    assert ask("databricks", context(), request(), "/serving-endpoints/completions")["model"] == "public"
    with pytest.raises(Fault) as caught:
        ask("databricks", context(), request(prompt=[1]), "/serving-endpoints/completions")
    assert caught.value.param == "prompt[0]"


@pytest.mark.parametrize("profile", ["documented", "actual"])
def test_databricks_clients_get_the_index_of_the_prompt(profile: str, context: MakeContext) -> None:
    hub = reply(*(choice(i, logprobs=None, native_finish_reason="eos") for i in range(4)), model="m")
    ctx = context(profile, request=request(prompt=["a", "b"], n=2))
    body = dialects["databricks"].served["completions"].write_reply(copy.deepcopy(hub), ctx).body
    assert [one["index"] for one in body["choices"]] == [0, 0, 1, 1]
    assert body["object"] == "text_completion"
    assert ("model" in body) == (profile == "actual")
    assert "logprobs" not in body["choices"][0]
    assert [v.message for v in load_validator("databricks/completions.reply", profile).violations(body)] == []


def test_reasoning_tokens_are_flat_toward_databricks_clients(context: MakeContext) -> None:
    usage = {**USAGE, "completion_tokens_details": {"reasoning_tokens": 3}}
    hub = reply(choice(0, logprobs=None), model="m", usage=usage)
    body = dialects["databricks"].served["completions"].write_reply(hub, context(request=request())).body
    assert body["usage"] == {**USAGE, "reasoning_tokens": 3}


def test_faults_are_the_dialects_own(context: MakeContext) -> None:
    fault = Fault("invalid_request", "no", ("prompt", 0), code="invalid_value")
    error = dialects["openai"].served["completions"].write_fault(fault, context())
    assert [v.message for v in load_validator("openai/completions.error").violations(error.body)] == []
    assert error.body["error"]["param"] == "prompt[0]"
    error = dialects["databricks"].served["completions"].write_fault(fault, context())
    assert [v.message for v in load_validator("databricks/completions.error").violations(error.body)] == []
