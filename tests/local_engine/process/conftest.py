"""Engine processes of their own, over tiny models."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import aiohttp
import pytest

PLAIN = Path(__file__).parent / "plain_engine.py"


@dataclass
class Process:
    process: asyncio.subprocess.Process
    session: aiohttp.ClientSession
    socket: Path

    async def get(self, path: str) -> tuple[int, Any]:
        async with self.session.get(f"http://engine{path}") as answer:
            return answer.status, await answer.json()

    async def health(self) -> Any:
        for _ in range(400):
            try:
                status, body = await self.get("/health")
            except aiohttp.ClientConnectorError:
                status = 0
            if status == 200:
                return body
            await asyncio.sleep(0.05)
        raise AssertionError("the engine is not ready")

    def ask(self, text: str = "Hi", path: str = "/v1/chat/completions", **more: Any) -> Any:
        body = {"model": "tiny", "messages": [{"role": "user", "content": text}], **more}
        return self.session.post(f"http://engine{path}", json=body)


Launch: TypeAlias = Callable[..., Awaitable[Process]]


@pytest.fixture
async def launch(folders: Any, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Launch]:
    """launch(*options, slow=seconds) is a plain engine process, not yet ready."""
    started: list[Process] = []

    async def get(*options: str, slow: float = 0, model: str | None = None) -> Process:
        socket = tmp_path_factory.mktemp("s") / "engine.sock"
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(PLAIN), "--socket", str(socket), "--attached", "--threads", "1"),
            *("--model-dir", model or str(folders()), "--name", "tiny", "--device", "cpu", *options),
            stdin=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"SLOW": str(slow), "PYTHONPATH": ":".join(sys.path)},
        )
        connector = aiohttp.UnixConnector(str(socket), limit=0)
        started.append(Process(process, aiohttp.ClientSession(connector=connector), socket))
        return started[-1]

    yield get
    for one in started:
        await one.session.close()
        if one.process.returncode is None:
            one.process.kill()
        await one.process.communicate()
