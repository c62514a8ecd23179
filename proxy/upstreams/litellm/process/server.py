"""HTTP on a Unix socket: calls of litellm's functions, replies as a provider of the openai dialect sends them.

    POST /chat/completions   POST /embeddings   {"arguments": {...}, "settings": {...}}
    GET /health              503 `loading` until litellm is loaded, then 200 `ready`

A provider's error keeps its status and body. A failure on the way to the provider becomes a reply with FAULT_HEADER. A
stream ends when litellm's iterator ends; nothing is added, and the proxy's stream reader decides whether it is
complete. If litellm would end it with a finish reason that the provider never sent, that chunk is left out. If the
exchange with the provider breaks during a stream, the connection is closed in the middle of it.

A client that leaves cancels its handler, and the handler closes litellm's stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from importlib.metadata import version
from typing import Any

import orjson
from aiohttp import web

from dragoman.adapters.call import JsonObject
from dragoman.proxy.upstreams.litellm.protocol import FAULT_HEADER, FUNCTIONS

from .failures import find_transport_failure, is_early_end, to_error_reply
from .library import CONNECT_TIMEOUT, disconnect, load_litellm, warm_up
from .replies import has_finish_reason, to_openai

__all__ = ["LitellmServer"]

_BODY_LIMIT = 1 << 30  # bytes; the proxy has checked the body's size


class LitellmServer:
    """Answers calls as soon as litellm is loaded."""

    def __init__(self) -> None:
        self._litellm: Any = None

    def application(self) -> web.Application:
        application = web.Application(client_max_size=_BODY_LIMIT)
        application.add_routes([web.post(path, self._answer) for path in FUNCTIONS])
        application.add_routes([web.get("/health", self._answer_health)])
        return application

    async def load(self) -> None:
        """Load litellm. Raises ImportError, which says what to install."""
        litellm = await asyncio.to_thread(load_litellm)
        await warm_up(litellm)
        self._litellm = litellm

    async def close(self) -> None:
        if self._litellm is not None:
            await disconnect(self._litellm)

    async def _answer_health(self, _request: web.Request) -> web.Response:
        if self._litellm is None:
            return _create_json_response({"status": "loading"}, 503)
        return _create_json_response({"status": "ready", "version": version("litellm")})

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        message: JsonObject = orjson.loads(await request.read())
        arguments, settings = message["arguments"], dict(message["settings"])
        CONNECT_TIMEOUT.set(settings.pop("connect_timeout"))
        try:
            reply = await getattr(self._litellm, FUNCTIONS[request.path])(**{**arguments, **settings})
            if arguments.get("stream") is not True:
                return _create_json_response(to_openai(reply))
        except Exception as error:  # noqa: BLE001 - any exception means that litellm could not make the call
            return _create_error_response(error)
        return await _send_stream(request, reply)


async def _send_stream(request: web.Request, source: Any) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    async with aclosing(source), aclosing(_to_events(source, request)) as events:
        async for event in events:
            await response.write(event)
    return response


async def _to_events(source: Any, request: web.Request) -> AsyncGenerator[bytes]:
    """litellm's chunks as events, up to its end, its first error, or a finish reason that it made up."""
    try:
        async for chunk in source:
            body = to_openai(chunk)
            if has_finish_reason(body) and source.received_finish_reason is None:
                return
            yield _to_event(body)
    except Exception as error:  # noqa: BLE001 - any exception ends the stream
        if (event := _end_stream(error, request)) is not None:
            yield event


def _end_stream(error: Exception, request: web.Request) -> bytes | None:
    """The provider's error as an event. For a failure on the way to the provider: closes the connection, returns
    None."""
    if is_early_end(error):
        return None
    if find_transport_failure(error) is None:
        return _to_event(to_error_reply(error).body)
    if request.transport is not None:
        request.transport.abort()
    return None


def _create_error_response(error: Exception) -> web.Response:
    failure = find_transport_failure(error)
    if failure is not None:
        return _create_json_response(failure._asdict(), 502, {FAULT_HEADER: failure.code})
    reply = to_error_reply(error)
    return _create_json_response(reply.body, reply.status, reply.headers)


def _create_json_response(
    body: JsonObject, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json", headers=headers)


def _to_event(body: JsonObject) -> bytes:
    return b"data: %b\n\n" % orjson.dumps(body)
