"""The command `translate`: one payload from one dialect to another, with the proxy's own pipeline.

A request goes from the client's dialect to the provider's; a reply, a stream or an error goes from the provider's
dialect to the client's. If the protocols differ, the proxy's bridge translates between them. Without the client's
request, a stream is translated for a client that requested usage, so that the result is complete. Nothing is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import aiohttp
import orjson

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Headers, JsonObject, Reply
from dragoman.adapters.changes import Receipt
from dragoman.adapters.dialect import COMPANIONS
from dragoman.adapters.extras import read_extra_parameters
from dragoman.adapters.faults import Fault
from dragoman.adapters.jsontext import read_any, read_object
from dragoman.adapters.pipeline import SSE, Attempt, Pipeline, find_bridge
from dragoman.adapters.routes import Route
from dragoman.proxy.config.choices import PolicyChoice
from dragoman.proxy.config.models import Config
from dragoman.proxy.routing.keys import ANYONE
from dragoman.proxy.routing.state import RouterState
from dragoman.proxy.routing.targets import Candidate
from dragoman.proxy.upstreams.errors import to_fault

from .client_request import RequestHead
from .usage_error import UsageError
from .wire_format import WireFormat

__all__ = ["Side", "Translation", "TranslationTask", "guess_side", "translate"]

Side: TypeAlias = Literal["request", "reply", "stream", "error"]

_MODEL = "model"
_PROVIDER = "provider"
_SSE_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")
_STREAM_REQUEST: JsonObject = {"stream": True, "stream_options": {"include_usage": True}}


@dataclass(frozen=True, slots=True)
class TranslationTask:
    """What to translate between. `model` is the upstream's name for the model, `status` that of a reply or an error.
    `head` has the client's headers for a request, and the provider's for everything else. `is_cut` is true if the
    provider's connection broke after the payload. `request` is the body of the client's request that the payload
    answers."""

    client: WireFormat
    provider: WireFormat
    model: str | None = None
    policy: PolicyChoice = field(default_factory=PolicyChoice)
    head: RequestHead = field(default_factory=RequestHead)
    status: int | None = None
    is_cut: bool = False
    request: bytes | None = None

    def __post_init__(self) -> None:
        """Raises UsageError if the proxy has no bridge between the protocols."""
        self.client.require_client()
        self.provider.require_provider()
        served, called = self.client.protocol, self.provider.protocol
        if served != called and find_bridge(served, [called]) is None:
            raise UsageError(f"there is no translation between {served} and {called}")

    @property
    def route(self) -> Route:
        """The proxy's route for the client."""
        return self.client.find_route({})


@dataclass(frozen=True, slots=True)
class Translation:
    """The result: for a request a `call`, the first of `call_count`; for a reply or an error a `reply`; for a stream
    its bytes.

    `upstream_fault` is what dragoman reads from a provider's error. `fault` says why the translation failed, and
    `reply` is the client's error for it. If a stream fails after its beginning, it ends with an error event instead.
    """

    receipt: Receipt
    call: Call | None = None
    call_count: int = 1
    reply: Reply | None = None
    stream: bytes | None = None
    upstream_fault: Fault | None = None
    fault: Fault | None = None
    breaks_connection: bool = False
    """True if the proxy would close the client's connection after the stream."""


def guess_side(data: bytes, status: int | None = None) -> Side:
    """The side that the payload looks like. Invalid JSON counts as a request, whose reader says where the error is."""
    text = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(_SSE_STARTS):
        return "stream"
    try:
        body = read_any(text)
    except ValueError:
        return "request" if text.startswith(b"{") or not text else "error"
    if not isinstance(body, dict) or (status or 0) >= 400:
        return "error"
    if body.keys() & {"messages", "input"}:
        return "request"
    if body.keys() & {"choices", "output", "data"}:
        return "reply"
    return "request" if "prompt" in body else "error"


def translate(side: Side, data: bytes, task: TranslationTask) -> Translation:
    """Translate one payload. Raises UsageError if `task.request` cannot be the request that it answers."""
    return _TRANSLATORS[side](data, task)


def _translate_request(data: bytes, task: TranslationTask) -> Translation:
    pipeline = Pipeline(task.route, Call("POST", "", {}))
    try:
        call = _create_call(data, task, task.head)
        pipeline = Pipeline(task.route, call)
        pipeline.receive_object(call.body)
        attempt = pipeline.prepare(_create_candidate(task, _name_model(task, pipeline), call).plan)
    except Fault as fault:
        return Translation(Receipt(), fault=fault, reply=pipeline.render_fault(fault))
    if not attempt.calls:
        raise UsageError("--to: dragoman answers this request without a call")
    first = attempt.calls[0]
    return Translation(first.receipt, call=first.call, call_count=len(attempt.calls))


def _translate_reply(data: bytes, task: TranslationTask) -> Translation:
    if (task.status or 200) >= 400:
        return _translate_error(data, task)
    pipeline, attempt = _expect_reply(task, {})
    headers = {"content-type": "application/json", "content-length": str(len(data)), **task.head.headers}
    written = _feed_reply(attempt, data, task, task.status or 200, headers)
    return _create_translation(pipeline, attempt, written)


