from __future__ import annotations

import copy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.adapters import dialects
from dragoman.adapters.call import Context, Reply
from dragoman.adapters.embeddings.vectors import encode_vector
from dragoman.adapters.faults import Fault
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.dialects import called
from tests.tables import for_each

from .conftest import MakeContext

DIALECTS = called("embeddings")
VECTORS = [[0.5, -0.25], [1.0, 0.0], [0.125, 2.0]]


def reply(vectors: list[JsonValue] | None = None, **top: JsonValue) -> JsonObject:
    found = VECTORS if vectors is None else vectors
    data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(found)]
    usage = {"prompt_tokens": 3, "total_tokens": 3}
    return {"id": "e-1", "object": "list", "data": data, "model": "m", "usage": usage} | top


def read(body: JsonObject, ctx: Context, dialect: str = "openai") -> JsonObject:
    return dialects[dialect].called["embeddings"].read_reply(Reply(200, copy.deepcopy(body)), ctx)


def asking(context: MakeContext, given: JsonValue = ("a", "b", "c"), **more: JsonValue) -> Context:
    target = {key: more.pop(key) for key in ("policy", "profile") if key in more}
    given = list(given) if isinstance(given, tuple) else given
    return context(request={"model": "m", "input": given, **more}, **target)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_whole_replies_pass_as_they_are(context: MakeContext, dialect: str) -> None:
    ctx = asking(context)
    assert read(reply(), ctx, dialect) == reply()
    assert not ctx.receipt.changes


@pytest.mark.parametrize("dialect", DIALECTS)
def test_formats(context: MakeContext, dialect: str) -> None:
    packed = [encode_vector(vector) for vector in VECTORS]
    for sent in (VECTORS, packed):
        for asked, wanted in (("base64", packed), ("float", VECTORS), (None, VECTORS)):
            found = read(reply(sent), asking(context, encoding_format=asked), dialect)
            assert [item["embedding"] for item in found["data"]] == wanted


def test_formats_of_azure_stay_as_they_are(context: MakeContext) -> None:
    for asked in ("int8", "uint8", "binary", "ubinary"):
        for vectors in ([[1, -2], [3, 4], [5, 6]], ["AQI=", "AwQ=", "BQY="]):
            found = read(reply(vectors), asking(context, encoding_format=asked, dimensions=16), "azure")
            assert [item["embedding"] for item in found["data"]] == vectors


@pytest.mark.parametrize("mode", ["off", "report"])
def test_untouched_replies(context: MakeContext, mode: str) -> None:
    odd = reply(object="strange", usage=None)
    odd["data"] = odd["data"][::-1]
    ctx = asking(context, policy={"replies": mode})
    assert read(odd, ctx) == odd
    assert ctx.receipt.violations == 0, "what a provider's actual profile takes"
    documented = asking(context, policy={"replies": mode}, profile="documented")
    assert read(odd, documented) == odd
    assert documented.receipt.violations == (2 if mode == "report" else 0)
    found = read(odd, asking(context, policy={"replies": mode}, encoding_format="base64"))
    assert [item["embedding"] for item in found["data"]] == [encode_vector(vector) for vector in VECTORS]


def test_strict(context: MakeContext) -> None:
    with pytest.raises(Fault, match="object must be list") as caught:
        read(reply(object="strange"), asking(context, policy={"replies": "strict"}, profile="documented"))
    assert caught.value.status == 502


def test_the_envelope_is_mended(context: MakeContext) -> None:
    ctx = asking(context)
    bare = {"data": [{"index": i, "embedding": vector} for i, vector in enumerate(VECTORS)], "id": None}
    found = read(bare, ctx, "azure")
    wanted = reply(model="upstream-model", usage={"prompt_tokens": 0, "total_tokens": 0})
    del wanted["id"]
    assert found == wanted
    assert {change.after for change in ctx.receipt.changes} == {("object",), ("model",), ("usage",), ("data",)}


@pytest.mark.parametrize(
    ("reported", "wanted"),
    [
        ({"prompt_tokens": 3, "total_tokens": 3}, {"prompt_tokens": 3, "total_tokens": 3}),
        ({"prompt_tokens": 3, "completion_tokens": 0, "total_tokens": 3}, {"prompt_tokens": 3, "total_tokens": 3}),
        ({"prompt_tokens": 3}, {"prompt_tokens": 3, "total_tokens": 3}),
        ({"total_tokens": 3, "prompt_tokens": None}, {"prompt_tokens": 3, "total_tokens": 3}),
        ({}, {"prompt_tokens": 0, "total_tokens": 0}),
        (None, {"prompt_tokens": 0, "total_tokens": 0}),
    ],
)
def test_usage(context: MakeContext, reported: JsonValue, wanted: JsonValue) -> None:
    ctx = asking(context)
    assert read(reply(usage=reported), ctx)["usage"] == wanted
    assert bool(ctx.receipt.losses) == (not reported), "an invented count is not a true one"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.permutations(range(5)))
def test_any_order_is_put_right(context: MakeContext, order: list[int]) -> None:
    vectors = [[float(i), 0.5] for i in range(5)]
    body = reply(vectors)
    body["data"] = [body["data"][i] for i in order]
    ctx = asking(context, tuple("abcde"))
    assert read(body, ctx) == reply(vectors)
    assert bool(ctx.receipt.changes) == (order != list(range(5)))


