"""Embeddings through real sockets: every client dialect over every provider, large requests, and what providers do
wrong."""

from __future__ import annotations

import asyncio
import base64
import json
import struct
from collections.abc import AsyncIterator, Mapping

import aiohttp
import openai
import pytest
import pytest_asyncio
from azure.ai.inference.aio import EmbeddingsClient
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import HttpResponseError
from databricks.sdk import WorkspaceClient, errors
from databricks.sdk.service.serving import QueryEndpointResponse

from dragoman.adapters.validation import load_validator
from dragoman.contract.fakes.embeddings import make_vector
from dragoman.contract.json_types import JsonValue
from tests.dialects import called

from .house import BuildHouse, House

PROVIDERS = called("embeddings")
PATHS = {
    "openai": ("/v1/embeddings", "/openai/v1/embeddings"),
    "databricks": ("/serving-endpoints/embeddings", "/databricks/serving-endpoints/embeddings"),
    "azure": ("/embeddings?api-version=2024-05-01-preview", "/azure/embeddings?api-version=2025-05-01"),
}
TEXTS = ["one", "two words", "καλημέρα"]


@pytest_asyncio.fixture
async def house(build: BuildHouse) -> House:
    return await build(protocols=["chat", "embeddings"])


@pytest_asyncio.fixture
async def client(house: House) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=house.base_url, api_key="any", max_retries=0) as client:
        yield client


def make_azure(url: str) -> EmbeddingsClient:
    return EmbeddingsClient(endpoint=url, credential=AzureKeyCredential("any"), retry_total=0)


async def post(house: House, path: str, body: JsonValue) -> tuple[int, Mapping[str, str], JsonValue]:
    async with (
        aiohttp.ClientSession() as session,
        session.post(house.proxy.url + path, json=body) as response,
    ):
        return response.status, response.headers, await response.json()


def packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_sdk_asks_for_base64_unasked(house: House, client: openai.AsyncOpenAI, provider: str) -> None:
    reply = await client.embeddings.create(model=provider, input=TEXTS)
    assert [item.embedding for item in reply.data] == [make_vector(text) for text in TEXTS]
    assert [item.index for item in reply.data] == [0, 1, 2]
    assert (reply.object, reply.model) == ("list", f"{provider}-model")
    assert (reply.usage.prompt_tokens, reply.usage.total_tokens) == (4, 4)
    (received,) = house.fakes[provider].requests
    wanted = {"input": TEXTS} | ({} if provider == "databricks" else {"model": f"{provider}-model"})
    assert received.body == (wanted | ({"encoding_format": "base64"} if provider == "openai" else {}))
    raw = await client.embeddings.with_raw_response.create(model=provider, input="one")
    assert json.loads(raw.content)["data"][0]["embedding"] == packed(make_vector("one"))
    assert "x-dragoman-changes" not in raw.headers


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_floats(client: openai.AsyncOpenAI, provider: str) -> None:
    reply = await client.embeddings.create(model=provider, input="one", encoding_format="float")
    assert reply.data[0].embedding == make_vector("one")


async def test_dimensions_tokens_and_users(house: House, client: openai.AsyncOpenAI) -> None:
    for provider in ("openai", "azure"):
        reply = await client.embeddings.create(model=provider, input="one", dimensions=3, user="me")
        assert reply.data[0].embedding == make_vector("one", 3)
        assert ("user" in house.fakes[provider].requests[-1].body) == (provider == "openai")
    reply = await client.embeddings.create(model="openai", input=[[1, 2], [3]])
    assert [item.embedding for item in reply.data] == [make_vector([1, 2]), make_vector([3])]
    assert len((await client.embeddings.create(model="openai", input=[1, 2])).data) == 1
    with pytest.raises(openai.BadRequestError, match="dimensions cannot be served"):
        await client.embeddings.create(model="databricks", input="x", dimensions=3)


