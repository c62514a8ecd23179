"""HTTP on a Unix socket, in the hub's forms, which are OpenAI's.

    POST /v1/chat/completions   POST /v1/completions   POST /v1/embeddings   GET /v1/models
    GET /health                 503 `loading` until the model is there, then 200 `ready` with numbers; 503 `failed`

A client that leaves cancels its handler, and the handler closes the engine's iterator. The head of a stream waits for
the first chunk, so that what fails before it has its own status; what fails later is one error event, without [DONE].
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeAlias

import orjson
from aiohttp import web

from dragoman.adapters.call import Call, Context, JsonObject
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault, Kind
from dragoman.adapters.openai.faults import error_body, write_fault

from .hub import Hub

__all__ = ["EngineServer"]

BODY_LIMIT = 1 << 30
"""Bytes. Whoever reaches the socket has judged the body's size already."""

_NO_CONTEXT = Context("actual", Call("POST", "", {}), Receipt())
_Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]
_Ask: TypeAlias = Callable[[JsonObject], AsyncGenerator[JsonObject]]


class EngineServer:
    """Answers for the hub, as soon as there is one."""

    def __init__(self) -> None:
        self.hub: Hub | None = None
        self._since = int(time.time())

    def application(self) -> web.Application:
        application = web.Application(middlewares=[_faults_told], client_max_size=BODY_LIMIT)
        application.add_routes(
            [
                web.post("/v1/chat/completions", lambda request: self._answer(request, self._loaded().chat)),
                web.post("/v1/completions", lambda request: self._answer(request, self._loaded().completions)),
                web.post("/v1/embeddings", self._embeddings),
                web.get("/v1/models", self._models),
                web.get("/health", self._health),
            ]
        )
        return application

    def _loaded(self) -> Hub:
        if self.hub is None:
            raise Fault("overloaded", "the model is still being loaded", code="loading", retry_after=1)
        return self.hub

    async def _answer(self, request: web.Request, ask: _Ask) -> web.StreamResponse:
        asked = await _asked(request)
        async with aclosing(ask(asked)) as chunks:
            if asked.get("stream") is True:
                return await _streamed(request, chunks)
            return _json(self._loaded().whole([chunk async for chunk in chunks]))

    async def _embeddings(self, request: web.Request) -> web.StreamResponse:
        hub = self._loaded()
        return _json(await hub.embeddings(await _asked(request)))

    async def _models(self, _request: web.Request) -> web.StreamResponse:
        model = {"id": self._loaded().name, "object": "model", "created": self._since, "owned_by": "dragoman"}
        return _json({"object": "list", "data": [model]})

    async def _health(self, _request: web.Request) -> web.StreamResponse:
        if self.hub is None:
            return _json({"status": "loading"}, 503)
        found = self.hub.statistics()
        failed = found.get("failed") is not None
        return _json(
            {"status": "failed" if failed else "ready", "model": self.hub.name, **found}, 503 if failed else 200
        )


async def _asked(request: web.Request) -> JsonObject:
    try:
        body = orjson.loads(await request.read())
    except orjson.JSONDecodeError as error:
        raise Fault("invalid_request", f"the body is no JSON: {error}", code="invalid_json") from None
    if not isinstance(body, dict):
        raise Fault("invalid_request", "the body must be a JSON object", code="invalid_json")
    return body


async def _streamed(request: web.Request, chunks: AsyncGenerator[JsonObject]) -> web.StreamResponse:
    first = await anext(chunks, None)
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
    await response.prepare(request)
    try:
        if first is not None:
            await response.write(_event(first))
        async for chunk in chunks:
            await response.write(_event(chunk))
        await response.write(b"data: [DONE]\n\n")
    except Fault as fault:
        await response.write(_event(error_body(fault)))
    except ConnectionError:
        raise  # the client left
    except Exception:  # noqa: BLE001  the head is sent: only an event can tell
        await response.write(_event(error_body(_defect())))
    return response


@web.middleware
async def _faults_told(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except Fault as fault:
        return _refused(fault)
    except web.HTTPException as error:
        kind: Kind = "method_not_allowed" if error.status == 405 else "not_found"
        return _refused(Fault(kind, f"{request.method} {request.path}: {error.reason}", status=error.status))
    except ConnectionError:
        raise
    except Exception:  # noqa: BLE001  a defect is an answer too
        return _refused(_defect())


def _defect() -> Fault:
    traceback.print_exc(file=sys.stderr)
    return Fault("internal", "the engine failed; its log tells more")


def _refused(fault: Fault) -> web.Response:
    reply = write_fault(fault, _NO_CONTEXT)
    return web.Response(body=orjson.dumps(reply.body), status=reply.status, headers=reply.headers)


def _json(body: JsonObject, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json")


def _event(body: JsonObject) -> bytes:
    return b"data: " + orjson.dumps(body) + b"\n\n"
