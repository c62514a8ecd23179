"""Anthropic's own package as the client, dragoman, and a server of Messages that records what it is asked."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Protocol

import anthropic
import pytest
from aiohttp import web

from dragoman.adapters import dialects
from dragoman.contract.json_types import JsonObject
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import RunningProxy, start

MESSAGE: JsonObject = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [{"type": "text", "text": "Hello!"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 2, "output_tokens": 1},
}
EVENTS: list[JsonObject] = [
    {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "lo!"}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 1},
    },
    {"type": "message_stop"},
]


@dataclass
class Asked:
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: JsonObject


@dataclass
class MessagesServer:
    """Answers every request in the same way: with `status` and `reply`, or `events` if a stream is asked for."""

    status: int = 200
    reply: JsonObject = field(default_factory=lambda: MESSAGE)
    events: list[JsonObject] = field(default_factory=lambda: EVENTS)
    headers: dict[str, str] = field(default_factory=dict)
    missing: frozenset[str] = frozenset()
    asked: list[Asked] = field(default_factory=list)
    url: str = ""

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.asked.append(Asked(request.path, dict(request.query), request.headers.copy(), body))
        if request.path in self.missing:
            return web.json_response(
                {"type": "error", "error": {"type": "not_found_error", "message": "Not Found"}}, status=404
            )
        if self.status != 200:
            return web.json_response(self.reply, status=self.status, headers=self.headers)
        if request.path.endswith("/count_tokens"):
            return web.json_response({"input_tokens": 42})
        if body.get("stream"):
            text = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in self.events)
            return web.Response(text=text, content_type="text/event-stream", headers=self.headers)
        return web.json_response(self.reply, headers=self.headers)


@dataclass
class House:
    server: MessagesServer
    proxy: RunningProxy
    client: anthropic.AsyncAnthropic
    log: io.BytesIO

    @property
    def asked(self) -> Asked:
        (one,) = self.server.asked
        return one

    @property
    def exchanges(self) -> list[JsonObject]:
        lines = [json.loads(line) for line in self.log.getvalue().splitlines()]
        return [line for line in lines if line["event"] == "exchange"]


class Build(Protocol):
    """Starts a house. `provider` and `config` are more of its configuration."""

    async def __call__(
        self, upstream: MessagesServer | None = None, *, provider: JsonObject | None = None, **config: object
    ) -> House: ...


@pytest.fixture
async def build() -> AsyncIterator[Build]:
    async with AsyncExitStack() as stack:

        async def make(
            upstream: MessagesServer | None = None, *, provider: JsonObject | None = None, **config: object
        ) -> House:
            server = upstream or MessagesServer()
            app = web.Application()
            app.router.add_post("/{path:.*}", server.answer)
            runner = web.AppRunner(app)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            assert runner.addresses
            server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            settings = {
                "dialect": "anthropic",
                "base_url": server.url,
                "api_key": "sk-upstream-key",
                **(provider or {}),
            }
            given = {
                "server": {"port": 0, "drain": {"delay": 0.001, "timeout": 5}, **config.pop("server", {})},  # type: ignore[dict-item]
                "providers": {"p": settings},
                "models": {"m": {"targets": [{"provider": "p", "model": "claude"}]}},
                "store": {"kind": "none"},
                "retries": {"attempts": 1},
                **config,
            }
            log = io.BytesIO()
            proxy = await start(Config.from_values(given), dialects=dialects, log_stream=log)
            stack.push_async_callback(proxy.stop)
            client = anthropic.AsyncAnthropic(api_key="sk-client", base_url=proxy.url, max_retries=0)
            stack.push_async_callback(client.close)
            return House(server, proxy, client, log)

        yield make


@pytest.fixture
async def house(build: Build) -> House:
    return await build()
