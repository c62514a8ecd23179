"""One exchange: a client's request, and everything that happens to it.

Read the request, find the model's targets, try one after the other until one answers, write the response. An error is a
Fault, which the client's dialect renders. Every exchange writes one line to the log.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse

from dragoman.adapters.call import Call
from dragoman.adapters.extras import read_extra_parameters
from dragoman.adapters.faults import Fault
from dragoman.adapters.long_strings import LARGE
from dragoman.adapters.long_values import LongValue
from dragoman.adapters.pipeline import Pipeline
from dragoman.adapters.rate_headers import write_headers
from dragoman.adapters.request_properties import find_session
from dragoman.adapters.routes import Route
from dragoman.proxy.config.models import Server
from dragoman.proxy.conversations.owner_store import OwnerStore
from dragoman.proxy.conversations.stores.interface import ResponseStore
from dragoman.proxy.http.aiohttp_request import get_current_task
from dragoman.proxy.http.deadline import Deadline
from dragoman.proxy.http.json_response import create_fault_response
from dragoman.proxy.http.large_body import LargeBody, list_pieces
from dragoman.proxy.http.request_body import read_body, read_client_deadline
from dragoman.proxy.http.stream_response import ClientDisconnected
from dragoman.proxy.routing.keys import Caller
from dragoman.proxy.routing.rate_limits import Limiter
from dragoman.proxy.routing.state import RouterState
from dragoman.proxy.routing.targets import Candidate
from dragoman.proxy.telemetry.journal import Journal
from dragoman.proxy.telemetry.log import Log
from dragoman.proxy.telemetry.mask import Mask
from dragoman.proxy.telemetry.record import MAX_MODEL, MAX_PATH, ExchangeRecord
from dragoman.proxy.telemetry.recording import REPLY, REQUEST

from .attempts import try_targets
from .body_judge import Question
from .context import RequestContext
from .downstream import DownstreamResponse, create_downstream_response
from .large_bodies import SMALL, BodyWorker, is_large
from .short_way import NOTHING_DONE, Leftover, take_short_way

__all__ = ["Exchange"]


class Exchange:
    """Created inside the task that serves the request. `headers` are those of every response to it, x-request-id among
    them. `is_plain` says whether the short way may take a request with its head."""

    __slots__ = (
        *(
            "_ctx",
            "_downstream",
            "_headers",
            "_is_plain",
            "_journal",
            "_limiter",
            "_log",
            "_mask",
            "_path",
            "_record",
            "_request",
        ),
        *("_route", "_server", "_state", "_store", "_worker", "deadline"),
    )

    def __init__(
        self,
        request: BaseRequest,
        headers: Mapping[str, str],
        path: str,
        route: Route,
        state: RouterState,
        store: ResponseStore | None,
        server: Server,
        log: Log,
        mask: Mask,
        worker: BodyWorker,
        journal: Journal,
        *,
        is_plain: bool,
    ) -> None:
        self.deadline = Deadline(get_current_task(request))
        self._is_plain = is_plain
        self._request = request
        self._headers = headers
        self._path = path
        self._route = route
        self._state = state
        self._store = store
        self._server = server
        self._log = log
        self._mask = mask
        self._worker = worker
        self._journal = journal
        self._record = record = ExchangeRecord(headers["x-request-id"], route.dialect.name, route.protocol)
        record.path, record.client = path[:MAX_PATH], request.remote
        if journal.inspector.is_used:
            if journal.inspector.mode != "off":
                journal.inspector.begin_recording(
                    record, request.method, request.raw_path, request.raw_headers, is_short=is_plain
                )
            journal.inspector.begin(record, request.raw_path)
        if journal.tracing is not None:
            journal.tracing.begin(record, request.method, request.headers)
        self._ctx: RequestContext | None = None
        self._downstream: DownstreamResponse | None = None
        self._limiter: Limiter | None = None

    async def run(self) -> StreamResponse:
        """The client's response. Raises CancelledError if the client has left."""
        record = self._record
        try:
            response = await self._respond()
            record.status = status = response.status
            if (recording := record.recording) is not None:
                fields = getattr(response, "fields", None)  # of an OwnHeadResponse
                recording.record_answer(status, response.headers if fields is None else fields)
            return response
        except ClientDisconnected as error:
            return self._abort(error.fault)
        except ConnectionError:
            return self._abort(None)
        except asyncio.CancelledError:
            self._abort(None)
            raise
        finally:
            self.deadline.stop()
            if self._downstream is not None:
                self._downstream.close()
            if self._ctx is not None and self._ctx.early is not None:
                self._ctx.early.drop()
            self._journal.write(record)
            if self._limiter is not None:
                self._limiter.settle(record.tokens.total)

    async def _respond(self) -> StreamResponse:
        """Serve the request, or answer with a fault. Raises an exception only if the client is gone."""
        log, record = self._log, self._record
        common = (self._request, self._headers, self._path, self._route, self._state, self._server)
        try:
            left: StreamResponse | Leftover = NOTHING_DONE
            if self._is_plain:
                left = await take_short_way(*common, self.deadline, record, self._store, self._worker)
            return await self._serve(self._open_context(left), left) if isinstance(left, Leftover) else left
        except (Fault, asyncio.CancelledError) as error:
            return await self._refuse(self.deadline.as_fault(error))
        except (ClientDisconnected, ConnectionError):
            raise
        except Exception as error:
            log.error("defect", request_id=record.request_id, exc_info=error)
            return await self._refuse(Fault("internal", "something went wrong in the proxy", code="internal_error"))

    def _open_context(self, left: Leftover = NOTHING_DONE) -> RequestContext:
        """What all steps of the long way share."""
        if (known := self._ctx) is not None:
            return known
        request, route, record = self._request, self._route, self._record
        query = dict(request.query) if "?" in request.raw_path else {}
        call = Call(request.method, route.strip_prefix(self._path), {}, query, request.headers)
        report_defect = partial(_report_defect, self._log, record.request_id)  # a bound method would be a cycle
        pipeline = Pipeline(
            route, call, has_store=self._store is not None, report_defect=report_defect, request_id=record.request_id
        )
        common = (self.deadline, self._server, self._log, self._mask, self._worker)
        recording = self._journal.inspector.leave_short_way(record)
        self._ctx = RequestContext(request, self._headers, pipeline, record, *common, recording, early=left.early)
        return self._ctx

    async def _serve(self, ctx: RequestContext, left: Leftover) -> StreamResponse:
        state, pipeline, record = self._state, ctx.pipeline, ctx.record
        caller = left.caller or await self._admit(ctx)
        await self._receive(ctx, left)
        record.protocol = pipeline.route.protocol
        model = state.resolve_model(pipeline.request.get("model"), pipeline.deployment)
        record.model = model[:MAX_MODEL]
        record.stream = pipeline.wants_stream
        list_all = partial(_list_candidates, ctx, state, model, caller)
        candidates = list_all() if left.target is None else _list_from(left.target, list_all)
        await self._continue_conversation(ctx, caller.name or "")
        self._downstream = create_downstream_response(ctx)
        list_after = partial(_list_after, ctx, state, model)
        await try_targets(ctx, candidates, list_after, self._downstream, state.most_attempts)
        response = self._downstream.response
        assert response is not None
        return response

    async def _admit(self, ctx: RequestContext) -> Caller:
        """Who asks. Raises Fault if the request may not be served."""
        headers, record = ctx.request.headers, ctx.record
        caller = self._state.keys.authenticate(headers)
        record.key, record.key_metadata = caller.name, caller.metadata
        if caller.budget is not None:
            caller.budget.check()
        if caller.limiter is not None:
            await self._count(ctx, caller.limiter)
        if (seconds := read_client_deadline(headers)) is not None:
            self.deadline.limit_exchange(seconds)
        return caller

    async def _receive(self, ctx: RequestContext, left: Leftover) -> None:
        """Read the request, from where the short way left it. Raises Fault."""
        find_task, server, body = self._state.find_task, ctx.server, left.body
        if body is None:
            self.deadline.enter_phase("body", server.body_timeout)
            needs_type = not self._state.keys  # see http/browser_rules.py
            body = await read_body(ctx.request, server.body_limit, self.deadline, needs_type=needs_type)
            if (recording := ctx.recording) is not None:
                for piece in list_pieces(body):
                    recording.add(REQUEST, piece)
        ctx.record.request_bytes = len(body)
        if left.parsed is not None:
            ctx.pipeline.receive_object(left.parsed, find_task)
        elif not isinstance(body, bytes) or is_large(body) or self._is_doubtful(body, left):
            await self._receive_large(ctx, body)
        else:
            ctx.pipeline.receive(body, find_task, server.value_limit)

    def _is_doubtful(self, body: bytes, left: Leftover) -> bool:
        """Whether something may be wrong with a request that is not large, so that to say what may take long."""
        return len(body) > SMALL and (left.body is not None or self._worker.wants(body))

    async def _count(self, ctx: RequestContext, limiter: Limiter) -> None:
        """Count the request. Every response says what its key has left. Raises Fault."""
        admission = await limiter.admit()
        ctx.headers = {**ctx.headers, **write_headers(self._route.rate_headers, admission.left)}
        if admission.refusal is not None:
            raise admission.refusal
        self._limiter = limiter

    async def _receive_large(self, ctx: RequestContext, body: bytes | LargeBody) -> None:
        """Read the request while other exchanges go on. Raises Fault."""
        ctx.worker.admit()
        ctx.is_large, ctx.has_long_strings = True, len(body) > LARGE
        self.deadline.enter_phase("large_body", ctx.server.body_timeout)
        pipeline, find_task, limit = ctx.pipeline, self._state.find_task, ctx.server.value_limit

        def read(whole: bytes, long_values: Sequence[LongValue] | None) -> None:
            if long_values is None:
                pipeline.receive(whole, find_task, limit)
            else:
                pipeline.receive_right(whole, find_task, long_values)

        await ctx.worker.read(read, self._describe(ctx), body)

    def _describe(self, ctx: RequestContext) -> Question:
        """The head of the request, for the process that judges it."""
        call, route = ctx.pipeline.call, self._route
        return {
            "dialect": route.dialect.name,
            "profile": route.profile,
            "path": self._path,
            "method": call.method,
            "query": dict(call.query),
            "headers": list(call.headers.items()),
            "value_limit": ctx.server.value_limit,
        }

    async def _continue_conversation(self, ctx: RequestContext, owner: str) -> None:
        if self._store is not None:
            ctx.store = OwnerStore(self._store, owner, self.deadline)
        recall = ctx.pipeline.start_conversation()
        if ctx.pipeline.keeps_response and ctx.store is not None:
            await ctx.store.check()
        if recall is not None and ctx.store is not None:
            found = await ctx.store.recall(recall)
            await ctx.work(partial(ctx.pipeline.supply, *found))

    async def _refuse(self, fault: Fault) -> StreamResponse:
        ctx, downstream = self._open_context(), self._downstream
        ctx.record.record_fault(fault)
        if downstream is not None and downstream.response is not None:  # too late for a status
            await downstream.fail(fault)
            return downstream.response
        response = create_fault_response(ctx.pipeline.render_fault(fault), ctx.request, ctx.headers, ctx.mask)
        if isinstance(response.body, bytes):
            ctx.record.bytes = len(response.body)
            if (recording := ctx.recording) is not None:
                recording.add_copy(REPLY, response.body)
        return response

    def _abort(self, fault: Fault | None) -> StreamResponse:
        """Close the connection. aiohttp requires a response, which nobody reads."""
        record, transport = self._record, self._request.transport
        if fault is not None:
            record.record_fault(fault)
        else:
            record.outcome = "client_left"
        if transport is not None:
            transport.abort()
        response = None if self._downstream is None else self._downstream.response
        if response is not None:
            record.status = response.status
        return response or Response(status=499)


