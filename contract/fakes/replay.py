"""A fake provider that replays recordings: it answers as the recorded endpoint, byte by byte, at the same pace.

A recording is found by method, path, query and body; the address and the key do not matter. A path also matches without
its first parts, so that `/v1/chat/completions` finds the recording of `/chat/completions`.
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

from dragoman.contract.exchange import Response
from dragoman.contract.recordings import find_takes, hash_request, read_take

from .wire import Close, Pause, Reply, Step, play

__all__ = ["ReplayProvider"]

_SHORTEST_PAUSE = 0.0005


class ReplayProvider:
    """Replays a folder of recordings: `async with ReplayProvider(folder) as fake`. The takes of a request are played in
    order, and the last one repeats; a request without a recording gets 404. Raises ValueError if the folder has no
    recordings, or its first file is none."""

    def __init__(self, folder: Path, *, port: int = 0, host: str = "127.0.0.1", timed: bool = True) -> None:
        files = [*folder.glob("*.json")]
        if not files:
            raise ValueError(f"{folder} has no recordings (`dragoman contract run --record {folder}` makes them)")
        self.count, self._first = len(files), _describe_request(min(files))
        self.folder, self.host, self.port, self._timed = folder, host, port, timed
        self._played: Counter[str] = Counter()

    @property
    def origin(self) -> str:
        return f"http://{self.host}:{self.port}"

    def describe(self) -> str:
        return f"{self.count} recordings of {self.folder} at {self.origin}: {self._first}, ..."

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
        response = self._find_response(request.method, request.raw_path, await request.content.read())
        if response is None:
            error = {"error": f"no recording of {request.method} {request.raw_path} with this body in {self.folder}"}
            return web.json_response(error, status=404)
        steps = tuple(_build_steps(response, timed=self._timed))
        return await play(Reply(response.status, dict(response.headers), steps), request)

    def _find_response(self, method: str, path: str, body: bytes) -> Response | None:
        for candidate in _list_candidate_paths(path):
            key = hash_request(method, candidate, body)
            if files := find_takes(self.folder, key):
                position = min(self._played[key], len(files) - 1)
                self._played[key] += 1
                return read_take(files[position])
        return None


def _list_candidate_paths(path: str) -> Iterator[str]:
    """List the path, then the path without its first part, its first two, ..."""
    while path:
        yield path
        slash = path.find("/", 1)
        if slash < 0 or slash > (path.find("?") if "?" in path else len(path)):
            return
        path = path[slash:]


def _build_steps(response: Response, *, timed: bool) -> Iterator[Step]:
    before = 0.0
    for chunk in response.chunks:
        if timed and chunk.at - before > _SHORTEST_PAUSE:
            yield Pause(chunk.at - before)
        before = chunk.at
        yield chunk.data
    if not response.chunks:
        yield b""
    if response.broken:
        yield Close()


def _describe_request(file: Path) -> str:
    """The request of a recording. Raises ValueError if the file is not a recording."""
    read_take(file)
    try:
        request = json.loads(file.read_text("utf-8"))["request"]
        return f"{request['method']} {request['path']}"
    except (KeyError, TypeError) as error:
        raise ValueError(f"{file} is not a recording: {error!r}") from None
