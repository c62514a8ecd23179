"""Azure's own client through a real socket, over each provider's dialect."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from azure.ai.inference.aio import ChatCompletionsClient
from azure.ai.inference.models import (
    AssistantMessage,
    ChatCompletionsToolDefinition,
    FunctionDefinition,
    JsonSchemaFormat,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    IncompleteReadError,
    ResourceNotFoundError,
)

from dragoman.contract.json_types import JsonObject, JsonValue
from tests.dialects import DIALECTS

from .house import BuildHouse, House

HELLO: list[JsonValue] = [UserMessage("hello")]
WEATHER = ChatCompletionsToolDefinition(
    function=FunctionDefinition(
        name="get_weather",
        description="Weather of a city",
        parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    )
)


def make_client(url: str, key: str = "any") -> ChatCompletionsClient:
    return ChatCompletionsClient(endpoint=url, credential=AzureKeyCredential(key), retry_total=0)


@pytest_asyncio.fixture
async def client(house: House) -> AsyncIterator[ChatCompletionsClient]:
    async with make_client(house.proxy.url) as client:
        yield client


def told(behaviour: str) -> list[UserMessage]:
    return [UserMessage(f"fake:{behaviour} go")]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_chat(client: ChatCompletionsClient, dialect: str) -> None:
    reply = await client.complete(
        messages=[SystemMessage("be brief"), *HELLO], model=dialect, temperature=0.5, max_tokens=20, stop=["END"]
    )
    choice = reply.choices[0]
    assert choice.finish_reason == "stop"
    assert choice.message.role == "assistant"
    assert isinstance(choice.message.content, str)
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


async def test_every_prefix(house: House) -> None:
    for prefix in ("", "/azure", "/models", "/azure/models"):
        endpoint = house.proxy.url + prefix
        async with make_client(endpoint) as client:
            assert (await client.complete(messages=HELLO, model="openai")).choices


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_stream_adds_up_to_the_whole_reply(client: ChatCompletionsClient, dialect: str) -> None:
    whole = await client.complete(messages=HELLO, model=dialect)
    updates = [update async for update in await client.complete(messages=HELLO, model=dialect, stream=True)]
    choices = [choice for update in updates for choice in update.choices]
    assert "".join(choice.delta.content or "" for choice in choices) == whole.choices[0].message.content
    assert [choice.finish_reason for choice in choices if choice.finish_reason] == ["stop"]
    assert [choice.delta.role for choice in choices if choice.delta.role] == ["assistant"]
    assert len({(update.id, update.created, update.model) for update in updates}) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_tools_and_their_results(client: ChatCompletionsClient, dialect: str) -> None:
    asked = told("tools")
    reply = await client.complete(messages=asked, model=dialect, tools=[WEATHER], tool_choice="auto")
    assert reply.choices[0].finish_reason == "tool_calls"
    (call,) = reply.choices[0].message.tool_calls
    assert call.function.name == "get_weather"
    assert json.loads(call.function.arguments).keys() == {"city"}
    history = [*asked, AssistantMessage(tool_calls=[call]), ToolMessage("21 degrees", tool_call_id=call.id)]
    answer = await client.complete(messages=history, model=dialect, tools=[WEATHER])
    assert answer.choices[0].finish_reason == "stop"
    assert "21 degrees" in answer.choices[0].message.content


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_streamed_tool_calls(client: ChatCompletionsClient, dialect: str) -> None:
    updates = await client.complete(messages=told("tools"), model=dialect, tools=[WEATHER], stream=True)
    parts = [part async for update in updates for choice in update.choices for part in choice.delta.tool_calls or []]
    assert [part.function.name for part in parts if part.function.name] == ["get_weather"]
    assert json.loads("".join(part.function.arguments or "" for part in parts)).keys() == {"city"}


@pytest.mark.parametrize("dialect", [dialect for dialect in DIALECTS if dialect != "azure"])
async def test_a_schema_for_the_answer(client: ChatCompletionsClient, dialect: str) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    form = JsonSchemaFormat(name="person", schema=schema, strict=True)
    reply = await client.complete(messages=told("json"), model=dialect, response_format=form)
    assert json.loads(reply.choices[0].message.content).keys() == {"name"}


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_extras_that_nobody_knows(house: House, client: ChatCompletionsClient, dialect: str) -> None:
    """With `model_extras` the client asks for them to be passed on; Databricks' servers would refuse them."""
    await client.complete(messages=HELLO, model=dialect, model_extras={"made_up": 1})
    body = house.fakes[dialect].requests[-1].body
    assert body.get("made_up") == (None if dialect == "databricks" else 1)


