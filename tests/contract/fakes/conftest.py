"""A client for the fakes: it sends a small chat request and keeps what comes back, whole or broken."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import aiohttp
import pytest

from dragoman.adapters.sse import Event, Framer, Item
from dragoman.contract.fakes import FakeProvider

PATHS = {
    "openai": "/chat/completions",
    "databricks": "/serving-endpoints/llama/invocations",
    "azure": "/chat/completions?api-version=2024-05-01-preview",
    "mindie": "/v1/chat/completions",
}


@dataclass
class Heard:
    """A reply as the client saw it; `error` is how it broke, where it did."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes = b""
    error: Exception | None = None

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    @property
    def items(self) -> list[Item]:
        framer = Framer(limit=64 * 1024 * 1024)
        return [*framer.feed(self.raw), *framer.close()]

    @property
    def events(self) -> list[Any]:
        """The events' JSON; `[DONE]` stays text."""
        datas = [item.data for item in self.items if isinstance(item, Event)]
        return [data.decode() if data == b"[DONE]" else json.loads(data) for data in datas]

    @property
    def chunks(self) -> list[Any]:
        return [event for event in self.events if event != "[DONE]"]

    @property
    def done(self) -> int:
        return self.events.count("[DONE]")

    @property
    def deltas(self) -> list[Any]:
        return [choice.get("delta") for chunk in self.chunks for choice in chunk["choices"]]

    @property
    def text(self) -> str:
        return "".join(delta["content"] for delta in self.deltas if delta and isinstance(delta.get("content"), str))

    @property
    def finishes(self) -> list[str]:
        reasons = [choice["finish_reason"] for chunk in self.chunks for choice in chunk["choices"]]
        return [reason for reason in reasons if reason is not None]


Send: TypeAlias = Callable[..., Awaitable[Heard]]


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as client:
        yield client


@pytest.fixture
def send(session: aiohttp.ClientSession) -> Send:
    async def send(fake: FakeProvider, says: str = "Hello", **options: Any) -> Heard:
        """Keywords that are no option go into the body."""
        headers, wait = options.pop("headers", {}), options.pop("wait", 5.0)
        body = {"model": "llama", "messages": [{"role": "user", "content": says}], **options}
        heard = Heard()
        limits = aiohttp.ClientTimeout(sock_read=wait)
        url = fake.base_url + PATHS[fake.dialect]
        try:
            async with session.post(url, json=body, headers=headers, timeout=limits, allow_redirects=False) as response:
                heard.status, heard.headers = response.status, dict(response.headers)
                async for data in response.content.iter_any():
                    heard.raw += data
        except (aiohttp.ClientError, TimeoutError) as error:
            heard.error = error
        return heard

    return send
