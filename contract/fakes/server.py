"""The fake provider: an HTTP server on loopback that records requests and plays behaviours."""

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

from dragoman.contract.dialects import DIALECTS, Dialect, load_dialect
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.contract.routes import MODEL, match_path, select_protocol

from . import request_checks
from .answers import ModelRequest
from .errors import Problem, build_json_reply, write_error, write_unknown_path
from .forms import load_reply_form
from .messages import convert_message_to_chat
from .request_checks import RequestRefusedError
from .responses import convert_to_chat
from .selection import InvalidBehaviourError, SelectedBehaviour, find_requested_behaviour, parse_behaviour
from .wire import Reply, play

__all__ = ["FakeProvider", "ReceivedRequest"]

CONTROL = "/_fake/"
_CONVERTERS: Mapping[str, Callable[[Mapping[str, JsonValue]], JsonObject]] = {
    "responses": convert_to_chat,
    "messages": convert_message_to_chat,
    "count_tokens": convert_message_to_chat,
}
"""Convert a request to chat, for the fake's model."""
_WITHOUT_STREAMS = ("embeddings", "count_tokens")


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """One request as it arrived. `number` counts from 1; `body` is None if it is not JSON."""

    number: int
    method: str
    path: str
    query: Mapping[str, str]
    headers: CIMultiDictProxy[str]
    body: Any
    raw: bytes

    def to_json(self) -> JsonObject:
        fields: JsonObject = {
            "number": self.number,
            "method": self.method,
            "path": self.path,
            "query": dict(self.query),
        }
        headers = {name.lower(): value for name, value in self.headers.items()}
        return {**fields, "headers": headers, "body": self.body, "raw": self.raw.decode("utf-8", "replace")}