async def test_tokens_reach_a_provider_of_text_as_text(client: openai.AsyncOpenAI) -> None:
    for provider, given, texts in (
        ("databricks", [15339, 1917], ["hello world"]),
        ("azure", [[15339], [15339, 1917]], ["hello", "hello world"]),
    ):
        raw = await client.embeddings.with_raw_response.create(model=provider, input=given)
        assert [item.embedding for item in raw.parse().data] == [make_vector(text) for text in texts]
        changes = raw.headers["x-dragoman-changes"]
        assert 'emulated;path="input"' in changes
        assert "a guess" in changes, "nobody knows the model"


async def test_without_the_emulation_tokens_are_refused(build: BuildHouse) -> None:
    house = await build(protocols=["embeddings"], emulate={"token_arrays": False})
    for provider, given in (("databricks", [1, 2]), ("azure", [[1], [2]])):
        status, _, body = await post(house, "/v1/embeddings", {"model": provider, "input": given})
        assert (status, body["error"]["param"]) == (400, "input[0]")
        assert "must be of type string" in body["error"]["message"]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("dialect", PATHS)
async def test_every_client_over_every_provider(house: House, dialect: str, provider: str) -> None:
    for path in PATHS[dialect]:
        status, headers, body = await post(house, path, {"model": provider, "input": TEXTS})
        assert status == 200, body
        assert headers["content-type"] == "application/json"
        assert [v.message for v in load_validator(f"{dialect}/embeddings.reply").violations(body)] == []
        assert [item["embedding"] for item in body["data"]] == [make_vector(text) for text in TEXTS]