@pytest.mark.parametrize("index", [{}, {"index": None}])
def test_vectors_without_any_index_are_in_the_order_of_the_inputs(context: MakeContext, index: JsonObject) -> None:
    bare = reply(data=[{"object": "embedding", "embedding": vector, **index} for vector in VECTORS])
    ctx = asking(context)
    assert read(bare, ctx) == reply()
    assert [change.reason for change in ctx.receipt.changes] == [
        "no embedding has an index: they are in the order of the inputs"
    ]
    assert read(bare | {"data": bare["data"][0]}, asking(context, "a")) == reply(VECTORS[:1])
    with pytest.raises(Fault, match="2 embeddings for 3 inputs"):
        read(bare | {"data": bare["data"][:2]}, asking(context))
    with pytest.raises(Fault, match=r"index (is required|must)"):
        read(bare | {"data": [*bare["data"][:2], item(2)]}, asking(context))


def item(index: JsonValue = 0, vector: JsonValue = (0.5, 1.0), **more: JsonValue) -> JsonObject:
    return {"object": "embedding", "index": index, "embedding": list(vector), **more}


WRONG = [
    ([item(0), item(1)], "2 embeddings for 3 inputs", None),
    ([item(i) for i in range(4)], "4 embeddings for 3 inputs", None),
    ([], "must not be empty", None),
    ("x", "must be of type array", None),
    ([item(0), item(1), item(1)], "index 2 is missing", "input[2]"),
    ([item(1), item(2), item(3)], "index 0 is missing", "input[0]"),
    ([item(0), item(1), item(True)], "must be of type integer", "input[2]"),
    ([item(0), item(1), item(0.5)], "must be of type integer", "input[2]"),
    ([item(0), item(1), {"embedding": [1.0, 2.0]}], "index is required", "input[2]"),
    ([item(0), item(1), {"index": 2}], "embedding is required", "input[2]"),
    ([item(0), item(1), None], "must be of type object", "input[2]"),
    ([item(0), item(1), item(2, [])], "must not be empty", "input[2]"),
    ([item(0), item(1), item(2, [1.0])], "1 values instead of 2", "input[2]"),
    ([item(0), item(1), item(2, [1.0, None])], "not a number", "input[2]"),
    ([item(0), item(1), item(2, [1.0, "2"])], "not a number", "input[2]"),
    ([item(0), item(1), item(2, embedding="not base64")], "not valid base64", "input[2]"),
    ([item(0), item(1), item(2, embedding="AADAfwAAgD8=")], "not finite", "input[2]"),
]


@for_each("encoding", ["float", "base64"])
@for_each(("data", "said", "param"), WRONG)
def test_what_cannot_be_trusted(
    context: MakeContext, data: JsonValue, said: str, param: str | None, encoding: str
) -> None:
    with pytest.raises(Fault, match=said.replace("[", r"\[")) as caught:
        read(reply(data=data), asking(context, encoding_format=encoding))
    assert (caught.value.kind, caught.value.status) == ("upstream_invalid_response", 502)
    assert caught.value.param == param


def test_numbers_beyond_32_bits_in_base64(context: MakeContext) -> None:
    with pytest.raises(Fault, match="too large"):
        read(reply([[1e39]]), asking(context, "a", encoding_format="base64"))
    assert read(reply([[1e39]]), asking(context, "a"))["data"][0]["embedding"] == [1e39]


def test_dimensions(context: MakeContext) -> None:
    assert read(reply(), asking(context, dimensions=2))
    with pytest.raises(Fault, match="2 values instead of 3"):
        read(reply(), asking(context, dimensions=3))
    ctx = asking(context, dimensions=3)
    ctx.receipt.record_drop(("dimensions",), "the target does not have it")
    assert read(reply(), ctx), "nobody told the target"


@pytest.mark.parametrize("given", ["one", [1, 2, 3], ["one"], [[1, 2]]])
def test_one_input(context: MakeContext, given: JsonValue) -> None:
    assert read(reply([[0.5]]), asking(context, given))
    single = reply([[0.5]])
    single["data"] = single["data"][0]
    assert read(single, asking(context, given), "databricks") == reply([[0.5]])
    with pytest.raises(Fault) as caught:
        read(reply([[None]]), asking(context, given))
    assert caught.value.param == ("input[0]" if isinstance(given, list) and not isinstance(given[0], int) else "input")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_errors_where_embeddings_should_be(context: MakeContext, dialect: str) -> None:
    for body in ({"error": {"message": "no", "code": "x"}}, {"error_code": "BAD_REQUEST", "message": "no"}, {}):
        with pytest.raises(Fault) as caught:
            read(body, asking(context), dialect)
        assert caught.value.status >= 400


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("profile", ["documented", "actual"])
def test_what_clients_get_is_in_their_form(context: MakeContext, dialect: str, profile: str) -> None:
    hub = reply()
    del hub["id"]
    written = dialects[dialect].served["embeddings"].write_reply(hub, asking(context)._replace(profile=profile))
    assert [v.message for v in load_validator(f"{dialect}/embeddings.reply").violations(written.body)] == []
    assert written.body["data"] == hub["data"]
    assert ("id" in written.body) == (dialect != "openai")
    assert dialects[dialect].served["embeddings"].write_reply(reply(), asking(context)).body == reply()
