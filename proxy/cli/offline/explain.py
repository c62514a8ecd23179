"""What the proxy would do with a request: which targets it would try, why it would skip some, what it would send.

Everything is the proxy's own: the routing, the verbs and the upstream, which only stops before it sends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, JsonObject, Reply
from dragoman.adapters.changes import Change
from dragoman.adapters.extras import read_extra_parameters
from dragoman.adapters.faults import Fault
from dragoman.adapters.jsontext import read_object
from dragoman.adapters.pipeline import Attempt, Pipeline
from dragoman.adapters.routes import Route
from dragoman.proxy.config.keyfile import BadKeyFile
from dragoman.proxy.config.models import Config, Key
from dragoman.proxy.config.names import match
from dragoman.proxy.routing.keys import ANYONE, Caller
from dragoman.proxy.routing.state import Candidate, RouterState

from .misuse import Misuse, unknown
from .rehearsal import LitellmRehearsal, Rehearsal, Request, rehearsed
from .speech import Asking, Speech

__all__ = ["Inquiry", "Likeliest", "Plan", "Stop", "explain", "key_of"]

_FORWARDED = ("traceparent", "tracestate")


class Likeliest(Random):
    """Draws whatever has the most weight, the first of several."""

    def choices(self, population: Any, weights: Any = None, **_: Any) -> list[Any]:
        return [max(zip(population, weights, strict=True), key=lambda pair: float(pair[1]))[0]]


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A client's request. `model`, where it is set, takes the place of the one in the body."""

    speech: Speech
    data: bytes
    model: str | None = None
    key: str | None = None
    asking: Asking = field(default_factory=Asking)
    stream: bool = False

    def body(self) -> JsonObject:
        """Raises Fault for what is no JSON object."""
        body = read_object(self.data)
        return self.speech.named({**body, "stream": True} if self.stream else body, self.model)

    def call(self, route: Route, body: JsonObject) -> Call:
        return self.asking.call(self.speech, route, body, self._name(body))

    def address(self, body: JsonObject) -> str:
        """Path and query that the proxy is asked at."""
        query = urlencode(self.asking.full_query(self.speech), quote_via=quote)
        return self.speech.address(self._name(body)) + (f"?{query}" if query else "")

    def _name(self, body: JsonObject) -> str | None:
        own = self.model or body.get("model")
        return own if isinstance(own, str) and own else None


@dataclass(frozen=True, slots=True)
class Stop:
    """A target in the order of trying. `attempt` is the request written for it, `chance` that of being tried first,
    `fault` why it is skipped instead."""

    entry: str
    candidate: Candidate
    fallback: bool
    attempt: Attempt | None = None
    fault: Fault | None = None
    chance: float = 0.0


@dataclass(slots=True)
class Plan:
    """What would happen. `request` is what would be sent to the first target that is not skipped; where none is, or
    nothing can be sent, there is a `fault`, and `answer` is what the client gets for it."""

    route: Route
    model: str | None = None
    entry: str | None = None
    stops: list[Stop] = field(default_factory=list)
    request: Request | None = None
    fault: Fault | None = None
    answer: Reply | None = None

    @property
    def chosen(self) -> Stop | None:
        return next((stop for stop in self.stops if stop.fault is None), None)

    @property
    def calls(self) -> int:
        """How many calls like `request` the target gets: each with a part of the inputs, where they are several."""
        chosen = self.chosen
        return len(chosen.attempt.calls) if chosen and chosen.attempt else 0

    @property
    def changes(self) -> Sequence[Change]:
        chosen = self.chosen
        return chosen.attempt.calls[0].receipt.changes if chosen and chosen.attempt else ()


async def explain(config: Config, inquiry: Inquiry, random: Random | None = None) -> Plan:
    """Without `random`, the targets come in the likeliest order. Raises Misuse for a key that does not exist, and for
    TLS files that cannot be used."""
    caller = _caller(key_of(config, inquiry.key))
    plan = Plan(inquiry.speech.route({str(name): profile for name, profile in config.server.profiles.items()}))
    try:
        state = RouterState(config, dialects, random or Likeliest(), rehearsed)
    except (OSError, BadKeyFile) as error:  # ssl.SSLError included
        text = f"a provider's files cannot be used: {error}; look at `tls`, `api_key_file` and `oauth` of the providers"
        raise Misuse(text) from None
    pipeline = Pipeline(plan.route, Call("POST", "", {}))
    try:
        body = inquiry.body()
        pipeline = Pipeline(plan.route, inquiry.call(plan.route, body))
        pipeline.receive_object(pipeline.call.body)
        await _fill(plan, config, state, pipeline, caller)
    except Fault as fault:
        plan.fault, plan.answer = fault, pipeline.render_fault(fault)
    finally:
        await state.close()
    return plan


def key_of(config: Config, name: str | None) -> Key | None:
    """The key with this name; none where no name is given. Raises Misuse."""
    found = next((one for one in config.keys if one.name == name), None)
    if name is not None and found is None:
        raise unknown("--key", "key", name, [one.name for one in config.keys])
    return found


def _caller(key: Key | None) -> Caller:
    return ANYONE if key is None else Caller(key.name, tuple(key.models))


async def _fill(plan: Plan, config: Config, state: RouterState, pipeline: Pipeline, caller: Caller) -> None:
    deployment = pipeline.deployment
    plan.model = state.model(pipeline.request.get("model"), deployment)
    plan.entry = match(config.models, plan.model)
    candidates = state.candidates(plan.model, caller, read_extra_parameters(pipeline.call.headers), deployment)
    plan.stops = _with_chances([_stop(config, plan, candidate, pipeline) for candidate in candidates])
    chosen = plan.chosen
    if chosen is None:
        refused = plan.stops[0].fault if plan.stops else None
        raise refused or Fault("upstream_unavailable", "the model has no target", code="no_target")
    plan.request = await _prepared(chosen, pipeline)


def _stop(config: Config, plan: Plan, candidate: Candidate, pipeline: Pipeline) -> Stop:
    entry = next(name for name, model in config.models.items() if any(one is candidate.choice for one in model.targets))
    fallback = entry != plan.entry
    try:
        return Stop(entry, candidate, fallback, pipeline.prepare(candidate.plan))
    except Fault as fault:
        return Stop(entry, candidate, fallback, fault=fault)


def _with_chances(stops: list[Stop]) -> list[Stop]:
    """Only the targets of the first entry that has any left can be asked first; all at 0, the first of them is."""
    able = [stop for stop in stops if stop.fault is None]
    first = [stop for stop in able if stop.entry == able[0].entry]
    total = sum(stop.candidate.choice.weight for stop in first)
    return [replace(stop, chance=_share(stop, first, total)) for stop in stops]


def _share(stop: Stop, drawn: list[Stop], total: float) -> float:
    if not any(stop is one for one in drawn):
        return 0.0
    return stop.candidate.choice.weight / total if total else float(stop is drawn[0])


async def _prepared(stop: Stop, pipeline: Pipeline) -> Request:
    upstream = stop.candidate.provider.upstream
    assert isinstance(upstream, Rehearsal | LitellmRehearsal) and stop.attempt is not None
    headers = pipeline.call.headers
    forwarded = {name: headers[name] for name in _FORWARDED if name in headers}
    first = stop.attempt.calls[0]
    return await upstream.prepare(first.call, stream=first.stream, forwarded=forwarded)
