"""Lists of models, and what servers say of themselves, asked by real clients: nobody hears of a model that its key may
not use."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import aiohttp
import jsonschema
import openai
import pytest
from azure.ai.inference.aio import ChatCompletionsClient, EmbeddingsClient
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import HttpResponseError
from databricks.sdk import WorkspaceClient, errors
from databricks.sdk.config import Config
from databricks.sdk.service.serving import ServingEndpoint, ServingEndpointDetailed

from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonValue

from .house import BuildHouse, House

KEYS = [
    {"name": "all", "key": "sk-all"},
    {"name": "some", "key": "sk-some", "models": ["openai", "team-*"]},
]
TARGETS = {"targets": [{"provider": "openai"}]}
MORE = {"team-*": TARGETS, "org/model": TARGETS, "wide-*": TARGETS}
NAMES = ["openai", "databricks", "azure", "mindie", "org/model"]
VERSION = "?api-version=2024-05-01-preview"


@cache
def published(component: str) -> jsonschema.Draft202012Validator:
    spec = json.loads(files("llm_comply.specs").joinpath("openai_chat.json").read_text("utf-8"))
    return jsonschema.Draft202012Validator(
        {"$ref": f"#/components/schemas/{component}", "components": spec["components"]}
    )


@pytest.fixture
async def house(build: BuildHouse) -> House:
    return await build(keys=KEYS, more_models=MORE, protocols=["chat", "embeddings"])


async def ask(
    house: House, path: str, key: str | None = "sk-all", method: str = "GET", **headers: str
) -> tuple[int, Mapping[str, str], bytes]:
    heads = {} if key is None else {"Authorization": f"Bearer {key}"}
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, house.proxy.url + path, headers=heads | headers) as response,
    ):
        return response.status, response.headers, await response.read()


async def body_of(house: House, path: str, key: str = "sk-all") -> JsonValue:
    status, headers, raw = await ask(house, path, key)
    assert status == 200, raw
    assert headers["Content-Type"] == "application/json"
    assert headers["x-request-id"]
    return json.loads(raw)


async def test_openais_client(house: House) -> None:
    for base in (f"{house.proxy.url}/v1", f"{house.proxy.url}/openai/v1"):
        async with openai.AsyncOpenAI(base_url=base, api_key="sk-all", max_retries=0) as client:
            assert [model.id async for model in client.models.list()] == NAMES
            for name in ("azure", "org/model", "team-blue"):
                model = await client.models.retrieve(name)
                assert (model.id, model.object, model.owned_by) == (name, "model", "dragoman")
                assert model.created > 1_700_000_000
        async with openai.AsyncOpenAI(base_url=base, api_key="sk-some", max_retries=0) as client:
            assert [model.id async for model in client.models.list()] == ["openai"]
            assert (await client.models.retrieve("team-blue")).id == "team-blue"
            for name in ("azure", "nobody"):
                with pytest.raises(openai.NotFoundError, match=f"the model '{name}' does not exist here") as caught:
                    await client.models.retrieve(name)
                assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
    asked = [(got.method, got.path, got.raw) for fake in house.fakes.values() for got in fake.requests]
    assert asked == [("GET", "/v1/models", b"")], "the provider behind a pattern, once"


async def test_lists_are_as_published(house: House) -> None:
    for path in ("/v1/models", "/mindie/v1/models"):
        assert not list(published("ListModelsResponse").iter_errors(await body_of(house, path)))
        assert not list(published("Model").iter_errors(await body_of(house, f"{path}/openai")))


async def test_databricks_client(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("DATABRICKS_HOST", "DATABRICKS_TOKEN", "DATABRICKS_CONFIG_PROFILE"):
        monkeypatch.delenv(name, raising=False)

    def look(key: str) -> tuple[list[ServingEndpoint], ServingEndpointDetailed]:
        endpoints = WorkspaceClient(config=Config(host=house.proxy.url, token=key)).serving_endpoints
        with pytest.raises(errors.ResourceDoesNotExist):
            endpoints.get("nobody")
        if key == "sk-some":
            with pytest.raises(errors.ResourceDoesNotExist):
                endpoints.get("azure")
        return list(endpoints.list()), endpoints.get("openai")

    every, one = await asyncio.to_thread(look, "sk-all")
    assert [endpoint.name for endpoint in every] == NAMES
    assert {endpoint.task for endpoint in every} == {"llm/v1/chat"}
    assert one.name == "openai"
    assert one.state.ready.value == "READY"
    assert one.state.config_update.value == "NOT_UPDATING"
    assert one.permission_level.value == "CAN_QUERY"
    assert one.creation_timestamp > 1_700_000_000_000
    some, _ = await asyncio.to_thread(look, "sk-some")
    assert [endpoint.name for endpoint in some] == ["openai"]
    assert not caplog.records, "it found all that it looked for"


async def test_databricks_client_asks_about_the_host_before_it_has_a_key(house: House) -> None:
    for key in (None, "sk-wrong", "sk-all"):
        status, _, raw = await ask(house, "/.well-known/databricks-config", key)
        assert (status, json.loads(raw)) == (200, {})
    status, headers, raw = await ask(house, "/.well-known/databricks-config", None, "POST")
    assert (status, headers["Allow"]) == (405, "GET, HEAD, OPTIONS")
    assert load_validator("databricks/chat.error").accepts(json.loads(raw))


@pytest.mark.parametrize("client", [ChatCompletionsClient, EmbeddingsClient])
async def test_azures_clients(build: BuildHouse, client: type[ChatCompletionsClient | EmbeddingsClient]) -> None:
    house = await build(server={"default_model": "azure"}, protocols=["embeddings", "chat"])
    for prefix in ("", "/azure", "/models", "/azure/models"):
        endpoint = house.proxy.url + prefix
        async with client(endpoint=endpoint, credential=AzureKeyCredential("any"), retry_total=0) as asking:
            info = await asking.get_model_info()
        assert (info.model_name, info.model_type, info.model_provider_name) == ("azure", "chat_completion", "dragoman")


async def test_azure_info(house: House, build: BuildHouse) -> None:
    assert (await body_of(house, f"/info{VERSION}&model=databricks"))["model_name"] == "databricks"
    for path, status, code in (
        ("/info", 400, "missing_required_parameter"),
        (f"/azure/info{VERSION}", 400, "missing_required_parameter"),
        (f"/info{VERSION}&model=nobody", 404, "model_not_found"),
    ):
        found, headers, raw = await ask(house, path)
        assert (found, headers["x-ms-error-code"]) == (status, code), raw
        assert load_validator("azure/chat.error", "actual").accepts(json.loads(raw))
    async with ChatCompletionsClient(
        endpoint=house.proxy.url, credential=AzureKeyCredential("sk-all"), retry_total=0
    ) as client:
        with pytest.raises(HttpResponseError, match="model is required"):
            await client.get_model_info()
    only = {"targets": [{"provider": "azure", "deployment": "blue"}]}
    other = await build(more_models={"painted": only}, protocols=["embeddings"])
    status, _, raw = await ask(other, f"/info{VERSION}", None, **{"azureml-model-deployment": "blue"})
    assert json.loads(raw)["model_name"] == "painted"
    assert json.loads(raw)["model_type"] == "embeddings"


async def test_mindie(house: House) -> None:
    listed = await body_of(house, "/mindie/v1/models")
    assert [model["id"] for model in listed["data"]] == NAMES
    assert {model["owned_by"] for model in listed["data"]} == {"MindIE Server"}
    assert (await body_of(house, "/mindie/v1/models/org/model"))["id"] == "org/model"
    info = await body_of(house, "/mindie/info", "sk-some")
    assert [model["model_id"] for model in info["models"]] == ["openai"]
    assert (info["max_best_of"], info["docker_label"]) == (1, None)


ERRORS = {
    "/v1/models": "openai",
    "/v1/models/openai": "openai",
    "/openai/v1/models": "openai",
    "/api/2.0/serving-endpoints": "databricks",
    "/databricks/api/2.0/serving-endpoints/openai": "databricks",
    f"/info{VERSION}": "azure",
    f"/azure/info{VERSION}": "azure",
    "/mindie/v1/models": "mindie",
    "/mindie/v1/models/openai": "mindie",
    "/mindie/info": "mindie",
}


@pytest.mark.parametrize("path", ERRORS)
async def test_errors_are_native(house: House, path: str) -> None:
    dialect = ERRORS[path]
    profile = "documented" if dialect == "mindie" else "actual"
    for method in ("POST", "PUT", "DELETE"):
        status, headers, raw = await ask(house, path, method=method)
        assert (status, headers["Allow"]) == (405, "GET, HEAD, OPTIONS")
        assert load_validator(f"{dialect}/chat.error", profile).accepts(json.loads(raw)), raw
    for key in (None, "sk-wrong"):
        status, _, raw = await ask(house, path, key)
        assert status == 401
        assert load_validator(f"{dialect}/chat.error", profile).accepts(json.loads(raw)), raw
    assert (await ask(house, path, method="OPTIONS"))[0] == 204
    status, _, raw = await ask(house, path, method="HEAD")
    assert status == (400 if "info?" in path else 200)
    assert raw == b""


@pytest.mark.parametrize(
    "path", ["/v1/models/{}", "/api/2.0/serving-endpoints/{}", "/mindie/v1/models/{}", f"/info{VERSION}&model={{}}"]
)
async def test_unknown_and_forbidden_are_the_same(house: House, path: str) -> None:
    answers = []
    for name in ("mindia", "mindie"):
        status, headers, raw = await ask(house, path.format(name), "sk-some")
        known = {key: value for key, value in headers.items() if key.lower() not in ("date", "x-request-id")}
        answers.append((status, known, raw.replace(name.encode(), b"NAME")))
    assert answers[0] == answers[1]
    assert answers[0][0] == 404
    assert b"sk-some" not in answers[0][2]


@pytest.mark.parametrize("name", ["team-*", "wide-*", "*", "a/../b", "%2e%2e", "a%00b", "x" * 300, "..%2Fadmin"])
async def test_names_that_no_model_can_have(house: House, name: str) -> None:
    status, _, raw = await ask(house, f"/v1/models/{name}")
    assert status == 404, raw
    assert load_validator("openai/chat.error").accepts(json.loads(raw))


async def test_what_is_asked_is_logged(house: House) -> None:
    _, headers, _ = await ask(house, "/v1/models", "sk-some")
    line = house.line(headers["x-request-id"])
    assert line is not None
    assert (line["event"], line["dialect"], line["key"]) == ("model_list", "openai", "some")
