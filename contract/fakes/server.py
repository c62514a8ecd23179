"""The fake provider: an HTTP server on loopback that records what it receives and behaves as it is told."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote

from aiohttp import web
from multidict import CIMultiDictProxy

from dragoman.contract.dialects import DIALECTS, Dialect
from dragoman.contract.dialects import dialect as dialect_data

from . import checks
from .answers import Ask, Json
from .checks import Refused
from .choosing import Chosen, Misuse, named, parse
from .dialects import MODEL, match_path, protocol_of
from .errors import Problem, json_reply, native, unknown_path
from .forms import form_of
from .responses import as_chat
from .wire import Reply, play

__all__ = ["FakeProvider", "Received"]

CONTROL = "/_fake/"


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it arrived. `number` counts from 1; `body` is None where it was no JSON."""

    number: int
    method: str
    path: str
    query: Mapping[str, str]
    headers: CIMultiDictProxy[str]
    body: Any
    raw: bytes

    def as_json(self) -> Json:
        told: Json = {"number": self.number, "method": self.method, "path": self.path, "query": dict(self.query)}
        headers = {name.lower(): value for name, value in self.headers.items()}
        return {**told, "headers": headers, "body": self.body, "raw": self.raw.decode("utf-8", "replace")}


class FakeProvider:
    """A provider of one dialect, to be used as `async with FakeProvider("mindie") as fake:`.

    How a request is answered: the next of `script`, else `fake:NAME` in its last message, prompt or input, else its
    model name `fake-NAME`, else `behaviour`. Where `validate` is set, requests that the dialect's schema does not
    accept get the dialect's own error instead. An `api_key` is asked for in the dialect's way (MindIE has none and
    looks at none). A `closing` fake ends the connection after each reply.

    `requests` is everything received, but for the controls under `/_fake/`: GET and DELETE `requests`, GET `state`,
    PUT `script` (a JSON list of behaviours). `connections` counts the connections opened, `open_streams` the streams
    under way, `disconnects` the exchanges that the client left before their end, `left` the numbers of such requests.

    Raises ValueError for an unknown dialect or profile, Misuse for an unknown behaviour.
    """

    def __init__(
        self,
        dialect: str,
        *,
        port: int = 0,
        host: str = "127.0.0.1",
        behaviour: str = "as-asked",
        profile: str = "actual",
        api_key: str | None = None,
        validate: bool = True,
        closing: bool = False,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        if dialect not in DIALECTS or profile not in dialect_data(dialect).profiles:
            there = ", ".join(f"{name}/{variant}" for name in DIALECTS for variant in dialect_data(name).profiles)
            raise ValueError(f"no fake for {dialect}/{profile}; there are: {there}")
        self.dialect, self.profile, self.validate, self.api_key = dialect, profile, validate, api_key
        self.host, self.port, self._tls, self._closing = host, port, tls, closing
        self.behaviour = behaviour
        self.requests: list[Received] = []
        self.left: set[int] = set()
        self.connections = self.open_streams = self.disconnects = 0
        self._number = 0
        self._row: Dialect = dialect_data(dialect)
        self._script: deque[Chosen] = deque()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stopping = False

    @property
    def behaviour(self) -> str:
        return self._behaviour

    @behaviour.setter
    def behaviour(self, name: str) -> None:
        self._chosen = parse(name, self.dialect)
        self._behaviour = name

    @property
    def origin(self) -> str:
        return f"http{'s' if self._tls else ''}://{self.host}:{self.port}"

    @property
    def base_url(self) -> str:
        """What a dragoman configuration needs as a provider's base_url."""
        return self.origin + self._row.root

    def script(self, *names: str) -> None:
        """Queue behaviours for the next requests, before all other ways to choose one."""
        self._script.extend([parse(name, self.dialect) for name in names])

    def unscript(self) -> None:
        """Forget what is queued."""
        self._script.clear()

    async def until(self, condition: Callable[[], bool], within: float = 2.0) -> None:
        """Wait for something that a test expects here. Raises TimeoutError after `within` seconds."""
        async with asyncio.timeout(within):
            while not condition():  # noqa: ASYNC110 - it may be about anything
                await asyncio.sleep(0.005)

    async def start(self) -> None:
        self._stopping = False
        self._http = web.Server(self._serve, handler_cancellation=True, access_log=None)
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(self._connection, self.host, self.port, ssl=self._tls)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening and break off whatever is under way."""
        self._stopping = True
        self._listener.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._http.shutdown(0.001)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _connection(self) -> asyncio.Protocol:
        self.connections += 1
        return self._http()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request, and notice where the client leaves: aiohttp then cancels us, or a write fails."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            return await self._exchange(request)
        except asyncio.CancelledError:
            self.disconnects += not self._stopping
            raise
        except ConnectionError:
            self.disconnects += 1
            return web.StreamResponse()
        finally:
            self._tasks.discard(task)

    async def _exchange(self, request: web.BaseRequest) -> web.StreamResponse:
        raw = await request.content.read()
        if request.path.startswith(CONTROL) and request.path != f"{CONTROL}canary":
            return await play(self._control(request.method, request.path.removeprefix(CONTROL), raw), request)
        received = self._record(request, raw)
        try:
            reply = self._answer(received, request.rel_url.raw_path)
        except Refused as refused:
            reply = refused.reply
        if self._closing:
            reply = replace(reply, headers={**reply.headers, "Connection": "close"})
        streams = str(reply.headers.get("Content-Type", "")).startswith("text/event-stream")
        self.open_streams += streams
        try:
            return await play(reply, request)
        except (asyncio.CancelledError, ConnectionError):
            self.left.add(received.number)
            raise
        finally:
            self.open_streams -= streams

    def _record(self, request: web.BaseRequest, raw: bytes) -> Received:
        self._number += 1
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError):
            body = None
        query, headers = dict(request.query), request.headers
        received = Received(self._number, request.method, request.path, query, headers, body, raw)
        self.requests.append(received)
        return received

    def _answer(self, received: Received, raw_path: str) -> Reply:
        row, profile = self._row, self.profile
        checks.check_key(row, profile, received.headers, self.api_key)
        route = match_path(row, raw_path)
        if route is None:
            return self._elsewhere(received)
        if received.method != "POST":
            checks.refuse(
                row, profile, Problem(405, f"{received.method} is not allowed here", headers={"Allow": "POST"})
            )
        checks.check_version(row, received.query)
        body = checks.body_of(row, profile, received.raw)
        protocol, found = protocol_of(*route, body), route[1]
        model = unquote(found.groupdict().get("model") or str(body.get("model") or MODEL))
        if self.validate or row.extras.rule == "by header":
            body = checks.without_extras(row, profile, received.headers, body, protocol)
        if self.validate:
            checks.check_schema(row, profile, body, protocol)
            checks.check_batch(row, profile, body, protocol, model)
            if protocol == "responses":
                checks.check_previous(row, profile, body)
                checks.check_outputs(row, profile, body)
        return self._behave(received, body, model, protocol)

    def _elsewhere(self, received: Received) -> Reply:
        """The dialect's other addresses, and its word for addresses that it does not have."""
        row = self._row
        models = [row.root + path for path in row.paths.get("models", ())]
        if received.path in models and received.method == "GET":
            checks.check_version(row, received.query)
            return json_reply(200, row.models)
        return unknown_path(self.dialect, f"No such address: {received.method} {received.path}")

    def _behave(self, received: Received, body: Json, model: str, protocol: str) -> Reply:
        try:
            chosen = self._choose(body, model)
        except Misuse as misuse:
            return native(self.dialect, self.profile, Problem(400, str(misuse)))
        stream, unasked = body.get("stream"), form_of(self.dialect, self.profile).streams_unasked
        ask = Ask(
            dialect=self.dialect,
            profile=self.profile,
            body=as_chat(body) if protocol == "responses" else body,
            asked=body,
            model=model,
            number=received.number,
            stream=protocol != "embeddings" and (unasked if stream is None else bool(stream)),
            origin=self.origin,
            args=chosen.args,
            protocol=protocol,
        )
        return chosen.behaviour.reply(ask)

    def _choose(self, body: Json, model: str) -> Chosen:
        if self._script:
            return self._script.popleft()
        wanted = named(body, model)
        return self._chosen if wanted is None else parse(wanted, self.dialect)

    def _control(self, method: str, name: str, raw: bytes) -> Reply:
        counts = {"connections": self.connections, "open_streams": self.open_streams, "disconnects": self.disconnects}
        match method, name:
            case "GET", "requests":
                return json_reply(200, [received.as_json() for received in self.requests])
            case "DELETE", "requests":
                self.requests.clear()
                return Reply(204, {}, (b"",))
            case "GET", "state":
                return json_reply(200, {**counts, "requests": len(self.requests), "behaviour": self.behaviour})
            case "PUT", "script":
                return self._queue(raw)
        said = "controls: GET and DELETE /_fake/requests, GET /_fake/state, PUT /_fake/script"
        return json_reply(404, {"error": f"no control {method} /_fake/{name}; {said}"})

    def _queue(self, raw: bytes) -> Reply:
        try:
            names = json.loads(raw)
            self.script(*names if isinstance(names, list) else [names])
        except (ValueError, AttributeError) as error:
            return json_reply(400, {"error": f"the script is a JSON list of behaviours: {error}"})
        return Reply(204, {}, (b"",))
