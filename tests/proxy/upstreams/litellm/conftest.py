"""A fake of a foreign wire format, Anthropic's Messages, and a proxy that reaches it through litellm.

litellm takes seconds to load, so the proxies of one test process share one process of it; `test_process.py` has proxies
that start their own. The fake is written after Anthropic's API reference (Messages, streaming): named events, content
blocks, errors in mid-stream.
"""

from __future__ import annotations

import asyncio
import importlib.util
import io
import json
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import aiohttp
import pytest
from aiohttp import web

from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import RunningProxy, start
from dragoman.proxy.telemetry.log import Log
from dragoman.proxy.upstreams.litellm import upstream
from dragoman.proxy.upstreams.supervision.process import Command, isolated_environment
from dragoman.proxy.upstreams.supervision.supervisor import Supervisor

KEY = "sk-ant-canary-0123456789"
FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if importlib.util.find_spec("litellm") is not None:
        return
    skip = pytest.mark.skip(
        reason="litellm is not installed here: .ci/run runs these tests in an environment that has it"
    )
    for item in items:
        if item.path.parent == FOLDER and item.path.name != "test_not_installed.py":
            item.add_marker(skip)


Step = bytes | float | str


def event(body: JsonObject) -> bytes:
    return f"event: {body['type']}\ndata: {json.dumps(body)}\n\n".encode()


def started() -> bytes:
    usage = {"input_tokens": 3, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": []}
    return event({"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}})


def text(*parts: str, index: int = 0) -> bytes:
    begin = {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}
    deltas = [
        {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": part}} for part in parts
    ]
    return b"".join(map(event, [begin, *deltas, {"type": "content_block_stop", "index": index}]))


def tool(*parts: str, index: int = 0) -> bytes:
    block = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}}
    deltas = [
        {"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": part}}
        for part in parts
    ]
    begin = {"type": "content_block_start", "index": index, "content_block": block}
    return b"".join(map(event, [begin, *deltas, {"type": "content_block_stop", "index": index}]))


def stopped(reason: str = "end_turn") -> bytes:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return event({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}}) + event(
        {"type": "message_stop"}
    )


def message(*content: JsonObject, reason: str = "end_turn") -> bytes:
    whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": list(content)}
    usage = {"input_tokens": 3, "output_tokens": 7}
    return json.dumps({**whole, "stop_reason": reason, "stop_sequence": None, "usage": usage}).encode()


def failed(kind: str, words: str) -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": words}}).encode()


@dataclass
class Messages:
    """Plays `script`: bytes are sent, a number is a pause, `cut` breaks the connection, `hang` waits for its end."""

    script: list[Step] = field(default_factory=list)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str], JsonValue]] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""

    def says(self, *script: Step, status: int = 200, **headers: str) -> None:
        self.script, self.status = list(script), status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.json()
        self.requests.append((request.path, dict(request.headers), body))
        self.asked.set()
        streamed = self.status == 200 and body.get("stream") is True
        media_type = "text/event-stream" if streamed else "application/json"
        response = web.StreamResponse(status=self.status, headers={"Content-Type": media_type, **self.headers})
        await response.prepare(request)
        try:
            for step in self.script:
                await self._play(step, request, response)
        except (ConnectionError, asyncio.CancelledError):
            self.left.set()
            raise
        return response

    async def _play(self, step: Step, request: web.BaseRequest, response: web.StreamResponse) -> None:
        if isinstance(step, bytes):
            await response.write(step)
        elif step == "cut":
            assert request.transport is not None
            request.transport.abort()
        else:
            await asyncio.sleep(60 if step == "hang" else float(step))


@pytest.fixture
async def fake() -> AsyncIterator[Messages]:
    messages = Messages()
    runner = web.ServerRunner(web.Server(messages, handler_cancellation=True), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    messages.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield messages
    await runner.cleanup()


class SharedProcess(Supervisor):
    """Stands in for a supervisor: the process runs already, and goes on after the proxy."""

    def __init__(self, socket: Path) -> None:
        super().__init__("litellm", Command(upstream.COMMAND, isolated_environment), 60)
        self.socket = socket

    async def start(self, log: Log) -> JsonObject:
        self._up.set()
        return {}


@pytest.fixture(scope="session")
def litellm_socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("l")
    socket = folder / "server.sock"
    command = [*upstream.COMMAND, "--attached", "--socket", str(socket)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, env=isolated_environment(folder), cwd=folder)
    try:
        asyncio.run(until_ready(socket, process))
        yield socket
    finally:
        process.kill()
        process.communicate()


async def until_ready(socket: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(socket))) as session:
        while time.monotonic() < deadline and process.poll() is None:
            try:
                async with session.get("http://litellm/health") as reply:
                    if reply.status == 200:
                        return
            except aiohttp.ClientConnectorError:
                pass
            await asyncio.sleep(0.05)
    raise AssertionError(f"litellm's process is not ready, status {process.poll()}")


@pytest.fixture
def shared_process(litellm_socket: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream, "create_supervisor", lambda: SharedProcess(litellm_socket))


@dataclass
class Proxy:
    running: RunningProxy
    log: io.BytesIO

    @property
    def url(self) -> str:
        return f"{self.running.url}/v1"

    async def exchange(self) -> JsonValue:
        """The line of the last exchange."""
        for _ in range(200):
            lines = [json.loads(line) for line in self.log.getvalue().splitlines()]
            if found := [line for line in lines if line["event"] == "exchange"]:
                return found[-1]
            await asyncio.sleep(0.01)
        raise AssertionError("there was no exchange")


class StartProxy(Protocol):
    """Starts a proxy whose model "m" has one target at a provider of litellm; `rest` is more of the configuration."""

    async def __call__(
        self, target: JsonObject | None = None, *, provider: JsonObject | None = None, **rest: JsonValue
    ) -> Proxy: ...


def configured(provider: JsonObject, target: JsonObject | None = None, **rest: JsonValue) -> Config:
    given = {"engine": "litellm", "vendor": "anthropic", "api_key": KEY, **provider}
    targets = [{"provider": "any", "model": "claude", **(target or {})}]
    server = {"port": 0, "drain": {"delay": 0.001, "timeout": 5}}
    models = {"m": {"targets": targets}}
    once = {"retries": {"attempts": 1}}  # what litellm repeats by itself would be seen
    return Config.from_values({"server": server, "providers": {"any": given}, "models": models, **once, **rest})


@pytest.fixture
async def proxy(fake: Messages, shared_process: None) -> AsyncIterator[StartProxy]:
    """Starts a proxy whose model "m" is served by the fake, over the shared process."""
    async for make in proxies(fake):
        yield make


@pytest.fixture
async def lone_proxy(fake: Messages) -> AsyncIterator[StartProxy]:
    """Starts a proxy like `proxy`, with a process of its own."""
    async for make in proxies(fake):
        yield make


async def proxies(fake: Messages) -> AsyncIterator[StartProxy]:
    made: list[RunningProxy] = []

    async def make(target: JsonObject | None = None, *, provider: JsonObject | None = None, **rest: JsonValue) -> Proxy:
        log = io.BytesIO()
        given = {"base_url": fake.url, **(provider or {})}
        running = await start(configured(given, target, **rest), log_stream=log)
        made.append(running)
        return Proxy(running, log)

    yield make
    for running in made:
        running.stop_now.set()
        await running.stop()
