"""Databricks' Responses clients through a real socket: over providers that speak chat, and over such that speak
Responses, which are a second dragoman over the same fakes. Tools and formats are nested in the reference's form, and
flat as OpenAI's in what the service does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import aiohttp
import openai
import pytest
import pytest_asyncio
from databricks.sdk import WorkspaceClient
from databricks.sdk.config import Config as WorkspaceConfig
from openai import AsyncOpenAI

from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import start
from tests.dialects import called

from .house import House

CHAT = called("chat")
CALLED = ("openai-responses", "databricks-responses")
MODELS = CHAT + CALLED
TOOLS: list[JsonObject] = [
    {
        "type": "function",
        "function": {"name": name, "description": "d", "parameters": {"type": "object", "properties": {}}},
    }
    for name in ("get_weather", "get_time")
]
FLAT_TOOLS: list[JsonObject] = [{"type": "function", **tool["function"], "strict": False} for tool in TOOLS]
FORM: JsonObject = {
    "type": "json_schema",
    "json_schema": {
        "name": "answer",
        "schema": {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]},
    },
}
WAYS = (
    "/serving-endpoints/responses",
    "/databricks/serving-endpoints/responses",
    "/serving-endpoints/{model}/invocations",
    "/databricks/serving-endpoints/{model}/invocations",
)


@dataclass
class Endpoint:
    """What a Databricks client asks. `profile` is that in which it is served."""

    url: str
    house: House
    session: aiohttp.ClientSession
    profile: str = "actual"

    @property
    def tools(self) -> list[JsonObject]:
        return TOOLS if self.profile == "documented" else FLAT_TOOLS

    @property
    def form(self) -> JsonObject:
        return FORM if self.profile == "documented" else {"type": "json_schema", "strict": True, **FORM["json_schema"]}

    @property
    def counts(self) -> tuple[str, str]:
        """The names of the counts of tokens of the question and of the answer."""
        return (
            ("prompt_tokens", "completion_tokens")
            if self.profile == "documented"
            else ("input_tokens", "output_tokens")
        )

    async def post(self, model: str, way: int = 0, **body: JsonValue) -> tuple[int, bytes]:
        whole = {"model": model, "input": "hello", **body}
        path = WAYS[way].format(model=model)
        async with self.session.post(self.url + path, json=whole) as response:
            return response.status, await response.read()

    async def ask(self, model: str, said: str = "hello", way: int = 0, **body: JsonValue) -> JsonValue:
        body = {"input": [{"role": "user", "content": said}], **body}
        status, raw = await self.post(model, way, **body)
        assert status == 200, raw
        reply = json.loads(raw)
        self.check(reply, "reply")
        return reply

    async def events(self, model: str, said: str = "hello", way: int = 0, **body: JsonValue) -> list[JsonValue]:
        body = {"input": [{"role": "user", "content": said}], "stream": True, **body}
        status, raw = await self.post(model, way, **body)
        assert status == 200, raw
        blocks = raw.decode().removesuffix("\n\n").split("\n\n")
        assert blocks.pop() == "data: [DONE]"
        found = [json.loads(block.split("\n")[1].removeprefix("data: ")) for block in blocks]
        assert [event["sequence_number"] for event in found] == list(range(len(found)))
        for event in found:
            self.check(event, "event")
        return found

    def check(self, body: JsonValue, side: str) -> None:
        found = [v.message for v in load_validator(f"databricks/responses.{side}", self.profile).violations(body)]
        assert found == [], body


def configuration(house: House, profile: str) -> Config:
    fakes = {
        name: {"dialect": name, "base_url": fake.base_url, "api_key": "sk-upstream", "protocols": ["chat"]}
        for name, fake in house.fakes.items()
    }
    far = {
        "openai-responses": {"dialect": "openai", "base_url": house.base_url, "protocols": ["responses"]},
        "databricks-responses": {"dialect": "databricks", "base_url": house.proxy.url, "protocols": ["responses"]},
    }
    models = {name: {"targets": [{"provider": name, "model": name.removesuffix("-responses")}]} for name in MODELS}
    models["vectors"] = {"targets": [{"provider": "openai"}], "task": "embeddings"}
    server = {"port": 0, "profiles": {"databricks": profile}, "drain": {"delay": 0.001}}
    return Config.from_values({"server": server, "providers": fakes | far, "models": models})


@pytest_asyncio.fixture(params=["actual", "documented"])
async def endpoint(house: House, request: pytest.FixtureRequest) -> AsyncIterator[Endpoint]:
    running = await start(configuration(house, request.param))
    async with aiohttp.ClientSession() as session:
        yield Endpoint(running.url, house, session, request.param)
    await running.stop()


def texts(reply: JsonValue) -> str:
    blocks = [block for item in reply["output"] if item["type"] == "message" for block in item["content"]]
    return "".join(block["text"] for block in blocks if block["type"] == "output_text")


def calls(output: list[JsonObject]) -> list[JsonObject]:
    """Wherever they stand: items in `actual`, blocks of messages in `documented`."""
    blocks = [block for item in output for block in item.get("content", ())]
    return [item for item in [*output, *blocks] if item["type"] == "function_call"]


@pytest.mark.parametrize("model", MODELS)
async def test_replies_have_every_documented_key(endpoint: Endpoint, model: str) -> None:
    settings = {"instructions": "be brief", "max_output_tokens": 50, "tools": endpoint.tools, "metadata": {"k": "v"}}
    asked, answered = endpoint.counts
    for way in range(len(WAYS)):
        reply = await endpoint.ask(model, way=way, **settings)
        assert load_validator("databricks/responses.reply", "documented").known <= reply.keys()
        assert texts(reply).startswith("The dragoman bows")
        assert {key: reply[key] for key in settings} == settings
        usage = reply["usage"]
        assert usage[asked] + usage[answered] == usage["total_tokens"]


@pytest.mark.parametrize("model", MODELS)
async def test_streams_add_up(endpoint: Endpoint, model: str) -> None:
    options = {"stream_options": {"include_usage": True}} if endpoint.profile == "documented" else {}
    for way in (0, 2):
        events = await endpoint.events(model, way=way, **options)
        said = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
        last = events[-1]
        assert (last["type"], texts(last["response"])) == ("response.completed", said)
        if model != "azure":  # which does not tell, unless its server is asked in a way that not all of them take
            assert last["response"]["usage"][endpoint.counts[1]] > 0
        done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
        assert done == last["response"]["output"]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("model", MODELS)
async def test_a_loop_with_tools(endpoint: Endpoint, model: str, streamed: bool) -> None:
    asked = {"role": "user", "content": "fake:parallel-tools go"}
    if streamed:
        first = (await endpoint.events(model, input=[asked], tools=endpoint.tools))[-1]["response"]
    else:
        first = await endpoint.ask(model, input=[asked], tools=endpoint.tools)
    made = calls(first["output"])
    assert [call["name"] for call in made] == ["get_weather", "get_time"]
    output: JsonValue = {"sky": "blue"} if endpoint.profile == "documented" else '{"sky":"blue"}'
    back = [{"type": "function_call_output", "call_id": call["call_id"], "output": output} for call in made]
    again = [asked, *first["output"], *back]
    if endpoint.profile == "documented":
        said = [{key: item[key] for key in ("role", "content")} for item in first["output"] if "role" in item]
        again = [asked, *said, {"role": "user", "content": back}]
    answer = await endpoint.ask(model, input=again, tools=endpoint.tools)
    assert '{"sky":"blue"}' in texts(answer)


@pytest.mark.parametrize("model", MODELS)
async def test_structured_output(endpoint: Endpoint, model: str) -> None:
    reply = await endpoint.ask(model, "fake:json go", text={"format": endpoint.form})
    assert isinstance(json.loads(texts(reply))["ok"], bool)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("behaviour", ["reasoning", "length", "content-filter", "refusal", "json-for-stream"])
async def test_whatever_comes_is_valid(endpoint: Endpoint, model: str, behaviour: str) -> None:
    whole = await endpoint.ask(model, f"fake:{behaviour} go")
    last = (await endpoint.events(model, f"fake:{behaviour} go"))[-1]["response"]
    incomplete = behaviour in ("length", "content-filter")
    assert whole["status"] == last["status"] == ("incomplete" if incomplete else "completed")
    thoughts = [item for item in whole["output"] if item["type"] == "reasoning"]
    assert bool(thoughts) == (behaviour == "reasoning" and endpoint.profile == "actual")


Bad: TypeAlias = tuple[JsonObject, str, str]
BAD: list[Bad] = [
    ({"background": True}, "INVALID_PARAMETER_VALUE", "background"),
    ({"conversation": "c"}, "INVALID_PARAMETER_VALUE", "conversation"),
    ({"temperature": 3, "input": [{"role": "user", "content": "x"}]}, "INVALID_PARAMETER_VALUE", "temperature"),
]
BAD_IN_PROFILE: dict[str, list[Bad]] = {
    "documented": [
        ({"store": True}, "INVALID_PARAMETER_VALUE", "store"),
        ({"service_tier": "auto"}, "INVALID_PARAMETER_VALUE", "service_tier"),
        ({"input": [{"role": "system", "content": "x"}]}, "INVALID_PARAMETER_VALUE", "input[0].role"),
        ({"tools": [{"type": "web_search"}]}, "INVALID_PARAMETER_VALUE", "tools[0]"),
        ({"text": {"format": {"type": "json_schema"}}}, "INVALID_PARAMETER_VALUE", "json_schema"),
        ({"input": [{"role": "user", "content": 5}]}, "INVALID_PARAMETER_VALUE", "input[0].content"),
    ],
    "actual": [
        ({"tools": TOOLS}, "INVALID_PARAMETER_VALUE", "tools[0].name"),
        ({"text": {"format": FORM}}, "INVALID_PARAMETER_VALUE", "text.format.name"),
        ({"max_output_tokens": 1}, "INVALID_PARAMETER_VALUE", "max_output_tokens"),
    ],
}


async def test_bad_requests_get_the_native_error_and_go_nowhere(endpoint: Endpoint) -> None:
    for body, code, said in BAD + BAD_IN_PROFILE[endpoint.profile]:
        for way in (0, 2):
            status, raw = await endpoint.post("openai", way, **body)
            error = json.loads(raw)
            assert (status, error["error_code"], error.keys() - {"details"}) == (
                400,
                code,
                {"error_code", "message"},
            ), error
            assert said in error["message"]
    assert not [fake.requests for fake in endpoint.house.fakes.values() if fake.requests]


@pytest.mark.parametrize("model", MODELS)
async def test_failures_of_providers(endpoint: Endpoint, model: str) -> None:
    asked = {"input": [{"role": "user", "content": "fake:rate-limit go"}]}
    status, raw = await endpoint.post(model, **asked)
    assert (status, json.loads(raw)["error_code"]) == (429, "REQUEST_LIMIT_EXCEEDED")
    for behaviour in ("cut", "error-event"):
        *_, error, failed = await endpoint.events(model, f"fake:{behaviour} go")
        assert (error["type"], failed["type"]) == ("error", "response.failed")
        assert error["error_code"]
        assert error["message"] == error["error"]["message"]


async def test_the_body_chooses_the_protocol(endpoint: Endpoint) -> None:
    async def invoke(model: str, body: JsonObject) -> tuple[int, JsonValue]:
        path = f"{endpoint.url}/serving-endpoints/{model}/invocations"
        async with endpoint.session.post(path, json=body) as response:
            return response.status, await response.json()

    items = {"model": "openai", "input": [{"role": "user", "content": "hello"}]}
    status, reply = await invoke("openai", items)
    assert (status, reply["object"]) == (200, "response")
    status, reply = await invoke("openai", {"messages": items["input"], "stream": False})
    assert (status, bool(reply["choices"])) == (200, True)
    for model, body, said in (
        ("vectors", items, "input[0] must be of type string, got object"),
        ("openai", {"input": "x"}, "the provider openai is not used for embeddings"),
        ("openai", {"prompt": "x", "stream": False}, "the model's provider does not serve completions"),
    ):
        status, error = await invoke(model, body)
        assert (status, error["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
        assert said in error["message"]


# Clients made by others. Both look for Databricks' address of OpenAI's form, or name the endpoint in the address.


@pytest.fixture
async def served(house: House) -> AsyncIterator[str]:
    running = await start(configuration(house, "actual"))
    yield running.url
    await running.stop()


@pytest.mark.parametrize("model", MODELS)
async def test_openais_client_at_databricks_address(served: str, model: str) -> None:
    async with AsyncOpenAI(base_url=f"{served}/serving-endpoints", api_key="any", max_retries=0) as client:
        async with client.responses.stream(model=model, input="hello", tools=FLAT_TOOLS) as stream:
            async for _ in stream:
                pass
            final = await stream.get_final_response()
        assert final.output_text.startswith("The dragoman bows")
        assert final.usage is not None or model == "azure"
        assert final.usage is None or final.usage.input_tokens + final.usage.output_tokens == final.usage.total_tokens
        tool: Any = final.tools[0]
        assert tool.name == "get_weather"
        with pytest.raises(openai.BadRequestError, match="background"):
            await client.responses.create(model=model, input="x", background=True)


@pytest.mark.parametrize("model", MODELS)
async def test_databricks_own_client(served: str, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its `query` asks with `input`, and keeps of a response what it knows: the model, the id and the total count."""
    for name in ("DATABRICKS_HOST", "DATABRICKS_TOKEN", "DATABRICKS_CONFIG_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    items = [{"role": "user", "content": "hello"}]

    def ask() -> tuple[JsonValue, JsonValue]:
        client = WorkspaceClient(config=WorkspaceConfig(host=served, token="any"))
        known = client.serving_endpoints.query(model, input=items)
        raw = client.api_client.do("POST", f"/serving-endpoints/{model}/invocations", body={"input": items})
        return known, raw

    known, raw = await asyncio.to_thread(ask)
    assert known.id.startswith("resp_")
    assert (known.usage.prompt_tokens, known.usage.total_tokens) == (None, raw["usage"]["total_tokens"])
    assert texts(raw).startswith("The dragoman bows")
