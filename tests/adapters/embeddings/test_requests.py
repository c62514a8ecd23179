"""Requests from every dialect to every other, and what cannot be served."""

from __future__ import annotations

from itertools import product

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.dialects import called

from .conftest import MakeContext

DIALECTS = called("embeddings")
VERSION = {"api-version": "2024-05-01-preview"}


def write(dialect: str, ctx: Context) -> Call:
    return dialects[dialect].called["embeddings"].write_request(ctx.request, ctx)


def read(dialect: str, body: JsonObject, path: str = "/", **headers: str) -> tuple[JsonObject, Receipt]:
    call, receipt = Call("POST", path, body, VERSION, headers), Receipt()
    return dialects[dialect].served["embeddings"].read_request(call, Context("actual", call, receipt)), receipt


@pytest.mark.parametrize(("client", "provider"), list(product(DIALECTS, DIALECTS)))
def test_the_plain_request(context: MakeContext, client: str, provider: str) -> None:
    body = {"model": "m", "input": ["one", "two"]}
    hub, receipt = read(client, body)
    ctx = context(request=hub)._replace(receipt=receipt)
    call = write(provider, ctx)
    assert call.body["input"] == ["one", "two"]
    assert call.body.get("model") == (None if provider == "databricks" else "upstream-model")
    assert load_validator(f"{provider}/embeddings.request", "actual").accepts(call.body)
    assert hub == body, "the request is not altered"
    assert not receipt.losses


def test_addresses(context: MakeContext) -> None:
    request = {"model": "m", "input": ["x"]}
    assert write("openai", context(request=request)).path == "/embeddings"
    assert write("databricks", context(request=request)).path == "/serving-endpoints/upstream-model/invocations"
    call = write("azure", context(request=request, api_version="2025-05-01", deployment="d"))
    assert (call.path, call.query) == ("/embeddings", {"api-version": "2025-05-01"})
    assert call.headers == {"azureml-model-deployment": "d"}


@pytest.mark.parametrize("dialect", ["databricks", "azure"])
@pytest.mark.parametrize("encoding", ["float", "base64", None])
def test_the_formats_that_are_made_here_are_not_asked_for(
    context: MakeContext, dialect: str, encoding: JsonValue
) -> None:
    ctx = context(request={"model": "m", "input": ["x"], "encoding_format": encoding})
    assert "encoding_format" not in {k: v for k, v in write(dialect, ctx).body.items() if v is not None}
    assert not ctx.receipt.losses


def test_a_string_is_a_list_of_one_toward_azure(context: MakeContext) -> None:
    ctx = context(request={"model": "m", "input": "x"})
    assert write("azure", ctx).body["input"] == ["x"]
    assert ctx.receipt.unmap(("input", 0)) == ("input",)
    assert write("databricks", context(request={"model": "m", "input": "x"})).body == {"input": "x"}


REFUSED = [
    ("databricks", {"dimensions": 3}, "dimensions"),
    ("databricks", {"encoding_format": "int8"}, "encoding_format"),
    ("databricks", {"input_type": "query"}, "input_type"),
    ("databricks", {"input": [1, 2]}, "input[0]"),
    ("databricks", {"input": [[1], [2]]}, "input[0]"),
    ("databricks", {"input": ["x", [2]]}, "input[1]"),
    ("azure", {"instruction": "i"}, "instruction"),
    ("azure", {"input": [1, 2]}, "input[0]"),
    ("azure", {"input": ["x", [1]]}, "input[1]"),
    ("openai", {"encoding_format": "int8"}, "encoding_format"),
]


@pytest.mark.parametrize(("dialect", "more", "path"), REFUSED)
def test_what_cannot_be_served(context: MakeContext, dialect: str, more: JsonObject, path: str) -> None:
    with pytest.raises(Fault) as caught:
        write(dialect, context(request={"model": "m", "input": ["x"], **more}))
    assert (caught.value.kind, caught.value.param) == ("unsupported_parameter", path)


@pytest.mark.parametrize(("dialect", "more", "path"), REFUSED[:3])
def test_what_the_lenient_policy_drops(context: MakeContext, dialect: str, more: JsonObject, path: str) -> None:
    ctx = context(request={"model": "m", "input": ["x"], **more}, policy={"unsupported": "drop"})
    assert write(dialect, ctx).body == {"input": ["x"]}
    assert ctx.receipt.is_lost((path,))


@pytest.mark.parametrize(
    ("dialect", "more", "losses"),
    [
        ("databricks", {"user": "me"}, 1),
        ("databricks", {"input_type": "text"}, 0),
        ("databricks", {"instruction": ""}, 0),
        ("azure", {"user": "me"}, 1),
        ("azure", {"instruction": ""}, 0),
        ("databricks", {"strange": 1}, 1),
    ],
)
def test_what_is_left_out(context: MakeContext, dialect: str, more: JsonObject, losses: int) -> None:
    ctx = context(request={"model": "m", "input": ["x"], **more})
    body = write(dialect, ctx).body
    left = body.keys() & more.keys()
    assert not left or body["instruction"] == ""
    assert len(ctx.receipt.losses) == losses


def test_what_a_target_lacks(context: MakeContext) -> None:
    request = {"model": "m", "input": ["x"], "dimensions": 3}
    with pytest.raises(Fault, match="configured without it"):
        write("openai", context(request=request, lacks=frozenset({"dimensions"})))
    request = {"model": "m", "input": ["x"], "user": "me"}
    assert "user" not in write("openai", context(request=request, lacks=frozenset({"user"}))).body


def test_extra_parameters_toward_azure(context: MakeContext) -> None:
    call = write("azure", context(request={"model": "m", "input": ["x"], "truncate": True}))
    assert call.body["truncate"] is True
    assert call.headers == {"extra-parameters": "pass-through"}


def test_databricks_endpoint_is_the_model() -> None:
    hub, receipt = read("databricks", {"input": "x", "model": "other"}, "/serving-endpoints/a%2Fb/invocations")
    assert hub["model"] == "a/b"
    assert receipt.changes[0].before == ("model",)
    assert "model" not in read("databricks", {"input": "x"})[0]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("body", [{"model": "m"}, {"model": "m", "input": []}, {"model": "m", "input": ["x", 1]}])
def test_bad_requests(dialect: str, body: JsonObject) -> None:
    with pytest.raises(Fault) as caught:
        read(dialect, body)
    assert caught.value.path[0] == "input"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_words_that_steer_are_refused(dialect: str) -> None:
    with pytest.raises(Fault, match="api_base is not accepted"):
        read(dialect, {"model": "m", "input": ["x"], "api_base": "http://evil"})


def test_azures_extra_parameters() -> None:
    body = {"model": "m", "input": ["x"], "user": "me"}
    with pytest.raises(Fault, match="Extra parameters"):
        read("azure", body)
    assert "user" not in read("azure", body, **{"extra-parameters": "ignore"})[0]
    assert read("azure", body, **{"extra-parameters": "pass-through"})[0]["user"] == "me"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_there_are_no_streams(context: MakeContext, dialect: str) -> None:
    served, called = dialects[dialect].served["embeddings"], dialects[dialect].called["embeddings"]
    for verb in (served.write_stream, called.read_stream):
        with pytest.raises(Fault, match="not streamed") as caught:
            verb(context())
        assert caught.value.status == 400