def _list_candidates(ctx: RequestContext, state: RouterState, model: str, caller: Caller) -> Iterator[Candidate]:
    """The targets to try. Raises Fault if the caller may not use the model."""
    pipeline, extra = ctx.pipeline, read_extra_parameters(ctx.request.headers)
    session = find_session(pipeline.request, pipeline.route.protocol)
    return state.list_candidates(model, caller, extra, pipeline.deployment, session)


def _list_from(first: Candidate, list_all: Callable[[], Iterator[Candidate]]) -> Iterator[Candidate]:
    """All targets, of which the first one is known: the others are looked up if they are needed."""
    yield first
    yield from islice(list_all(), 1, None)


def _list_after(ctx: RequestContext, state: RouterState, model: str, reason: str) -> Iterator[Candidate]:
    """The targets to try after a fault for this reason."""
    pipeline, extra = ctx.pipeline, read_extra_parameters(ctx.request.headers)
    session = find_session(pipeline.request, pipeline.route.protocol)
    return state.list_candidates_after(reason, model, extra, session)


def _report_defect(log: Log, request_id: str, provider: str, error: Exception) -> None:
    """Log where it happened, without the exception's text, which may quote the reply."""
    place = "".join(traceback.format_tb(error.__traceback__))
    log.error("defect", request_id=request_id, provider=provider, error=type(error).__name__, traceback=place)
