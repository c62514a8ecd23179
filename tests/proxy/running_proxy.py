"""A running proxy, what it answers and what it logs."""

from __future__ import annotations

import asyncio
import io
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import aiohttp

from dragoman.adapters.dialect import Dialect
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.proxy.server.lifecycle import RunningProxy

from .scripted_upstream import Upstream

__all__ = ["Answer", "Provider", "Proxy", "StartProxy"]

Provider: TypeAlias = Upstream | JsonObject | int
"""An upstream, the settings of a provider, or a port."""


@dataclass
class Proxy:
    running: RunningProxy
    log: io.BytesIO
    session: aiohttp.ClientSession

    @property
    def port(self) -> int:
        return self.running.port

    @property
    def url(self) -> str:
        return f"{self.running.url}/v1/chat/completions"

    @property
    def lines(self) -> list[JsonObject]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]

    async def exchanges(self, count: int = 1) -> list[JsonObject]:
        """The lines of finished exchanges, once there are that many."""
        for _ in range(200):
            found = [line for line in self.lines if line["event"] == "exchange"]
            if len(found) >= count:
                return found
            await asyncio.sleep(0.01)
        raise AssertionError(f"there were not {count} exchanges: {self.lines}")

    async def ask(self, *, headers: dict[str, str] | None = None, **body: JsonValue) -> Answer:
        payload = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **body}
        async with self.session.post(self.url, json=payload, headers=headers) as response:
            try:
                text = await response.read()
            except aiohttp.ClientPayloadError:
                return Answer(response.status, response.headers, b"", broken=True)
            return Answer(response.status, response.headers, text)

    async def raw(self, data: bytes, *, eof: bool = False) -> bytes:
        """Send bytes, read until the proxy closes the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        if eof:
            writer.write_eof()
        try:
            return await asyncio.wait_for(reader.read(), 5)
        finally:
            writer.close()


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    text: bytes
    broken: bool = False

    @property
    def json(self) -> JsonValue:
        return json.loads(self.text)

    @property
    def error(self) -> JsonValue:
        return self.json["error"]

    @property
    def events(self) -> list[JsonValue]:
        data = [event.removeprefix(b"data: ") for event in self.text.split(b"\n\n") if event]
        return [event.decode() if event == b"[DONE]" else json.loads(event) for event in data]


class StartProxy(Protocol):
    """Starts a proxy; `config` is more of its configuration."""

    async def __call__(
        self,
        *providers: Provider,
        speak: Mapping[str, Dialect] | None = None,
        random: random.Random | None = None,
        **config: JsonValue,
    ) -> Proxy: ...