class FakeProvider:
    """A provider of one dialect: `async with FakeProvider("mindie") as fake:`.

    A request gets the first of these behaviours: the next one of `script`, `fake:NAME` in its last message, prompt or
    input, its model name `fake-NAME`, `behaviour`. With `validate`, a request that violates the dialect's schema gets
    the dialect's own error instead. An `api_key` is required in the dialect's own way (MindIE has no keys). A `closing`
    fake closes the connection after each reply.

    `requests` has the latest `most_requests` received requests, except the controls under `/_fake/`: GET and DELETE
    `requests`, GET `state`, PUT `script` (a JSON list of behaviours). `connections` counts the opened connections,
    `open_streams` the active streams, `disconnects` the exchanges that the client left early; `abandoned` has the
    numbers of their requests.

    Raises ValueError for an unknown dialect or profile, InvalidBehaviourError for an unknown behaviour.
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
        most_requests: int = 10_000,
    ) -> None:
        if dialect not in DIALECTS or profile not in load_dialect(dialect).profiles:
            known = ", ".join(f"{name}/{variant}" for name in DIALECTS for variant in load_dialect(name).profiles)
            raise ValueError(f"no fake for {dialect}/{profile}; there are: {known}")
        self.dialect, self.profile, self.validate, self.api_key = dialect, profile, validate, api_key
        self.host, self.port, self._tls, self._closing = host, port, tls, closing
        self.behaviour = behaviour
        self.requests: list[ReceivedRequest] = []
        self._most_requests = most_requests
        self.abandoned: set[int] = set()
        self.connections = self.open_streams = self.disconnects = 0
        self._number = 0
        self._dialect_data: Dialect = load_dialect(dialect)
        self._script: deque[SelectedBehaviour] = deque()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stopping = False

    @property
    def behaviour(self) -> str:
        return self._behaviour

    @behaviour.setter
    def behaviour(self, name: str) -> None:
        self._selected = parse_behaviour(name, self.dialect)
        self._behaviour = name

    @property
    def origin(self) -> str:
        return f"http{'s' if self._tls else ''}://{self.host}:{self.port}"

    @property
    def base_url(self) -> str:
        """The base_url for a dragoman configuration."""
        return self.origin + self._dialect_data.root

    def script(self, *names: str) -> None:
        """Queue behaviours for the next requests; they take precedence over all others."""
        self._script.extend([parse_behaviour(name, self.dialect) for name in names])

    def clear_script(self) -> None:
        """Drop the queued behaviours."""
        self._script.clear()

    async def until(self, condition: Callable[[], bool], within: float = 2.0) -> None:
        """Wait until the condition holds. Raises TimeoutError after `within` seconds."""
        async with asyncio.timeout(within):
            while not condition():  # noqa: ASYNC110 - the condition may read anything
                await asyncio.sleep(0.005)

    async def start(self) -> None:
        self._stopping = False
        self._http = web.Server(self._serve, handler_cancellation=True, access_log=None)
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(self._accept_connection, self.host, self.port, ssl=self._tls)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening and cancel active exchanges."""
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

    def _accept_connection(self) -> asyncio.Protocol:
        self.connections += 1
        return self._http()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request. If the client leaves, aiohttp cancels the task, or a write fails."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            return await self._handle_exchange(request)
        except asyncio.CancelledError:
            self.disconnects += not self._stopping
            raise
        except ConnectionError:
            self.disconnects += 1
            return web.StreamResponse()
        finally:
            self._tasks.discard(task)

    async def _handle_exchange(self, request: web.BaseRequest) -> web.StreamResponse:
        raw = await request.content.read()
        if request.path.startswith(CONTROL) and request.path != f"{CONTROL}canary":
            return await play(self._answer_control(request.method, request.path.removeprefix(CONTROL), raw), request)
        received = self._record(request, raw)
        try:
            reply = self._build_reply(received, request.rel_url.raw_path)
        except RequestRefusedError as refused:
            reply = refused.reply
        if self._closing:
            reply = replace(reply, headers={**reply.headers, "Connection": "close"})
        streams = str(reply.headers.get("Content-Type", "")).startswith("text/event-stream")
        self.open_streams += streams
        try:
            return await play(reply, request)
        except (asyncio.CancelledError, ConnectionError):
            self.abandoned.add(received.number)
            raise
        finally:
            self.open_streams -= streams

    def _record(self, request: web.BaseRequest, raw: bytes) -> ReceivedRequest:
        self._number += 1
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError):
            body = None
        query, headers = dict(request.query), request.headers
        received = ReceivedRequest(self._number, request.method, request.path, query, headers, body, raw)
        self.requests.append(received)
        if len(self.requests) > self._most_requests:
            self.abandoned.discard(self.requests.pop(0).number)
        return received

    def _build_reply(self, received: ReceivedRequest, raw_path: str) -> Reply:
        dialect, profile = self._dialect_data, self.profile
        request_checks.check_key(dialect, profile, received.headers, self.api_key)
        route = match_path(dialect.name, raw_path)
        if route is None:
            return self._answer_other_path(received)
        if received.method != "POST":
            request_checks.refuse(
                dialect, profile, Problem(405, f"{received.method} is not allowed here", headers={"Allow": "POST"})
            )
        request_checks.check_version(dialect, received.query, route[0])
        request_checks.check_version_header(dialect, profile, received.headers)
        body = request_checks.parse_body(dialect, profile, received.raw)
        protocol, found = select_protocol(*route, body), route[1]
        model = unquote(found.groupdict().get("model") or str(body.get("model") or MODEL))
        if self.validate or dialect.extras.rule == "by header":
            body = request_checks.apply_extras_policy(dialect, profile, received.headers, body, protocol)
        if self.validate:
            request_checks.check_schema(dialect, profile, received.headers, body, protocol)
            request_checks.check_batch(dialect, profile, body, protocol, model)
            if protocol == "responses":
                request_checks.check_previous_response(dialect, profile, body)
                request_checks.check_tool_outputs(dialect, profile, body)
        return self._play_behaviour(received, body, model, protocol)

    def _answer_other_path(self, received: ReceivedRequest) -> Reply:
        """Answer the dialect's information paths, and every other path with the dialect's 404."""
        dialect = self._dialect_data
        models = [dialect.root + path for path in dialect.paths.get("models", ())]
        if received.path in models and received.method == "GET":
            request_checks.check_version(dialect, received.query)
            request_checks.check_version_header(dialect, self.profile, received.headers)
            return build_json_reply(200, dialect.models)
        return write_unknown_path(self.dialect, f"No such address: {received.method} {received.path}")

    def _play_behaviour(self, received: ReceivedRequest, body: JsonObject, model: str, protocol: str) -> Reply:
        asked = _CONVERTERS[protocol](body) if protocol in _CONVERTERS else body
        try:
            selected = self._choose_behaviour(asked, model)
        except InvalidBehaviourError as misuse:
            return write_error(self.dialect, self.profile, Problem(400, str(misuse)))
        stream, unasked = body.get("stream"), load_reply_form(self.dialect, self.profile).streams_unasked
        model_request = ModelRequest(
            dialect=self.dialect,
            profile=self.profile,
            body=asked,
            original=body,
            model=model,
            number=received.number,
            stream=protocol not in _WITHOUT_STREAMS and (unasked if stream is None else bool(stream)),
            origin=self.origin,
            args=selected.args,
            protocol=protocol,
        )
        return selected.behaviour.build_reply(model_request)

    def _choose_behaviour(self, body: JsonObject, model: str) -> SelectedBehaviour:
        if self._script:
            return self._script.popleft()
        wanted = find_requested_behaviour(body, model)
        return self._selected if wanted is None else parse_behaviour(wanted, self.dialect)

    def _answer_control(self, method: str, name: str, raw: bytes) -> Reply:
        counts = {"connections": self.connections, "open_streams": self.open_streams, "disconnects": self.disconnects}
        match method, name:
            case "GET", "requests":
                return build_json_reply(200, [received.to_json() for received in self.requests])
            case "DELETE", "requests":
                self.requests.clear()
                return Reply(204, {}, (b"",))
            case "GET", "state":
                return build_json_reply(200, {**counts, "requests": len(self.requests), "behaviour": self.behaviour})
            case "PUT", "script":
                return self._queue_script(raw)
        message = "controls: GET and DELETE /_fake/requests, GET /_fake/state, PUT /_fake/script"
        return build_json_reply(404, {"error": f"no control {method} /_fake/{name}; {message}"})

    def _queue_script(self, raw: bytes) -> Reply:
        try:
            names = json.loads(raw)
            self.script(*names if isinstance(names, list) else [names])
        except (ValueError, AttributeError) as error:
            return build_json_reply(400, {"error": f"the script is a JSON list of behaviours: {error}"})
        return Reply(204, {}, (b"",))
