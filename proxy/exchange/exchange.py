"""One exchange: a client's request with everything that happens to it.

Read the request, find the model's targets, ask one after the other until one answers, write the answer. Whatever goes
wrong is a Fault, which the client's dialect renders; and whatever happens, one line goes to the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse

from dragoman.adapters.call import Call, Context, JsonObject
from dragoman.adapters.changes import Receipt
from dragoman.adapters.extras import extra_parameters
from dragoman.adapters.faults import Fault
from dragoman.adapters.jsontext import BOM, read_object
from dragoman.adapters.routes import Route
from dragoman.proxy.config.models import Server
from dragoman.proxy.conversations.stores.interface import ResponseStore
from dragoman.proxy.conversations.turn import Turn
from dragoman.proxy.http.deadline import Clock
from dragoman.proxy.http.json_response import as_response, encode
from dragoman.proxy.http.request_body import read_body
from dragoman.proxy.http.stream_response import ClientGone, send_large
from dragoman.proxy.routing.state import Candidate, RouterState
from dragoman.proxy.telemetry.log import Log, Mask, Note

from .attempts import Asked, Attempt, first_answer
from .batch import whole_reply
from .replies import answer_headers, served_context
from .streamed_reply import StreamAnswer
from .unexpected import Unforeseen

__all__ = ["Exchange"]

_NO_QUERY: Mapping[str, str] = {}


class Exchange:
    """Made inside the task that serves the request."""

    __slots__ = ("_asked", "_log", "_mask", "_server", "_state", "_store", "_stream", "clock")

    def __init__(
        self,
        request: BaseRequest,
        request_id: str,
        path: str,
        route: Route,
        state: RouterState,
        store: ResponseStore | None,
        server: Server,
        log: Log,
        mask: Mask,
    ) -> None:
        self.clock = Clock()
        ctx = Context(route.profile, Call(request.method, route.strip_prefix(path), {}), Receipt())
        note = Note(request_id, route.dialect.name, route.protocol)
        self._asked = Asked(request, route, ctx, note, self.clock, log)
        self._stream: StreamAnswer | None = None
        self._state = state
        self._store = store
        self._server = server
        self._log = log
        self._mask = mask

    async def run(self) -> StreamResponse:
        """Raises only CancelledError, where the client has left."""
        try:
            return await self._answered()
        except ClientGone as gone:
            return self._gone(gone.fault)
        except ConnectionError:
            return self._gone(None)
        except asyncio.CancelledError:
            self._gone(None)
            raise
        finally:
            self.clock.stop()
            self._log.exchange(self._asked.note.line())

    async def _answered(self) -> StreamResponse:
        """An answer, whatever happens, unless the client is gone."""
        try:
            return await self._run()
        except Fault as fault:
            return await self._refuse(fault)
        except asyncio.CancelledError as stop:
            verdict = self.clock.verdict(stop)
            if not isinstance(verdict, Fault):
                raise
            return await self._refuse(verdict)
        except (ClientGone, ConnectionError):
            raise
        except Exception as error:  # noqa: BLE001 - a defect of ours: the client is told that there is one, no more
            self._log.error("defect", request_id=self._asked.note.request_id, exc_info=error)
            return await self._refuse(Fault("internal", "something went wrong in the proxy", code="internal_error"))

    async def _run(self) -> StreamResponse:
        asked = self._asked
        note, headers = asked.note, asked.request.headers
        caller = self._state.keys.caller(headers)
        note.key = caller.name
        self.clock.enter("body", self._server.body_timeout)
        self._read(await read_body(asked.request, self._server.body_limit, self.clock))
        hub = asked.ctx.request
        named = asked.route.dialect.deployment_header
        deployment = headers.get(named) if named else None
        note.model = model = self._state.model(hub.get("model"), deployment)
        note.stream = hub.get("stream") is True
        candidates = self._state.candidates(model, caller, extra_parameters(headers), deployment)
        if asked.route.protocol == "responses":
            asked.turn = await Turn.begin(self._store, caller.name or "", hub, asked.route.keeps_responses, self.clock)
        if note.stream:
            return await self._answer_stream(candidates)
        return await first_answer(asked, candidates, self._whole)

    def _read(self, body: bytes) -> None:
        asked = self._asked
        call = self._call(read_object(body))
        if body.startswith(BOM):
            asked.ctx.receipt.dropped((), "a byte order mark stood before the body", "form")
        asked.ctx = ctx = Context(asked.ctx.profile, call, asked.ctx.receipt)
        route = asked.route = asked.route.resolve(call, self._state.task)
        asked.note.protocol = route.protocol
        hub = route.served.read_request(call, ctx)
        asked.ctx = Context(ctx.profile, call, ctx.receipt, request=hub)

    def _call(self, body: JsonObject) -> Call:
        request, call = self._asked.request, self._asked.ctx.call
        query = dict(request.query) if "?" in request.raw_path else _NO_QUERY
        return Call(call.method, call.path, body, query, request.headers)

    async def _whole(self, attempt: Attempt) -> StreamResponse:
        asked = self._asked
        self.clock.enter("answer", attempt.candidate.provider.timeouts.total)
        hub, incoming = await whole_reply(asked, attempt)
        if asked.turn is not None:
            hub = await asked.turn.finished(hub)
        with Unforeseen(asked, attempt):
            reply = asked.route.served.write_reply(hub, served_context(asked, attempt))
            body = encode(reply.body)
        asked.note.status, asked.note.bytes = reply.status, len(body)
        response = as_response(reply.status, body, {**answer_headers(asked, attempt, incoming), **reply.headers})
        await send_large(response, asked.request, self.clock, self._server.write_stall)
        return response

    async def _answer_stream(self, candidates: Iterator[Candidate]) -> StreamResponse:
        self._stream = StreamAnswer(self._asked, self._server, self._mask)
        await self._stream.send(candidates)
        return self._streamed(self._stream)

    def _streamed(self, stream: StreamAnswer) -> StreamResponse:
        assert stream.response is not None
        self._asked.note.status = stream.response.status
        return stream.response

    async def _refuse(self, fault: Fault) -> StreamResponse:
        asked, note = self._asked, self._asked.note
        if self._stream is not None and self._stream.response is not None:  # too late for a status
            await self._stream.fail(fault)
            return self._streamed(self._stream)
        reply = asked.route.served.write_fault(fault, asked.ctx)
        note.failed(fault)
        note.status = reply.status
        body = self._mask(encode(reply.body))
        note.bytes = len(body)
        response = as_response(reply.status, body, {"x-request-id": note.request_id, **reply.headers})
        if not asked.request.content.at_eof():
            response.force_close()
        return response

    def _gone(self, fault: Fault | None) -> StreamResponse:
        """Nobody will read this, but aiohttp wants to have it."""
        asked, note = self._asked, self._asked.note
        if fault is not None:
            note.failed(fault)
        else:
            note.outcome = "client_left"
        if asked.request.transport is not None:
            asked.request.transport.abort()
        stream = self._stream
        return Response(status=499) if stream is None or stream.response is None else stream.response
