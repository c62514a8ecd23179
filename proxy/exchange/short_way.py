"""The short way of most exchanges: one target, one call, one whole reply, and nothing that is unusual.

It answers what `pipeline.SingleCall` answers, and leaves everything else to the exchange:

    before the call    a header matters, the body is large, the model has several targets, a limit applies, a stream
                       is wanted, ...: the exchange goes on with what was found out (`Leftover`)
    after the call     it failed, or its reply needs an attempt: the attempt goes on with the call as it is
                       (`EarlyCall`), so that nothing is sent twice, and nothing that was paid for is lost

What is done, and in which order, is as in `exchange`, `attempts`, `single_try` and `transfer`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from time import perf_counter
from typing import NamedTuple

from aiohttp.web_request import BaseRequest
from aiohttp.web_response import StreamResponse

from dragoman.adapters.call import Call, JsonObject
from dragoman.adapters.compact_text import replace_model
from dragoman.adapters.extras import EXTRA_PARAMETERS
from dragoman.adapters.faults import Fault
from dragoman.adapters.json_structure import may_exceed_values
from dragoman.adapters.jsontext import BOM, read_plain_object
from dragoman.adapters.pipeline import SingleCall, SingleReply, begin_call, has_plain_head
from dragoman.adapters.routes import Route
from dragoman.proxy.config.models import Server
from dragoman.proxy.conversations.owner_store import OwnerStore
from dragoman.proxy.conversations.stores.interface import ResponseStore
from dragoman.proxy.http.aiohttp_bodies import take_rest
from dragoman.proxy.http.deadline import Deadline
from dragoman.proxy.http.json_response import create_reply_response
from dragoman.proxy.http.large_body import LargeBody
from dragoman.proxy.http.request_body import CLIENT_DEADLINES, read_body
from dragoman.proxy.http.stream_response import send_large
from dragoman.proxy.routing.keys import Caller
from dragoman.proxy.routing.state import RouterState
from dragoman.proxy.routing.targets import Candidate
from dragoman.proxy.telemetry.record import ExchangeRecord
from dragoman.proxy.telemetry.short_recording import ShortRecording
from dragoman.proxy.telemetry.tracing import TRACE
from dragoman.proxy.upstreams.interface import UpstreamResponse

from .early_call import EarlyCall
from .large_bodies import LARGE, SMALL, BodyWorker

__all__ = ["NOTHING_DONE", "Leftover", "allows_short_way", "take_short_way"]


class Leftover(NamedTuple):
    """What the exchange goes on with, as far as it is known: who asks, and has no limits; the request's body and its
    parsed form; the only target to ask, and the call to it."""

    caller: Caller | None = None
    body: bytes | LargeBody | None = None
    parsed: JsonObject | None = None
    target: Candidate | None = None
    early: EarlyCall | None = None


NOTHING_DONE = Leftover()
"""The exchange does all of it."""

_NEED_MORE = ("Content-Encoding", "Expect", EXTRA_PARAMETERS, TRACE, *CLIENT_DEADLINES)
"""Headers of requests that are left to the exchange."""

_LARGEST, _MOST_VALUES = 256 * 1024, 4_000
"""Bytes of a body, and values in it, that are read in the event loop: it takes a millisecond. What is larger is left to
the exchange."""


async def take_short_way(
    request: BaseRequest,
    headers: Mapping[str, str],
    path: str,
    route: Route,
    state: RouterState,
    server: Server,
    deadline: Deadline,
    record: ExchangeRecord,
    store: ResponseStore | None,
    worker: BodyWorker,
) -> StreamResponse | Leftover:
    """The client's response to a request whose head `allows_short_way`, or what is left to do. Raises what `send_large`
    raises, Fault if the body does not come or the response cannot be stored, and CancelledError if the client has
    left."""
    caller = _find_caller(request.headers, state)
    if caller is None or (request.content_length or 0) > server.body_limit:
        return NOTHING_DONE
    record.key, record.key_metadata = caller.name, caller.metadata
    raw: bytes | LargeBody | None = take_rest(request.content)
    if raw is None:
        deadline.enter_phase("body", server.body_timeout)
        raw = await read_body(request, server.body_limit, deadline, needs_type=False)
    recording = record.recording
    recorder = recording if isinstance(recording, ShortRecording) else None
    if recorder is not None:
        recorder.add_request(raw)
    most = min(server.value_limit, _MOST_VALUES)
    if not isinstance(raw, bytes) or len(raw) > _LARGEST or raw[:3] == BOM:
        return Leftover(caller, raw)
    is_counted = len(raw) > LARGE
    if (is_counted and may_exceed_values(raw, most)) or (len(raw) > SMALL and worker.wants(raw)):
        return Leftover(caller, raw)
    found = read_plain_object(raw, None if is_counted else most)
    if found is None:
        return Leftover(caller, raw)
    body, text = found
    candidate = state.find_only_target(body.get("model"), caller)
    if candidate is None or body.get("stream") is True:
        return Leftover(caller, raw, body, candidate)
    client = Call(request.method, route.strip_prefix(path), body, {}, request.headers)
    single = begin_call(route, client, candidate.plan, record.request_id, has_store=store is not None)
    if single is None:
        return Leftover(caller, raw, body, candidate)
    keeper = OwnerStore(store, caller.name or "", deadline) if store is not None and single.keeps else None
    if (keeper is not None and keeper.is_failing) or not candidate.provider.slots.take():
        return Leftover(caller, raw, body, candidate)
    record.model, record.request_bytes = body["model"], len(raw)
    written = replace_model(text, body, single.call.body)
    reply = await _make_call(candidate, single, written, deadline, record, recorder)
    if isinstance(reply, EarlyCall):
        return Leftover(caller, raw, body, candidate, reply)
    del raw, text, written, body, single, found
    if keeper is not None and reply.record is not None:
        await keeper.save(reply.record)
    return await _send(request, headers, reply, server, deadline, record, recorder)


def allows_short_way(headers: Mapping[str, str], raw_path: str, route: Route, server: Server) -> bool:
    """Whether the head of a request needs no more than the short way does. Only its body may still be too large."""
    if headers.get("Content-Type") != "application/json" or "?" in raw_path or route.shared or server.target_header:
        return False
    return route.dialect.deployment_header not in headers and not any(name in headers for name in _NEED_MORE)


def _find_caller(headers: Mapping[str, str], state: RouterState) -> Caller | None:
    """Who asks; None if that is not known, or if the caller is limited."""
    try:
        caller = state.keys.authenticate(headers)
    except Fault:
        return None
    return caller if caller.limiter is None and caller.budget is None else None


async def _make_call(
    candidate: Candidate,
    single: SingleCall,
    written: bytes | None,
    deadline: Deadline,
    record: ExchangeRecord,
    recorder: ShortRecording | None,
) -> SingleReply | EarlyCall:
    """Make the call, which has a place among the calls of its provider; `written` is its body, if that is known.
    Raises CancelledError if the client left."""
    provider, health = candidate.provider, candidate.health
    began, is_taken = perf_counter(), False
    response: UpstreamResponse | None = None
    label = candidate.label
    record.begin_try(label, candidate.vendor, candidate.choice.price, single.receipt)
    deadline.start_try(provider.timeouts.total)
    health.begin()
    if recorder is not None:
        recorder.begin_call(candidate.plan, single.receipt, label)
    try:
        response, data, fault = await _ask(candidate, single, written, deadline, record, recorder)
        reply = None if response is None or fault is not None else _read(single, response, data)
        is_taken = True
        if response is None or reply is None:
            health.end("unknown")
            record.attempts = 0
            return EarlyCall(candidate, response, fault, data)
    finally:
        if not is_taken:
            health.end("unknown")
            provider.slots.release()
    if recorder is not None:
        recorder.record_whole_reply(response.status, response.headers, response.sent_secrets, data)
    response.finish()
    provider.slots.release()
    provider.retries.add_request()
    health.end("answered")
    health.measure(perf_counter() - began)
    record.upstream_status, record.usage = response.status, reply.usage
    return reply


async def _ask(
    candidate: Candidate,
    single: SingleCall,
    written: bytes | None,
    deadline: Deadline,
    record: ExchangeRecord,
    recorder: ShortRecording | None,
) -> tuple[UpstreamResponse | None, bytes, Fault | None]:
    """The response, what was read of its body, and why no more was. Only a body that may be plain is read, and no large
    one to its end."""
    timeouts, response, data = candidate.provider.timeouts, None, b""
    try:
        if timeouts.first_byte is None:
            deadline.enter_phase("answer", timeouts.total)
        else:
            deadline.enter_phase("first_byte", timeouts.first_byte)
        forwarded = {"x-request-id": record.request_id}
        if record.trace_headers is not None:
            forwarded |= record.trace_headers
        response = await candidate.provider.upstream.send(
            single.call, stream=False, forwarded=forwarded, recorder=recorder, written=written
        )
        if timeouts.first_byte is not None:
            deadline.enter_phase("answer", timeouts.total)
        if has_plain_head(response.status, response.headers, LARGE):
            data = response.take_whole() or b""
            while not response.is_at_end and len(data) <= LARGE and (more := await response.read_chunk()):
                data += more
        return response, data, None
    except Fault as fault:
        return response, data, fault
    except asyncio.CancelledError as error:
        try:
            return response, data, deadline.as_fault(error)
        except BaseException:
            if response is not None:
                response.close()
            raise


def _read(single: SingleCall, response: UpstreamResponse, data: bytes) -> SingleReply | None:
    """The answer to the client; None if there is anything about the reply that an attempt has to look at."""
    if not data or not response.is_at_end or _repeats_secret(response, data):
        return None
    reply = single.take_reply(response.headers, data)
    if reply is None or _repeats_secret(response, reply.data):  # the reply may have escaped its letters
        return None
    for value in reply.headers.values():
        if _repeats_secret(response, value.encode()):
            return None
    return reply


def _repeats_secret(response: UpstreamResponse, data: bytes) -> bool:
    """Whether bytes have a credential of the call."""
    for secret in response.sent_secrets:  # noqa: SIM110 - a generator costs more, and this runs for every reply
        if secret in data:
            return True
    return False


async def _send(
    request: BaseRequest,
    headers: Mapping[str, str],
    reply: SingleReply,
    server: Server,
    deadline: Deadline,
    record: ExchangeRecord,
    recorder: ShortRecording | None,
) -> StreamResponse:
    record.bytes = len(reply.data)
    if recorder is not None:
        recorder.add_answer(reply.data)
    response = create_reply_response(reply.status, reply.data, {**reply.headers, **headers})
    await send_large(response, request, deadline, server.write_stall)
    return response
