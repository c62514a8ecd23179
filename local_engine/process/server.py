"""The HTTP server of an engine process, on a Unix socket, in hub form.

    POST /v1/chat/completions   POST /v1/completions   POST /v1/embeddings   GET /v1/models
    GET /health                 503 `loading` until the model is loaded, then 200 `ready` with numbers; 503 `failed`

When a client disconnects, its handler is cancelled and closes the engine's iterator. The headers of a stream are sent
with the first chunk, so an earlier failure gets its HTTP status. A later failure is one error event, without [DONE].
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

from .interface import ModelService

__all__ = ["EngineServer"]

BODY_LIMIT = 1 << 30
"""Bytes. The proxy, which connects to the socket, has already checked the size of the body."""

_NO_CONTEXT = Context("actual", Call("POST", "", {}), Receipt())
_Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]
_Operation: TypeAlias = Callable[[JsonObject], AsyncGenerator[JsonObject]]


class EngineServer:
    """Serves `service`; until that is set, requests are refused as `loading`."""

    def __init__(self) -> None:
        self.service: ModelService | None = None
        self._created = int(time.time())

    def create_application(self) -> web.Application:
        application = web.Application(middlewares=[_render_faults], client_max_size=BODY_LIMIT)
        application.add_routes(
            [
                web.post(
                    "/v1/chat/completions",
                    lambda request: self._handle_operation(request, self._require_service().chat),
                ),
                web.post(
                    "/v1/completions",
                    lambda request: self._handle_operation(request, self._require_service().completions),
                ),
                web.post("/v1/embeddings", self._handle_embeddings),
                web.get("/v1/models", self._handle_models),
                web.get("/health", self._handle_health),
            ]
        )
        return application

    def _require_service(self) -> ModelService:
        if self.service is None:
            raise Fault("overloaded", "the model is still loading", code="loading", retry_after=1)
        return self.service

    async def _handle_operation(self, request: web.Request, operation: _Operation) -> web.StreamResponse:
        body = await _read_body(request)
        async with aclosing(operation(body)) as chunks:
            if body.get("stream") is True:
                return await _stream(request, chunks)
            return _write_json(self._require_service().collect_reply([chunk async for chunk in chunks]))

    async def _handle_embeddings(self, request: web.Request) -> web.StreamResponse:
        service = self._require_service()
        return _write_json(await service.embeddings(await _read_body(request)))

    async def _handle_models(self, _request: web.Request) -> web.StreamResponse:
        model = {
            "id": self._require_service().name,
            "object": "model",
            "created": self._created,
            "owned_by": "dragoman",
        }
        return _write_json({"object": "list", "data": [model]})

    async def _handle_health(self, _request: web.Request) -> web.StreamResponse:
        if self.service is None:
            return _write_json({"status": "loading"}, 503)
        found = self.service.statistics()
        failed = found.get("failed") is not None
        return _write_json(
            {"status": "failed" if failed else "ready", "model": self.service.name, **found}, 503 if failed else 200
        )


async def _read_body(request: web.Request) -> JsonObject:
    try:
        body = orjson.loads(await request.read())
    except orjson.JSONDecodeError as error:
        raise Fault("invalid_request", f"the body is not valid JSON: {error}", code="invalid_json") from None
    if not isinstance(body, dict):
        raise Fault("invalid_request", "the body must be a JSON object", code="invalid_json")
    return body


async def _stream(request: web.Request, chunks: AsyncGenerator[JsonObject]) -> web.StreamResponse:
    first = await anext(chunks, None)
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
    await response.prepare(request)
    try:
        if first is not None:
            await response.write(_write_event(first))
        async for chunk in chunks:
            await response.write(_write_event(chunk))
        await response.write(b"data: [DONE]\n\n")
    except Fault as fault:
        await response.write(_write_event(error_body(fault)))
    except ConnectionError:
        raise  # the client disconnected
    except Exception:  # noqa: BLE001  the headers are sent: report it as an event
        await response.write(_write_event(error_body(_report_unexpected())))
    return response


@web.middleware
async def _render_faults(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except Fault as fault:
        return _write_fault(fault)
    except web.HTTPException as error:
        kind: Kind = "method_not_allowed" if error.status == 405 else "not_found"
        return _write_fault(Fault(kind, f"{request.method} {request.path}: {error.reason}", status=error.status))
    except ConnectionError:
        raise
    except Exception:  # noqa: BLE001  reported as an internal error
        return _write_fault(_report_unexpected())


def _report_unexpected() -> Fault:
    traceback.print_exc(file=sys.stderr)
    return Fault("internal", "the engine failed; see its log")


def _write_fault(fault: Fault) -> web.Response:
    reply = write_fault(fault, _NO_CONTEXT)
    return web.Response(body=orjson.dumps(reply.body), status=reply.status, headers=reply.headers)


def _write_json(body: JsonObject, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json")


def _write_event(body: JsonObject) -> bytes:
    return b"data: " + orjson.dumps(body) + b"\n\n"
