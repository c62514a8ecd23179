"""A proxy whose configuration is a file, and a provider that says what it was asked with."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.proxy.config.checked_config import CheckedConfig
from dragoman.proxy.config.load import check
from dragoman.proxy.server.lifecycle import RunningProxy, start

__all__ = ["EchoProvider", "Reloaded", "ask", "serve_file"]


@dataclass
class EchoProvider:
    """Answers each chat with the headers `authorization` and `x-generation` and the model, whole or as a slow
    stream of twenty events. `hold` stops the streams in their middle."""

    port: int = 0
    connections: int = 0
    hold: asyncio.Event = field(default_factory=asyncio.Event)
    streaming: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.hold.set()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                fields = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:-2])
                body = json.loads(await reader.readexactly(int(fields["content-length"])))
                said = f"{fields.get('authorization')}|{fields.get('x-generation')}|{body['model']}"
                await (self._stream(writer, said) if body.get("stream") else self._answer(writer, said))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, said: str) -> None:
        choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        reply = {
            "id": "x",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [choice],
            "usage": usage,
        }
        text = json.dumps(reply).encode()
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text) + text
        )
        await writer.drain()

    async def _stream(self, writer: asyncio.StreamWriter, said: str) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for number in range(20):
            if number == 10:
                self.streaming.set()
                await self.hold.wait()
            delta = {"content": said if number == 0 else "."}
            _write_event(writer, {"index": 0, "delta": delta, "finish_reason": "stop" if number == 19 else None})
            await writer.drain()
            await asyncio.sleep(0.001)
        writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")


def _write_event(writer: asyncio.StreamWriter, choice: JsonObject) -> None:
    event = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    line = b"data: " + json.dumps(event).encode() + b"\n\n"
    writer.write(b"%x\r\n%s\r\n" % (len(line), line))


@dataclass
class Reloaded:
    """The proxy, its provider, its file, its log and its environment."""

    proxy: RunningProxy
    provider: EchoProvider
    file: Path
    log: io.BytesIO
    env: dict[str, str]

    @property
    def lines(self) -> list[JsonObject]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]

    def find(self, event: str) -> list[JsonObject]:
        return [line for line in self.lines if line["event"] == event]

    async def find_soon(self, event: str, count: int = 1) -> list[JsonObject]:
        """The lines of this event, once there are so many."""
        for _ in range(1000):
            if len(found := self.find(event)) >= count:
                return found
            await asyncio.sleep(0.01)
        raise AssertionError(f"no {event}: {self.lines}")

    def write(self, config: JsonObject) -> None:
        write(self.file, config)

    async def reload(self, config: JsonObject) -> bool:
        """Write the configuration, and read it again."""
        self.write(config)
        return await self.proxy.reloader.reload("a test")


def write(file: Path, config: Mapping[str, JsonValue]) -> None:
    """Write a configuration; JSON is YAML. It is written beside the file and moved, as careful programs do."""
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps(config, indent=1))
    beside.replace(file)


async def ask(session: aiohttp.ClientSession, key: str = "", **body: JsonValue) -> tuple[int, str, str]:
    """The status, the text of the answer, and the request's id. A stream that does not end with [DONE] has no text."""
    payload = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **body}
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with session.post("/v1/chat/completions", json=payload, headers=headers) as response:
        text = await response.text()
        return response.status, _join(text) if body.get("stream") else text, response.headers["x-request-id"]


def _join(text: str) -> str:
    events = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    if not events or events.pop() != "[DONE]":
        return ""
    return "".join(json.loads(event)["choices"][0]["delta"].get("content") or "" for event in events)


@asynccontextmanager
async def serve_file(folder: Path, config: JsonObject, env: dict[str, str] | None = None) -> AsyncIterator[Reloaded]:
    """A proxy for the configuration in a file. `${PORT}` in it is the port of the provider."""
    provider, log, file = EchoProvider(), io.BytesIO(), folder / "dragoman.yaml"
    listener = await asyncio.start_server(provider, "127.0.0.1", 0)
    provider.port = listener.sockets[0].getsockname()[1]
    variables = {"PORT": str(provider.port), **(env or {})}

    def load() -> CheckedConfig:
        return check(file, variables)

    write(file, config)
    checked = load()
    proxy = await start(checked.config, log_stream=log, source=load, files=checked.files)
    try:
        yield Reloaded(proxy, provider, file, log, variables)
    finally:
        provider.hold.set()
        proxy.stop_now.set()
        await proxy.stop()
        listener.close()
