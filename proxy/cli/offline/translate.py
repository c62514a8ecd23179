"""One payload from one dialect to another, through the same verbs as in the proxy.

A request goes from the client's dialect to the provider's; a reply, a stream and an error from the provider's to the
client's. Where the two speak different protocols, the proxy's bridge stands between them. A stream is translated for a
client that asked for usage, so that nothing is left out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeAlias

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.changes import Receipt
from dragoman.adapters.extras import extra_parameters
from dragoman.adapters.faults import Fault
from dragoman.adapters.jsontext import read_any, read_object
from dragoman.adapters.routes import Route
from dragoman.adapters.sse import Framer, TooLong
from dragoman.adapters.streams import Output, StreamReader
from dragoman.adapters.translate.bridge import Bridge, bridges
from dragoman.proxy.config.models import Config, PolicyChoice
from dragoman.proxy.exchange.attempts import mended
from dragoman.proxy.routing.keys import ANYONE
from dragoman.proxy.routing.state import Candidate, RouterState

from .asked import ask, refusal, write
from .misuse import Misuse
from .speech import Asking, Speech

__all__ = ["Side", "Task", "Translated", "guess", "outputs_of", "translate"]

Side: TypeAlias = Literal["request", "reply", "stream", "error"]

_MODEL = "model"
_SSE_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")
_ASKED: JsonObject = {"stream": True, "stream_options": {"include_usage": True}}


@dataclass(frozen=True, slots=True)
class Task:
    """Between whom to translate, and with what. `model` is the upstream's name for it, `status` that of a reply or an
    error; the headers in `asking` are the client's for a request, and the provider's for all else."""

    client: Speech
    provider: Speech
    model: str | None = None
    policy: PolicyChoice = field(default_factory=PolicyChoice)
    asking: Asking = field(default_factory=Asking)
    status: int | None = None

    def __post_init__(self) -> None:
        """Raises Misuse where the proxy has no bridge between the protocols."""
        self.client.require_client()
        self.provider.require_provider()
        spoken, called = self.client.protocol, self.provider.protocol
        if spoken != called and (spoken not in bridges or bridges[spoken].called != called):
            raise Misuse(f"there is no translation between {spoken} and {called}")

    @property
    def route(self) -> Route:
        """How the proxy would serve the client."""
        return self.client.route({})

    @property
    def bridge(self) -> Bridge | None:
        """What stands between the two, where their protocols differ."""
        return None if self.client.protocol == self.provider.protocol else bridges[self.client.protocol]


@dataclass(frozen=True, slots=True)
class Translated:
    """What came out: a `call` for a request, the first of `calls`; a `reply` for a reply or an error, the bytes of a
    `stream`.

    `told` is what an error was understood as. A `fault` is what went wrong, and `reply` how the client hears of it; a
    stream tells of it itself.
    """

    receipt: Receipt
    call: Call | None = None
    calls: int = 1
    reply: Reply | None = None
    stream: bytes | None = None
    told: Fault | None = None
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


def outputs_of(data: bytes, reader: StreamReader) -> list[Output]:
    """Everything that the reader makes of a whole stream, its terminal included."""
    framer = Framer()
    outputs: list[Output] = []
    try:
        for items in (framer.feed(data), framer.close()):
            for item in items:
                outputs += reader.feed(item)
    except TooLong as error:
        return [*outputs, Fault("upstream_invalid_response", str(error), code="upstream_response_too_large")]
    return outputs if reader.ended else outputs + reader.close()


def _request(data: bytes, task: Task) -> Translated:
    route, call = task.route, None
    try:
        body = read_object(data)
        name = body.get("model") or task.model or (_MODEL if task.client.in_address else None)
        call = task.asking.call(task.client, route, body, name if isinstance(name, str) else None)
        question = ask(route, call)
        model = task.model or question.hub.get("model") or _MODEL
        written = write(question, _candidate(task, model, call))
    except Fault as fault:
        return Translated(Receipt(), fault=fault, reply=refusal(route, fault, call))
    return Translated(written.receipt, call=written.call, calls=written.calls)


def _reply(data: bytes, task: Task) -> Translated:
    status = task.status or 200
    if status >= 400:
        return _error(data, task)
    called, asked_by = _contexts(task, {})
    try:
        body = _object(data)
        hub = task.provider.called.read_reply(Reply(status, body, task.asking.headers, data), called)
        if task.bridge is not None:
            hub = task.bridge.reply(hub, {}, called)
        reply = task.route.served.write_reply(hub, asked_by)
    except Fault as fault:
        return Translated(called.receipt, fault=fault.located(called.receipt), reply=refusal(task.route, fault))
    return Translated(called.receipt, reply=reply)


def _stream(data: bytes, task: Task) -> Translated:
    called, asked_by = _contexts(task, _ASKED)
    try:
        reader, writer = task.provider.called.read_stream(called), task.route.served.write_stream(asked_by)
    except Fault as none:
        return Translated(called.receipt, fault=none, reply=refusal(task.route, none))
    outputs = outputs_of(data, reader)
    if task.bridge is not None:
        translator = task.bridge.stream(_ASKED, called)
        outputs = [made for output in outputs for made in translator.feed(output)]
    stream = b"".join(map(writer.write, outputs))
    fault = next((output for output in outputs if isinstance(output, Fault)), None)
    return Translated(called.receipt, stream=stream, fault=fault, broken_off=writer.aborts)


def _error(data: bytes, task: Task) -> Translated:
    """Without a status, what the error itself says of its status counts."""
    called, _ = _contexts(task, {})
    try:
        body = _object(data)
    except Fault:
        body = {}  # the reader takes any bytes
    fault = task.provider.called.read_fault(Reply(task.status or 0, body, task.asking.headers, data), called)
    return Translated(called.receipt, reply=refusal(task.route, fault), told=fault)


_VERBS: Mapping[Side, Callable[[bytes, Task], Translated]] = {
    "request": _request,
    "reply": _reply,
    "stream": _stream,
    "error": _error,
}


def _contexts(task: Task, request: JsonObject) -> tuple[Context, Context]:
    """For the provider's verbs, and for the client's."""
    route, target = task.route, _candidate(task, task.model or _MODEL).target
    if task.bridge is not None:
        target = mended(target)
    call = Call("POST", route.strip_prefix(task.client.address(target.model)), request)
    make = partial(Context, call=call, receipt=Receipt(), target=target, request=request)
    return make(target.profile), make(route.profile)


def _candidate(task: Task, model: str, call: Call | None = None) -> Candidate:
    """The target as the proxy would make it, defaults included. Raises Fault for a wrong `extra-parameters` header."""
    target = {"provider": "provider", "policy": task.policy}
    provider = {
        "dialect": task.provider.dialect.name,
        "base_url": "http://127.0.0.1",
        "protocols": [task.provider.protocol],
    }
    provider |= {"profile": task.provider.profile} if task.provider.profile else {}
    config = Config.model_validate({"providers": {"provider": provider}, "models": {"model": {"targets": [target]}}})
    state = RouterState(config, dialects, connect=_Nowhere)
    candidate = next(state.candidates("model", ANYONE, extra_parameters(call.headers) if call else None))
    return replace(candidate, target=replace(candidate.target, model=model))


class _Nowhere:
    """An upstream that nothing is sent to."""

    def __init__(self, *_: Any) -> None:
        pass

    async def open(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("nothing is sent from here")

    async def close(self) -> None:
        pass


def _object(data: bytes) -> JsonObject:
    try:
        body = read_any(data)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise Fault("upstream_invalid_response", "the reply is not a JSON object", code="upstream_invalid_json")
    return body