def _translate_stream(data: bytes, task: TranslationTask) -> Translation:
    pipeline, attempt = _expect_reply(task, _STREAM_REQUEST)
    written = _feed_reply(attempt, data, task, 200, {"content-type": SSE})
    return _create_translation(pipeline, attempt, written)


def _create_translation(pipeline: Pipeline, attempt: Attempt, written: bytes) -> Translation:
    """What the client gets: an error with a status if the attempt failed before the first byte, else a stream or a
    whole reply, as the request asks."""
    answer, fault, receipt = attempt.answer, attempt.outcome.fault, attempt.receipt
    if fault is not None and not answer.has_begun:
        return Translation(receipt, fault=fault, reply=pipeline.render_fault(fault))
    if attempt.wants_stream:
        return Translation(receipt, stream=written, fault=fault, breaks_connection=answer.breaks_connection)
    return Translation(receipt, reply=Reply(answer.status, orjson.loads(written), attempt.headers))


def _translate_error(data: bytes, task: TranslationTask) -> Translation:
    """Without `--status`, the status that the error itself contains applies."""
    pipeline, attempt = _expect_reply(task, {})
    _feed_reply(attempt, data, task, task.status or 0, task.head.headers)
    fault = attempt.outcome.fault
    assert fault is not None, "an error is never a complete answer"
    return Translation(attempt.receipt, reply=pipeline.render_fault(fault), upstream_fault=fault)


def _create_call(data: bytes, task: TranslationTask, head: RequestHead) -> Call:
    """The call of the client with this body. Raises Fault."""
    body = read_object(data)
    name = body.get("model") or task.model or (_MODEL if task.client.has_model_in_path else None)
    return head.create_call(task.client, task.route, body, name if isinstance(name, str) else None)


def _name_model(task: TranslationTask, pipeline: Pipeline) -> str:
    """The upstream's name for the model, once the pipeline has the request."""
    return task.model or pipeline.request.get("model") or _MODEL


def _repeat_request(data: bytes, task: TranslationTask) -> tuple[Pipeline, Attempt]:
    """An attempt that has made the one call that the client's request needs. Raises UsageError."""
    try:
        call = _create_call(data, task, RequestHead())
        pipeline = Pipeline(task.route, call)
        pipeline.receive_object(call.body)
        pipeline.start_conversation()
        attempt = pipeline.prepare(_create_candidate(task, _name_model(task, pipeline), call).plan)
    except Fault as fault:
        raise UsageError(f"--request: {fault.message}") from None
    if len(attempt.calls) > 1:
        raise UsageError(f"--request: the request needs {len(attempt.calls)} calls, and the payload answers one")
    return pipeline, attempt


def _expect_reply(task: TranslationTask, request: JsonObject) -> tuple[Pipeline, Attempt]:
    """An attempt that waits for a reply to the client's own request, or else to this one, in canonical form. Raises
    UsageError."""
    if task.request is not None:
        return _repeat_request(task.request, task)
    route, candidate = task.route, _create_candidate(task, task.model or _MODEL)
    pipeline = Pipeline(route, Call("POST", route.strip_prefix(task.client.path(candidate.target.model)), request))
    pipeline.start_conversation()
    return pipeline, pipeline.expect_reply(candidate.plan, request)


def _feed_reply(attempt: Attempt, data: bytes, task: TranslationTask, status: int, headers: Headers) -> bytes:
    """Feed a provider's whole reply to the attempt, and return the bytes for the client."""
    outputs = [attempt.start_reply(0, status, headers), attempt.feed(0, data)]
    while outputs[-1].more:
        outputs.append(attempt.resume(0))
    outputs.append(attempt.close(0, to_fault(aiohttp.ClientPayloadError(), _PROVIDER) if task.is_cut else None))
    return b"".join(output.data for output in outputs)


_TRANSLATORS: Mapping[Side, Callable[[bytes, TranslationTask], Translation]] = {
    "request": _translate_request,
    "reply": _translate_reply,
    "stream": _translate_stream,
    "error": _translate_error,
}


def _create_candidate(task: TranslationTask, model: str, call: Call | None = None) -> Candidate:
    """The target as the proxy creates it, with its defaults. Raises Fault for a wrong `extra-parameters` header."""
    target = {"provider": _PROVIDER, "policy": task.policy}
    provider = {
        "dialect": task.provider.dialect.name,
        "base_url": "http://127.0.0.1",
        "protocols": [COMPANIONS.get(task.provider.protocol, task.provider.protocol)],
    }
    provider |= {"profile": task.provider.profile} if task.provider.profile else {}
    config = Config.from_values({"providers": {_PROVIDER: provider}, "models": {"model": {"targets": [target]}}})
    state = RouterState(config, dialects, create_upstream=_NoUpstream)
    candidate = next(state.list_candidates("model", ANYONE, read_extra_parameters(call.headers) if call else None))
    return replace(candidate, plan=candidate.plan.with_target(replace(candidate.target, model=model)))


class _NoUpstream:
    """An upstream that is never called."""

    def __init__(self, *_: Any) -> None:
        pass

    async def send(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("translate sends nothing")

    async def close(self) -> None:
        pass
