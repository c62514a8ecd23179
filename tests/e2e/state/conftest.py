"""A proxy over providers that speak only chat, and over one that speaks Responses and keeps them itself."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest_asyncio
from aiohttp import web
from openai import AsyncOpenAI
from openai.types.responses import Response

from dragoman.contract.fakes import FakeProvider
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import RunningProxy, start
from tests.dialects import called

CHAT = called("chat")


@dataclass
class Native:
    """A provider that speaks Responses. `says` is what it says of `store`: None for what it was asked."""

    keeps: bool = True
    says: bool | None = None
    breaks: bool = False
    complaint: str = ""
    down: bool = False
    hang_ups: int = 0
    asked: list[JsonValue] = field(default_factory=list)
    kept: dict[str, list[JsonValue]] = field(default_factory=dict)
    base_url: str = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.asked.append(body)
        if self.hang_ups:
            self.hang_ups -= 1
            assert request.transport is not None
            request.transport.abort()
        if self.down:
            return web.json_response({"error": {"message": "overloaded"}}, status=503)
        previous = body.get("previous_response_id")
        if previous is not None and previous not in self.kept:
            error = {"message": f"Previous response with id '{previous}' not found.", "type": "invalid_request_error",
                     "param": "previous_response_id", "code": "previous_response_not_found"}  # fmt: skip
            return web.json_response({"error": error}, status=400)
        given = body["input"]
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        whole = [*self.kept.get(previous, ()), *items]
        reply = self.reply(body, whole)
        if self.keeps and body.get("store") is not False:
            self.kept[reply["id"]] = [*whole, *reply["output"]]
        if not body.get("stream"):
            return web.json_response(reply)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for number, event in enumerate(self.events(reply)):
            event["sequence_number"] = number
            await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        return response

    def reply(self, body: JsonValue, whole: list[JsonValue]) -> JsonValue:
        number, last = len(self.asked), whole[-1]
        if last.get("type") == "function_call_output":
            text = f"The tools said: {last['output']}"
        else:
            text = f"You have said {sum(item.get('role') == 'user' for item in whole)} things"
        content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
        message = {"type": "message", "id": f"msg_{number}", "status": "completed", "role": "assistant"}
        output: list[JsonObject] = [{**message, "content": content}]
        if "fake:tools" in str(last.get("content")):
            call = {"call_id": f"call_{number}", "name": "get_weather", "arguments": "{}", "status": "completed"}
            output = [{"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "sealed"},
                      {"type": "function_call", "id": f"fc_{number}", **call}]  # fmt: skip
        said = body.get("store") is not False if self.says is None else self.says
        return {"id": f"resp_{number}", "object": "response", "created_at": 1750000000, "status": "completed",
                "model": body["model"], "output": output, "store": said,
                "previous_response_id": body.get("previous_response_id"),
                "usage": {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 2,
                          "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 3}}  # fmt: skip

    def events(self, reply: JsonValue) -> Iterator[JsonObject]:
        begun = {**reply, "status": "in_progress", "output": [], "usage": None}
        yield {"type": "response.created", "response": begun}
        for index, item in enumerate(reply["output"]):
            yield {"type": "response.output_item.added", "output_index": index, "item": item}
            yield {"type": "response.output_item.done", "output_index": index, "item": item}
        if self.complaint:
            yield {"type": "error", "message": self.complaint}
        if not self.breaks:
            yield {"type": "response.completed", "response": reply}


@dataclass
class Place:
    """A proxy whose models are named like what is behind them."""

    running: RunningProxy
    native: Native
    fakes: dict[str, FakeProvider]
    log: io.BytesIO

    def client(self, key: str = "any") -> AsyncOpenAI:
        return AsyncOpenAI(base_url=f"{self.running.url}/v1", api_key=key, max_retries=0)

    async def ask(self, client: AsyncOpenAI, streamed: bool, **body: JsonValue) -> Response:
        """A response, whole or from the end of a stream, where its id is the same from the first event to the last."""
        if not streamed:
            return await client.responses.create(**body)
        found = [
            event.response
            async for event in await client.responses.create(stream=True, **body)
            if hasattr(event, "response")
        ]
        assert len({each.id for each in found}) == 1
        assert {(each.store, each.previous_response_id) for each in found} == {
            (found[-1].store, body.get("previous_response_id"))
        }
        return found[-1]

    async def raw(self, method: str, path: str, key: str = "any") -> tuple[int, JsonValue]:
        headers = {"Authorization": f"Bearer {key}"}
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, f"{self.running.url}{path}", headers=headers) as response,
        ):
            return response.status, await response.json()

    def spoken(self, kind: str) -> list[tuple[str, str]]:
        """Who said what in the conversation that reached a chat provider last."""
        found = []
        for message in self.fakes[kind].requests[-1].body["messages"]:
            content = message.get("content")
            text = content if isinstance(content, str) else " ".join(part["text"] for part in content or ())
            found.append((message["role"], text))
        return found


Build = Callable[..., Awaitable[Place]]


@pytest_asyncio.fixture
async def place_of(tmp_path: Path) -> AsyncIterator[Build]:
    """Starts proxies over the same providers. What is given is configuration."""
    native = Native()
    app = web.Application()
    for path in ("/v1/responses", "/serving-endpoints/responses"):
        app.router.add_post(path, native.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    native.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    fakes = {name: FakeProvider(name) for name in CHAT}
    for fake in fakes.values():
        await fake.start()
    started: list[RunningProxy] = []

    async def build(**more: JsonValue) -> Place:
        kind = {"databricks": {"kind": "provisioned-throughput"}}
        providers: JsonObject = {
            name: {"dialect": name, "base_url": fake.base_url, **kind.get(name, {})} for name, fake in fakes.items()
        }
        providers["native"] = {"dialect": "openai", "base_url": native.base_url, "protocols": ["responses"]}
        providers["native"]["api_key"] = "sk-upstream"
        origin = native.base_url.removesuffix("/v1")
        providers["lakehouse"] = {"dialect": "databricks", "base_url": origin, "protocols": ["responses"]}
        target = {"model": "fake-model", "reasoning_replay": "keep"}
        models = {name: {"targets": [{"provider": name, **target}]} for name in providers}
        models["both"] = {"targets": [{"provider": "native", "model": "fake-model"}], "fallbacks": ["mindie"]}
        whole = {
            "server": {"port": 0, "drain": {"delay": 0.001}},
            "store": {"path": str(tmp_path / "responses.db")},
            "providers": providers,
            "models": models,
            **more,
        }
        log = io.BytesIO()
        started.append(await start(Config.from_values(whole), log_stream=log))
        return Place(started[-1], native, fakes, log)

    yield build
    for running in started:
        await running.stop()
    for fake in fakes.values():
        await fake.stop()
    await runner.cleanup()


@pytest_asyncio.fixture
async def place(place_of: Build) -> Place:
    return await place_of()


@pytest_asyncio.fixture
async def client(place: Place) -> AsyncIterator[AsyncOpenAI]:
    async with place.client() as client:
        yield client