async def test_azures_client(house: House) -> None:
    for prefix in ("", "/azure", "/models", "/azure/models"):
        endpoint = house.proxy.url + prefix
        async with make_azure(endpoint) as client:
            for provider in PROVIDERS:
                reply = await client.embed(input=TEXTS, model=provider)
                assert [item.embedding for item in reply.data] == [make_vector(text) for text in TEXTS]
                assert reply.id
                assert reply.usage.total_tokens == 4
                reply = await client.embed(input=["one"], model=provider, encoding_format="base64")
                assert reply.data[0].embedding == packed(make_vector("one"))
            reply = await client.embed(input=["one"], model="azure", input_type="query", encoding_format="int8")
            assert house.fakes["azure"].requests[-1].body["input_type"] == "query"
            assert house.fakes["azure"].requests[-1].body["encoding_format"] == "int8"
            for provider in ("openai", "databricks"):
                with pytest.raises(HttpResponseError) as caught:
                    await client.embed(input=["one"], model=provider, encoding_format="int8")
                assert caught.value.status_code == 422
                assert caught.value.response is not None
                assert json.loads(caught.value.response.text())["detail"]["loc"] == ["body", "encoding_format"]


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_databricks_client(house: House, monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    for name in ("DATABRICKS_HOST", "DATABRICKS_TOKEN", "DATABRICKS_CONFIG_PROFILE"):
        monkeypatch.delenv(name, raising=False)

    def ask(given: str | list[str]) -> QueryEndpointResponse:
        return WorkspaceClient(host=house.proxy.url, token="any").serving_endpoints.query(provider, input=given)

    reply = await asyncio.to_thread(ask, TEXTS)
    assert [item.embedding for item in reply.data] == [make_vector(text) for text in TEXTS]
    assert [item.index for item in reply.data] == [0, 1, 2]
    assert (reply.model, reply.usage.prompt_tokens) == (f"{provider}-model", 4)
    assert reply.served_model_name == ("databricks-model" if provider == "databricks" else None)
    one = await asyncio.to_thread(ask, "one")
    assert one.data[0].embedding == make_vector("one")
    with pytest.raises(errors.InvalidParameterValue, match=r"input\[1\] must be of type string"):
        await asyncio.to_thread(ask, ["x", 1])


async def test_openais_client_at_databricks_address(house: House) -> None:
    async with openai.AsyncOpenAI(base_url=f"{house.proxy.url}/serving-endpoints", api_key="any") as client:
        reply = await client.embeddings.create(model="databricks", input=TEXTS)
    assert [item.embedding for item in reply.data] == [make_vector(text) for text in TEXTS]


async def test_databricks_instruction(house: House) -> None:
    path = PATHS["databricks"][0]
    body = {"model": "databricks", "input": ["x"], "instruction": "Represent this:"}
    assert (await post(house, path, body))[0] == 200
    assert house.fakes["databricks"].requests[-1].body["instruction"] == "Represent this:"
    status, _, error = await post(house, path, {**body, "model": "azure"})
    assert (status, error["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
    assert "instruction" in error["message"]
    assert (await post(house, path, {**body, "model": "openai"}))[0] == 200
    assert house.fakes["openai"].requests[-1].body["instruction"] == "Represent this:"


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_2048_inputs_come_back_in_order(house: House, client: openai.AsyncOpenAI, provider: str) -> None:
    texts = [f"text {number}" for number in range(2048)]
    reply = await client.embeddings.create(model=provider, input=texts)
    assert [item.embedding for item in reply.data] == [make_vector(text) for text in texts]
    assert [item.index for item in reply.data] == list(range(2048))
    assert reply.usage.total_tokens == 2 * 2048
    sizes = sorted(len(received.body["input"]) for received in house.fakes[provider].requests)
    assert sizes == ([98] + 13 * [150] if provider == "databricks" else [2048])


async def test_a_providers_own_limit(build: BuildHouse) -> None:
    house = await build(protocols=["embeddings"], limits={"inputs": 2})
    for provider in PROVIDERS:
        request = {"model": provider, "input": list("abcde"), "user": "me"}
        _, headers, body = await post(house, "/v1/embeddings", request)
        assert [item["embedding"] for item in body["data"]] == [make_vector(text) for text in "abcde"]
        assert headers.get("x-dragoman-changes", "").count("user") == (provider != "openai"), "once for all parts"
        assert len(house.fakes[provider].requests) == 3
        status, _, _ = await post(house, "/v1/embeddings", {"model": "openai", "input": [1, 2, 3]})
        assert status == 200, "tokens of one input are not split"


async def test_more_calls_than_one_request_may_take(build: BuildHouse) -> None:
    house = await build(protocols=["embeddings"], limits={"inputs": 2})
    status, _, body = await post(house, "/v1/embeddings", {"model": "openai", "input": ["x"] * 513})
    assert (status, body["error"]["param"], body["error"]["code"]) == (400, "input", "array_above_max_length")
    assert "send at most 512 in one request" in body["error"]["message"]
    assert not house.fakes["openai"].requests


async def test_the_failure_of_a_part_is_the_wholes(build: BuildHouse) -> None:
    house = await build(protocols=["embeddings"], limits={"inputs": 2})
    for behaviour, status in (("status-500", 500), ("rate-limit", 429), ("cut-before", 502), ("html", 502)):
        texts = [*"abcdef", f"fake:{behaviour}", "h"]
        found, headers, body = await post(house, "/v1/embeddings", {"model": "openai", "input": texts})
        assert (found, body["error"]["type"]) == (status, "rate_limit_error" if status == 429 else "server_error")
        assert (headers.get("retry-after") == "2") == (status == 429)
    texts = [*"abcdef", "g", "fake:vectors-null"]
    found, _, body = await post(house, "/v1/embeddings", {"model": "openai", "input": texts})
    assert (found, body["error"]["param"]) == (502, "input[7]")


async def test_paths_of_a_part_lead_back(build: BuildHouse) -> None:
    house = await build(protocols=["embeddings"])
    house.fakes["databricks"].validate = False
    texts: list[JsonValue] = ["x"] * 1400
    texts[1234] = "fake:vectors-null"  # the last of its part by its index there, 34 after 8 parts of 150
    found, _, body = await post(house, "/v1/embeddings", {"model": "databricks", "input": texts[:1235]})
    assert (found, body["error"]["param"]) == (502, "input[1234]")
    texts[1234] = [1]
    found, _, body = await post(house, "/serving-endpoints/embeddings", {"model": "databricks", "input": texts})
    assert found == 400
    assert body["message"].startswith("input[1234] must be of type string")


BROKEN = {  # behaviour: what the message says
    "vectors-missing": "embeddings for 3 inputs",
    "vectors-too-many": "embeddings for 3 inputs",
    "vectors-doubled-index": "index 2 is missing",
    "vectors-short": "7 values instead of 8",
    "vectors-empty": "",
    "vectors-null": "not a number",
    "vectors-nan": "",
    "vectors-not-base64": "not valid base64",
    "vectors-single": "1 embeddings for 3 inputs",
}


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_vectors_that_cannot_be_trusted(house: House, provider: str) -> None:
    for behaviour, said in BROKEN.items():
        for encoding in ("float", "base64"):
            request = {"model": provider, "input": ["a", "b", f"fake:{behaviour}"], "encoding_format": encoding}
            status, _, body = await post(house, "/v1/embeddings", request)
            told = (behaviour, encoding, body)
            assert (status, body["error"]["type"]) == (502, "server_error"), told
            assert said in body["error"]["message"], told
            assert [v.message for v in load_validator("openai/embeddings.error").violations(body)] == []


MENDED = (
    *("vectors-shuffled", "vectors-without-index", "vectors-as-floats", "vectors-as-base64", "vectors-without-usage"),
    "gzip",
)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_what_is_mended(house: House, client: openai.AsyncOpenAI, provider: str) -> None:
    for behaviour in MENDED:
        texts = ["a", "b", f"fake:{behaviour}"]
        for encoding in ("float", "base64"):
            reply = await client.embeddings.create(model=provider, input=texts, encoding_format=encoding)
            found = [item.embedding for item in reply.data]
            wanted: list[JsonValue] = [make_vector(text) for text in texts]
            assert found == (wanted if encoding == "float" else list(map(packed, wanted))), behaviour
            judged = reply.model_dump(exclude_none=True, warnings=False)
            assert [v.message for v in load_validator("hub/embeddings.reply").violations(judged)] == []
    one = await client.embeddings.create(model=provider, input="fake:vectors-single")
    assert one.data[0].embedding == make_vector("fake:vectors-single")


FAULTS = {
    "status-400": 400, "status-401": 502, "status-404": 404, "status-408": 504, "status-413": 413, "status-422": 422,
    "status-429": 429, "status-500": 500, "status-503": 503, "status-504": 504, "cut-before": 502, "cut-body": 502,
    "html": 502, "not-json": 502, "empty": 502, "redirect": 502, "garbage": 502,
    "stream-for-json": 502, "gzip-bomb": 502, "model-not-found": 404,
}  # fmt: skip


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("dialect", PATHS)
async def test_faults_in_the_clients_form(house: House, dialect: str, provider: str) -> None:
    for behaviour, status in FAULTS.items():
        body = {"model": provider, "input": [f"fake:{behaviour}"]}
        found, headers, error = await post(house, PATHS[dialect][0], body)
        told = (behaviour, found, error)
        assert found == (400 if (status, dialect) == (422, "databricks") else status), told
        assert headers["x-request-id"], told
        if dialect == "openai":
            assert error["error"]["message"], told
        elif dialect == "databricks":
            assert error.keys() == {"error_code", "message"}, told
        else:
            assert error["status"] == found, told
            assert headers["x-ms-error-code"], told


BAD = [
    ({"input": "x", "model": "nobody"}, 404, "model"),
    ({"model": "openai"}, 400, "input"),
    ({"model": "openai", "input": []}, 400, "input"),
    ({"model": "openai", "input": ["x", 1]}, 400, "input[1]"),
    ({"model": "openai", "input": ["x", {}]}, 400, "input[1]"),
    ({"model": "openai", "input": ["x"] * 2049}, 400, "input"),
    ({"model": "openai", "input": "x", "encoding_format": "int8"}, 400, "encoding_format"),
    ({"model": "openai", "input": "x", "dimensions": 0}, 400, "dimensions"),
    ({"model": "openai", "input": "x", "api_base": "http://evil"}, 400, "api_base"),
    ({"model": "openai", "input": "x", "stream": True}, 400, "stream"),
    ({"model": "mindie", "input": "x"}, 400, "model"),
]


@pytest.mark.parametrize(("body", "status", "param"), BAD)
async def test_bad_requests(house: House, body: JsonValue, status: int, param: str) -> None:
    found, _, error = await post(house, "/v1/embeddings", body)
    assert (found, error["error"]["param"]) == (status, param)
    assert not [fake.requests for fake in house.fakes.values() if fake.requests]


async def test_bad_requests_of_azures_and_databricks_clients(house: House) -> None:
    status, _, body = await post(house, "/embeddings", {"model": "azure", "input": ["x"]})
    assert (status, body["param"]) == (400, "api-version")
    status, _, body = await post(house, PATHS["azure"][0], {"model": "azure", "input": "x"})
    assert (status, body["param"]) == (400, "input")
    status, _, body = await post(house, PATHS["azure"][0], {"model": "azure", "input": ["x"], "user": "me"})
    assert (status, body["code"]) == (400, "unknown_parameter")
    status, _, body = await post(house, PATHS["databricks"][0], {"model": "databricks", "input": [1]})
    assert (status, body["error_code"]) == (400, "INVALID_PARAMETER_VALUE")


async def test_policies_of_replies(build: BuildHouse) -> None:
    for policy, shuffled in (("off", True), ("report", True), ("repair", False), ("strict", False)):
        house = await build(protocols=["embeddings"], policy={"replies": policy})
        body = {"model": "openai", "input": ["a", "fake:vectors-shuffled"]}
        _, _, reply = await post(house, "/v1/embeddings", body)
        assert ([item["index"] for item in reply["data"]] == [1, 0]) == shuffled
        _, _, reply = await post(house, "/v1/embeddings", {**body, "model": "databricks", "encoding_format": "base64"})
        assert reply["data"][0]["embedding"] == packed(make_vector("a")), "a format asked for comes under every policy"
        body = {"model": "openai", "input": ["fake:vectors-single"]}
        assert (await post(house, "/v1/embeddings", body))[0] == (502 if policy == "strict" else 200)


async def test_a_client_that_leaves_ends_every_part(build: BuildHouse) -> None:
    house = await build(protocols=["embeddings"], limits={"inputs": 1})
    fake = house.fakes["openai"]
    fake.behaviour = "hang"
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await post(house, "/v1/embeddings", {"model": "openai", "input": ["x"] * 20})
    for _ in range(100):
        if fake.disconnects == len(fake.requests):
            break
        await asyncio.sleep(0.02)
    assert fake.disconnects == len(fake.requests) == 8, "no more than 8 at the same time"


async def test_a_late_part_is_a_timeout(build: BuildHouse) -> None:
    house = await build(
        protocols=["embeddings"], limits={"inputs": 1}, timeouts={"total": 0.3, "first_token": 0.3, "inter_token": 0.3,
        "connect": 0.3},
    )  # fmt: skip
    status, _, body = await post(house, "/v1/embeddings", {"model": "openai", "input": ["a", "fake:hang", "b"]})
    assert (status, body["error"]["code"]) == (504, "upstream_timeout")
    status, _, body = await post(house, "/v1/embeddings", {"model": "openai", "input": ["a", "b"]})
    assert status == 200


async def test_a_fallback_gets_the_whole(build: BuildHouse) -> None:
    targets = {"targets": [{"provider": "databricks"}], "fallbacks": ["azure"]}
    house = await build(protocols=["embeddings"], more_models={"first": targets})
    house.fakes["databricks"].behaviour = "status-503"
    texts = [f"t{number}" for number in range(200)]
    status, _, body = await post(house, "/v1/embeddings", {"model": "first", "input": texts})
    assert status == 200
    assert [item["embedding"] for item in body["data"]] == [make_vector(text) for text in texts]
    assert len(house.fakes["azure"].requests) == 1


async def test_keys_that_only_databricks_knows(house: House) -> None:
    body = {"input": ["x"], "client_request_id": "c", "usage_context": {"team": "a"}}
    for provider in PROVIDERS:
        status, headers, _ = await post(house, PATHS["databricks"][0], {**body, "model": provider})
        assert status == 200
        sent = house.fakes[provider].requests[-1].body
        assert ("client_request_id" in sent) == ("usage_context" in sent) == (provider == "databricks")
        assert ("client_request_id" in headers.get("x-dragoman-changes", "")) == (provider != "databricks")
