"""One payload from one dialect to another, through the same verbs as in the proxy.

A request goes from the client's dialect to the provider's; a reply, a stream and an error from the provider's to the
client's. Where the two speak different protocols, the proxy's bridge stands between them. A stream is translated for a
client that asked for usage, so that nothing is left out of it.
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
from dragoman.adapters.extras import read_extra_parameters
from dragoman.adapters.faults import Fault
from dragoman.adapters.jsontext import read_any, read_object
from dragoman.adapters.pipeline import SSE, Attempt, Pipeline, find_bridge
from dragoman.adapters.routes import Route
from dragoman.proxy.config.models import Config, PolicyChoice
from dragoman.proxy.routing.keys import ANYONE
from dragoman.proxy.routing.state import Candidate, RouterState
from dragoman.proxy.upstreams.errors import to_fault

from .misuse import Misuse
from .speech import Asking, Speech

__all__ = ["Side", "Task", "Translated", "guess", "translate"]

Side: TypeAlias = Literal["request", "reply", "stream", "error"]

_MODEL = "model"
_PROVIDER = "provider"
_SSE_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")
_ASKED: JsonObject = {"stream": True, "stream_options": {"include_usage": True}}


@dataclass(frozen=True, slots=True)
class Task:
    """Between whom to translate, and with what. `model` is the upstream's name for it, `status` that of a reply or an
    error; the headers in `asking` are the client's for a request, and the provider's for all else. `is_cut`: the
    provider's connection broke after the payload. `request` is the client's, which
    the payload answers."""

    client: Speech
    provider: Speech
    model: str | None = None
    policy: PolicyChoice = field(default_factory=PolicyChoice)
    asking: Asking = field(default_factory=Asking)
    status: int | None = None
    is_cut: bool = False
    request: bytes | None = None

    def __post_init__(self) -> None:
        """Raises Misuse where the proxy has no bridge between the protocols."""
        spoken, called = self.client.protocol, self.provider.protocol
        if spoken != called and find_bridge(spoken, [called]) is None:
            raise Misuse(f"there is no translation between {spoken} and {called}")

    @property
    def route(self) -> Route:
        """How the proxy would serve the client."""
        return self.client.route({})


@dataclass(frozen=True, slots=True)
class Translated:
    """What came out: a `call` for a request, the first of `calls`; a `reply` for a reply or an error, the bytes of a
    `stream`.

    `understood_as` is the fault that an error was read as. A `fault` is what went wrong, and `reply` is the client's
    error for it; a stream that has begun ends with an error event instead.
    """

    receipt: Receipt
    call: Call | None = None
    calls: int = 1
    reply: Reply | None = None
    stream: bytes | None = None
    understood_as: Fault | None = None
    fault: Fault | None = None
    broken_off: bool = False
    """True where the proxy would break the client's connection after the stream."""


def guess(data: bytes, status: int | None = None) -> Side:
    """Which side a payload is of, by its looks. Broken JSON counts as a request, whose reader says where it breaks."""
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


def translate(side: Side, data: bytes, task: Task) -> Translated:
    return _VERBS[side](data, task)


def _request(data: bytes, task: Task) -> Translated:
    pipeline = Pipeline(task.route, Call("POST", "", {}))
    try:
        call = _read_call(data, task, task.asking)
        pipeline = Pipeline(task.route, call)
        pipeline.receive_object(call.body)
        attempt = pipeline.prepare(_candidate(task, _model(task, pipeline), call).plan)
    except Fault as fault:
        return Translated(Receipt(), fault=fault, reply=pipeline.render_fault(fault))
    first = attempt.calls[0]
    return Translated(first.receipt, call=first.call, calls=len(attempt.calls))


def _reply(data: bytes, task: Task) -> Translated:
    if (task.status or 200) >= 400:
        return _error(data, task)
    pipeline, attempt = _expect(task, {})
    headers = {"content-type": "application/json", "content-length": str(len(data)), **task.asking.headers}
    written = _feed(attempt, data, task, task.status or 200, headers)
    return _finish(pipeline, attempt, written)


def _stream(data: bytes, task: Task) -> Translated:
    pipeline, attempt = _expect(task, _ASKED)
    return _finish(pipeline, attempt, _feed(attempt, data, task, 200, {"content-type": SSE}))