async def test_extras_that_are_another_dialects_parameters(house: House, client: ChatCompletionsClient) -> None:
    for dialect in ("openai", "mindie"):
        reply = await client.complete(messages=HELLO, model=dialect, model_extras={"n": 2, "top_k": 5})
        assert len(reply.choices) == 2
        assert house.fakes[dialect].requests[-1].body["top_k"] == 5


async def test_extras_go_through_to_azure(house: House, client: ChatCompletionsClient) -> None:
    await client.complete(messages=HELLO, model="azure", model_extras={"n": 2, "top_k": 5})
    assert house.fakes["azure"].requests[-1].body.items() >= {"n": 2, "top_k": 5}.items()
    assert house.fakes["azure"].requests[-1].headers["extra-parameters"] == "pass-through"


ERRORS = {
    "status-400": (HttpResponseError, 400),
    "status-401": (HttpResponseError, 502),
    "status-404": (ResourceNotFoundError, 404),
    "status-422": (HttpResponseError, 422),
    "rate-limit": (HttpResponseError, 429),
    "status-500": (HttpResponseError, 500),
    "status-503": (HttpResponseError, 503),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("streamed", [False, True])
async def test_errors_keep_their_class(client: ChatCompletionsClient, dialect: str, streamed: bool) -> None:
    for behaviour, (error, status) in ERRORS.items():
        with pytest.raises(HttpResponseError) as caught:
            await client.complete(messages=told(behaviour), model=dialect, stream=streamed)
        assert (caught.type, caught.value.status_code) == (error, status)
        body = parts(caught.value)
        assert body["message"]
        assert body["status"] == status
        shown = caught.value.error
        assert shown is not None
        assert shown.message == body["message"]
        assert shown.message in str(caught.value)
        assert shown.code == caught.value.response.headers["x-ms-error-code"]


def parts(error: HttpResponseError) -> JsonObject:
    response: Any = error.response
    return json.loads(response.text())


async def test_a_422_tells_its_parts(client: ChatCompletionsClient) -> None:
    """As the reference's own example reads them."""
    with pytest.raises(HttpResponseError) as ours:
        await client.complete(messages=HELLO, model="openai", temperature=3.1)
    assert ours.value.status_code == 422
    body = parts(ours.value)
    assert body["detail"] == {"loc": ["body", "temperature"], "value": "3.1"}
    assert body["code"] == "parameter_not_supported"
    assert str(ours.value).startswith("(parameter_not_supported) temperature")
    (reason,) = body["error"]["details"]
    assert (reason["loc"], reason["input"]) == (["body", "temperature"], 3.1)
    for behaviour in ("azure-422-a", "azure-422-b", "azure-422-c"):
        with pytest.raises(HttpResponseError) as theirs:
            await client.complete(messages=told(f"{behaviour}(param=response_format)"), model="azure")
        body = parts(theirs.value)
        assert body["detail"] == {"loc": ["body", "response_format"], "value": "fake"}
        assert body["code"] == "parameter_not_supported"


async def test_the_key(build: BuildHouse) -> None:
    house = await build(keys=[{"name": "me", "key": "sk-mine"}])
    async with make_client(house.proxy.url, "sk-mine") as client:
        assert (await client.complete(messages=HELLO, model="openai")).choices
    async with make_client(house.proxy.url, "sk-other") as client:
        with pytest.raises(ClientAuthenticationError) as caught:
            await client.complete(messages=HELLO, model="openai")
    assert caught.value.status_code == 401


async def test_a_model_that_is_not_there(client: ChatCompletionsClient) -> None:
    with pytest.raises(ResourceNotFoundError) as caught:
        await client.complete(messages=HELLO, model="opena")
    assert "did you mean openai?" in parts(caught.value)["message"]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_broken_stream_raises(client: ChatCompletionsClient, dialect: str) -> None:
    """This client overlooks error events, so the connection breaks after them."""
    for behaviour in ("cut", "cut-clean", "malformed-event", "error-event", "bare-text"):
        seen = []
        with pytest.raises(IncompleteReadError):
            async for update in await client.complete(messages=told(behaviour), model=dialect, stream=True):
                seen.append(update)
        assert seen, "what came before the failure was delivered"
