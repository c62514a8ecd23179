"""An upstream that plays faults from data files: the model's name in a request says which one."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import socket
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from dragoman.contract.fakes import FakeProvider

__all__ = ["PATHS", "Fault", "FaultyUpstream", "Usual", "load_faults", "record_usual"]

FOLDER = Path(__file__).parent / "upstream_faults"
PATHS = {"chat": "chat/completions", "responses": "responses", "completions": "completions", "embeddings": "embeddings"}
_REQUESTS = {
    "chat": {"messages": [{"role": "user", "content": "hello"}]},
    "responses": {"input": "hello"},
    "completions": {"prompt": "hello"},
    "embeddings": {"input": "hello"},
}
_RESET = struct.pack("ii", 1, 0)
_MACRO = re.compile(rb"\{(?:(\w+)|([^{}]+)\*(\d+))\}")


@dataclass(frozen=True)
class Fault:
    """Steps of one connection: bytes to send; `hang` waits for the other side, `reset` breaks off; then it closes.
    `whole` and `stream` are what a client gets, as `Matrix.run` writes it, or that for each protocol."""

    name: str
    steps: tuple[str, ...]
    whole: str | Mapping[str, str]
    stream: str | Mapping[str, str]

    @property
    def model(self) -> str:
        """The name as that of a model."""
        return re.sub("[^A-Za-z0-9]+", "-", self.name)


def load_faults() -> list[Fault]:
    """The faults of all files, named `file/name`."""
    return [
        Fault(f"{file.stem}/{name}", tuple(row["steps"]), row["whole"], row["stream"])
        for file in sorted(FOLDER.glob("*.json"))
        for name, row in json.loads(file.read_text("utf-8")).items()
    ]


Usual = Mapping[tuple[str, bool], bytes]
"""(protocol, stream) -> the body of a usual reply."""


async def record_usual() -> Usual:
    """Ask a fake provider once for a reply of each protocol, whole and streamed."""
    usual = {}
    async with FakeProvider("openai") as fake, aiohttp.ClientSession() as session:
        for protocol, request in _REQUESTS.items():
            for stream in (False, True)[: 1 if protocol == "embeddings" else 2]:
                body = {"model": "m", **request, **({"stream": True} if stream else {})}
                async with session.post(f"{fake.base_url}/{PATHS[protocol]}", json=body) as reply:
                    usual[protocol, stream] = await reply.read()
    return usual


def _list_macros(body: bytes, stream: bool) -> dict[str, bytes]:
    """What the names in a fault's steps stand for, in the reply to one request."""
    half = body[: len(body) // 2]
    cut = body[: half.rindex(b"\n\n") + 2] if stream else half
    packed = gzip.compress(body, mtime=0)
    error = b'{"error":{"message":"on purpose","type":"server_error","param":null,"code":null}}'
    html = b"<!doctype html><title>upstream connect error</title>"
    media_type = b"text/event-stream" if stream else b"application/json"
    parts = {"reply": body, "half": half, "cut": cut, "gzip": packed, "error": error, "html": html}
    return {
        "ok": b"HTTP/1.1 200 OK\r\n",
        "type": b"Content-Type: %s\r\n" % media_type,
        "json": b"Content-Type: application/json\r\n",
        "chunked": b"Transfer-Encoding: chunked\r\n",
        "end": b"\r\n",
        "half_gzip": packed[: len(packed) // 2],
        **parts,
        **{f"{name}_length": b"Content-Length: %d\r\n" % len(part) for name, part in parts.items()},
        **{f"{name}_chunk": b"%x\r\n%s\r\n" % (len(part), part) for name, part in parts.items()},
        **{f"{name}_n": b"%d" % len(part) for name, part in parts.items()},
    }


class FaultyUpstream:
    """Plays the fault whose model is the second part of the model's name, between dots."""

    def __init__(self, faults: Iterable[Fault], usual: Usual) -> None:
        self._faults = {fault.model: fault for fault in faults}
        self._macros = {key: _list_macros(body, key[1]) for key, body in usual.items()}
        self.asked: list[str] = []
        self.port = 0

    async def start(self) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
            request = json.loads(await reader.readexactly(length))
            path = head.split(b" ")[1].decode()
            protocol = next(name for name, end in PATHS.items() if path == f"/v1/{end}")
            self.asked.append(request["model"])
            fault = self._faults[request["model"].split(".")[1]]
            await self._play(fault, self._macros[protocol, bool(request.get("stream"))], reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _play(
        self, fault: Fault, macros: Mapping[str, bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        for step in fault.steps:
            if step == "hang":
                await reader.read()
            elif step == "reset":
                await asyncio.sleep(0.01)  # else the reset overtakes the bytes before it
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                writer.transport.abort()
            else:
                writer.write(_expand(step, macros))
                await writer.drain()


def _expand(step: str, macros: Mapping[str, bytes]) -> bytes:
    def replace(found: re.Match[bytes]) -> bytes:
        return found[2] * int(found[3]) if found[2] else macros[found[1].decode()]

    return _MACRO.sub(replace, step.encode("latin-1"))
