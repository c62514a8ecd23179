"""Engine processes over tiny models, and HTTP clients for their sockets."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import aiohttp
from aiohttp.client import _RequestContextManager

from dragoman.adapters.call import JsonObject

PLAIN_ENGINE = Path(__file__).parent / "process" / "plain_engine.py"


@dataclass
class EngineProcess:
    """A running engine process and an HTTP session on its socket."""

    process: asyncio.subprocess.Process
    session: aiohttp.ClientSession
    socket: Path

    async def get(self, path: str) -> tuple[int, JsonObject]:
        async with self.session.get(f"http://engine{path}") as response:
            return response.status, await response.json()

    async def wait_until_ready(self) -> JsonObject:
        """Wait for /health to report `ready`; return its body."""
        for _ in range(400):
            try:
                status, body = await self.get("/health")
            except aiohttp.ClientConnectorError:
                status = 0
            if status == 200:
                return body
            await asyncio.sleep(0.05)
        raise AssertionError("the engine is not ready")

    async def wait_for(self, **expected: int) -> None:
        """Wait for /health to show these values."""
        body: JsonObject = {}
        for _ in range(200):
            body = await self.wait_until_ready()
            if all(body[name] == value for name, value in expected.items()):
                return
            await asyncio.sleep(0.01)
        raise AssertionError(f"{body} never showed {expected}")

    def post_chat(
        self, text: str = "Hi", *, stream: bool = False, max_tokens: int | None = None
    ) -> _RequestContextManager:
        """Post a chat request with one message."""
        body: JsonObject = {"model": "tiny", "messages": [{"role": "user", "content": text}], "stream": stream}
        if max_tokens is not None:
            body["max_tokens"] = max_tokens
        return self.session.post("http://engine/v1/chat/completions", json=body)

    async def is_listening(self) -> bool:
        try:
            await self.get("/health")
        except aiohttp.ClientConnectorError:
            return False
        return True


class Launch(Protocol):
    """Starts an engine process; `slow` is a number of seconds per step."""

    async def __call__(self, *options: str, slow: float = 0, model: str | None = None) -> EngineProcess: ...
