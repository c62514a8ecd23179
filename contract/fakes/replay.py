"""A fake provider that plays recordings: it answers as the recorded endpoint did, byte by byte, at the same pace.

Requests are found by method, path, query and body, whatever address and key the recording was made with: a path fits
with or without its first parts, so `/v1/chat/completions` finds what was recorded as `/chat/completions`.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import web

from dragoman.contract.recordings import key_of, read_take, takes
from dragoman.contract.wire import Answer

from .wire import Close, Pause, Reply, Step, play

__all__ = ["ReplayProvider"]

_SHORTEST = 0.0005


class ReplayProvider:
    """`async with ReplayProvider(folder) as fake`. The takes of a request are played in turn, the last one again and
    again; a request with no recording gets 404. Raises ValueError where the folder has no recordings."""

    def __init__(self, folder: Path, *, port: int = 0, host: str = "127.0.0.1", timed: bool = True) -> None:
        self.count = sum(1 for _ in folder.glob("*.json"))
        if not self.count:
            raise ValueError(f"{folder} has no recordings (`dragoman contract run --record {folder}` makes them)")
        self.folder, self.host, self.port, self._timed = folder, host, port, timed
        self._played: Counter[str] = Counter()

    @property
    def origin(self) -> str:
        return f"http://{self.host}:{self.port}"

    def introduction(self) -> str:
        return f"{self.count} recordings of {self.folder} at {self.origin}: {_example(self.folder)}"

    async def __aenter__(self) -> Self:
        self._http = web.Server(self._serve, access_log=None)
        self._listener = await asyncio.get_running_loop().create_server(self._http, self.host, self.port)
        self.port = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        await self._http.shutdown(0.001)

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        answer = self._found(request.method, request.raw_path, await request.content.read())
        if answer is None:
            told = {"error": f"no recording of {request.method} {request.raw_path} with this body in {self.folder}"}
            return web.json_response(told, status=404)
        headers = dict(answer.headers)
        return await play(Reply(answer.status, headers, tuple(_steps(answer, timed=self._timed))), request)

    def _found(self, method: str, path: str, body: bytes) -> Answer | None:
        for candidate in _candidates(path):
            key = key_of(method, candidate, body)
            if files := takes(self.folder, key):
                place = min(self._played[key], len(files) - 1)
                self._played[key] += 1
                return read_take(files[place])
        return None


def _candidates(path: str) -> Iterator[str]:
    """The path, and the path without its first part, its first two, ..."""
    while path:
        yield path
        slash = path.find("/", 1)
        if slash < 0 or slash > (path.find("?") if "?" in path else len(path)):
            return
        path = path[slash:]


def _steps(answer: Answer, *, timed: bool) -> Iterator[Step]:
    before = 0.0
    for chunk in answer.chunks:
        if timed and chunk.at - before > _SHORTEST:
            yield Pause(chunk.at - before)
        before = chunk.at
        yield chunk.data
    if not answer.chunks:
        yield b""
    if answer.broken:
        yield Close()


def _example(folder: Path) -> str:
    first = json.loads(min(folder.glob("*.json")).read_text("utf-8"))["request"]
    return f"{first['method']} {first['path']}, ..."