def _finish(pipeline: Pipeline, attempt: Attempt, written: bytes) -> Translated:
    """What the client gets: an error with a status if the attempt failed before the first byte, else a stream or a
    whole reply, as the request asks."""
    answer, fault, receipt = attempt.answer, attempt.outcome.fault, attempt.receipt
    if fault is not None and not answer.has_begun:
        return Translated(receipt, fault=fault, reply=pipeline.render_fault(fault))
    if attempt.wants_stream:
        return Translated(receipt, stream=written, fault=fault, broken_off=answer.breaks_connection)
    return Translated(receipt, reply=Reply(answer.status, orjson.loads(written), attempt.headers))


def _error(data: bytes, task: Task) -> Translated:
    """Without a status, the status that the error itself names counts."""
    pipeline, attempt = _expect(task, {})
    _feed(attempt, data, task, task.status or 0, task.asking.headers)
    fault = attempt.outcome.fault
    assert fault is not None, "an error is never a complete answer"
    return Translated(attempt.receipt, reply=pipeline.render_fault(fault), understood_as=fault)


def _read_call(data: bytes, task: Task, asking: Asking) -> Call:
    """The call of the client with this body. Raises Fault."""
    body = read_object(data)
    name = body.get("model") or task.model or (_MODEL if task.client.in_address else None)
    return asking.call(task.client, task.route, body, name if isinstance(name, str) else None)


def _model(task: Task, pipeline: Pipeline) -> str:
    """The upstream's name for the model, once the pipeline has the request."""
    return task.model or pipeline.request.get("model") or _MODEL


def _repeat_request(data: bytes, task: Task) -> tuple[Pipeline, Attempt]:
    """An attempt that has made the one call that the client's request needs. Raises Misuse."""
    try:
        call = _read_call(data, task, Asking())
        pipeline = Pipeline(task.route, call)
        pipeline.receive_object(call.body)
        pipeline.start_conversation()
        attempt = pipeline.prepare(_candidate(task, _model(task, pipeline), call).plan)
    except Fault as fault:
        raise Misuse(f"--request: {fault.message}") from None
    if len(attempt.calls) > 1:
        raise Misuse(f"--request: the request needs {len(attempt.calls)} calls, and the payload answers one")
    return pipeline, attempt


def _expect(task: Task, request: JsonObject) -> tuple[Pipeline, Attempt]:
    """An attempt that waits for a reply to the client's own request, or else to this one, in canonical form. Nothing is
    stored. Raises Misuse."""
    if task.request is not None:
        return _repeat_request(task.request, task)
    route, candidate = task.route, _candidate(task, task.model or _MODEL)
    pipeline = Pipeline(route, Call("POST", route.natural(task.client.address(candidate.target.model)), request))
    pipeline.start_conversation()
    return pipeline, pipeline.expect_reply(candidate.plan, request)


def _feed(attempt: Attempt, data: bytes, task: Task, status: int, headers: Headers) -> bytes:
    """The bytes for the client of a whole reply of a provider."""
    outputs = [attempt.start_reply(0, status, headers), attempt.feed(0, data)]
    while outputs[-1].more:
        outputs.append(attempt.resume(0))
    outputs.append(attempt.close(0, to_fault(aiohttp.ClientPayloadError(), _PROVIDER) if task.is_cut else None))
    return b"".join(output.data for output in outputs)


_VERBS: Mapping[Side, Callable[[bytes, Task], Translated]] = {
    "request": _request,
    "reply": _reply,
    "stream": _stream,
    "error": _error,
}


def _candidate(task: Task, model: str, call: Call | None = None) -> Candidate:
    """The target as the proxy would make it, defaults included. Raises Fault for a wrong `extra-parameters` header."""
    target = {"provider": _PROVIDER, "policy": task.policy}
    provider = {
        "dialect": task.provider.dialect.name,
        "base_url": "http://127.0.0.1",
        "protocols": [task.provider.protocol],
    }
    provider |= {"profile": task.provider.profile} if task.provider.profile else {}
    config = Config.model_validate({"providers": {_PROVIDER: provider}, "models": {"model": {"targets": [target]}}})
    state = RouterState(config, dialects, create_upstream=_Nowhere)
    candidate = next(state.candidates("model", ANYONE, read_extra_parameters(call.headers) if call else None))
    return replace(candidate, plan=candidate.plan.with_target(replace(candidate.target, model=model)))


class _Nowhere:
    """An upstream that nothing is sent to."""

    def __init__(self, *_: Any) -> None:
        pass

    async def send(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("nothing is sent from here")

    async def close(self) -> None:
        pass
