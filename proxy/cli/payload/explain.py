"""What the proxy would do with a request: which targets it would try, why it would skip some, what it would send.

The routing, the adapters and the upstreams are the proxy's own; only the upstreams stop before they send.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Reply
from dragoman.adapters.changes import Change
from dragoman.adapters.extras import read_extra_parameters
from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import Attempt, Pipeline
from dragoman.adapters.routes import Route
from dragoman.proxy.config.keyfile import BadKeyFile
from dragoman.proxy.config.models import Config, Key
from dragoman.proxy.config.names import match
from dragoman.proxy.exchange.attempts import explain_refusals
from dragoman.proxy.routing.keys import ANYONE, Caller
from dragoman.proxy.routing.state import RouterState
from dragoman.proxy.routing.targets import Candidate
from dragoman.proxy.telemetry.tracing import TRACE, TRACE_STATE

from .client_request import ClientRequest
from .dry_run import HttpDryRun, LitellmDryRun, PreparedRequest, create_dry_run
from .usage_error import UsageError, unknown_name_error

__all__ = ["HighestWeight", "PlannedTarget", "RoutingPlan", "explain", "find_key"]


class HighestWeight(Random):
    """Draws the item with the highest weight; of equal ones the first."""

    def choices(self, population: Any, weights: Any = None, **_: Any) -> list[Any]:
        return [max(zip(population, weights, strict=True), key=lambda pair: float(pair[1]))[0]]


@dataclass(frozen=True, slots=True)
class PlannedTarget:
    """A target of the plan. `entry` is the configured model that it belongs to. `attempt` has the request for it,
    `fault` says why it is skipped instead, `chance` is the probability that it is tried first."""

    entry: str
    candidate: Candidate
    fallback: bool
    attempt: Attempt | None = None
    fault: Fault | None = None
    chance: float = 0.0


@dataclass(slots=True)
class RoutingPlan:
    """What the proxy would do. `targets` are in the order of the tries; `request` is for the first one that is not
    skipped. If nothing can be sent, there is a `fault`, and `answer` is the client's error reply."""

    route: Route
    model: str | None = None
    entry: str | None = None
    targets: list[PlannedTarget] = field(default_factory=list)
    request: PreparedRequest | None = None
    fault: Fault | None = None
    answer: Reply | None = None

    @property
    def first_target(self) -> PlannedTarget | None:
        """The first target that is not skipped."""
        return next((target for target in self.targets if target.fault is None), None)

    @property
    def call_count(self) -> int:
        """How many calls like `request` the target gets. If there are several, each has a part of the inputs."""
        first = self.first_target
        return len(first.attempt.calls) if first and first.attempt else 0

    @property
    def changes(self) -> Sequence[Change]:
        first = self.first_target
        if first is None or first.attempt is None:
            return ()
        calls = first.attempt.calls
        return calls[0].receipt.changes if calls else first.attempt.receipt.changes


async def explain(config: Config, request: ClientRequest, random: Random | None = None) -> RoutingPlan:
    """Plan the request. Without `random`, targets come in the order of their weights.

    Raises UsageError for a key that does not exist, and for TLS or key files that cannot be used.
    """
    caller = _create_caller(find_key(config, request.key))
    profiles = {str(name): profile for name, profile in config.server.profiles.items()}
    plan = RoutingPlan(request.wire_format.find_route(profiles))
    try:
        state = RouterState(config, dialects, random or HighestWeight(), create_dry_run)
    except (OSError, BadKeyFile) as error:  # ssl.SSLError included
        text = f"a provider's files cannot be used: {error}; look at `tls`, `api_key_file` and `oauth` of the providers"
        raise UsageError(text) from None
    pipeline = Pipeline(plan.route, Call("POST", "", {}))
    try:
        body = request.parse_body()
        pipeline = Pipeline(plan.route, request.create_call(plan.route, body))
        pipeline.receive_object(pipeline.call.body)
        await _plan_targets(plan, config, state, pipeline, caller)
    except Fault as fault:
        plan.fault, plan.answer = fault, pipeline.render_fault(fault)
    finally:
        await state.close()
    return plan


def find_key(config: Config, name: str | None) -> Key | None:
    """The configured key with this name; None if `name` is None. Raises UsageError if there is no such key."""
    found = next((one for one in config.keys if one.name == name), None)
    if name is not None and found is None:
        raise unknown_name_error("--key", "key", name, [one.name for one in config.keys])
    return found


def _create_caller(key: Key | None) -> Caller:
    return ANYONE if key is None else Caller(key.name, tuple(key.models))


async def _plan_targets(
    plan: RoutingPlan, config: Config, state: RouterState, pipeline: Pipeline, caller: Caller
) -> None:
    deployment = pipeline.deployment
    plan.model = state.resolve_model(pipeline.request.get("model"), deployment)
    plan.entry = match(config.models, plan.model)
    extra = read_extra_parameters(pipeline.call.headers)
    candidates = state.list_candidates(plan.model, caller, extra, deployment)
    plan.targets = _add_chances([_plan_target(config, plan, candidate, pipeline) for candidate in candidates])
    first = plan.first_target
    if first is None:
        raise explain_refusals([(one.candidate, one.fault) for one in plan.targets if one.fault is not None])
    if first.attempt is not None and not first.attempt.calls:
        first.attempt.answer_without_calls()  # which records in the receipt what the answer is
        return
    plan.request = await _prepare_request(first, pipeline)


def _plan_target(config: Config, plan: RoutingPlan, candidate: Candidate, pipeline: Pipeline) -> PlannedTarget:
    entry = next(name for name, model in config.models.items() if any(one is candidate.choice for one in model.targets))
    fallback = entry != plan.entry
    try:
        return PlannedTarget(entry, candidate, fallback, pipeline.prepare(candidate.plan))
    except Fault as fault:
        return PlannedTarget(entry, candidate, fallback, fault=fault)


def _add_chances(targets: list[PlannedTarget]) -> list[PlannedTarget]:
    """Add the chances to be tried first. Only targets of the first entry that has a usable target have one."""
    usable = [target for target in targets if target.fault is None]
    drawn = [target for target in usable if target.entry == usable[0].entry]
    total = sum(target.candidate.choice.weight for target in drawn)
    return [replace(target, chance=_compute_chance(target, drawn, total)) for target in targets]


def _compute_chance(target: PlannedTarget, drawn: list[PlannedTarget], total: float) -> float:
    """The target's share of the weights. If all weights are 0, the first of the drawn targets is certain."""
    if not any(target is one for one in drawn):
        return 0.0
    return target.candidate.choice.weight / total if total else float(target is drawn[0])


async def _prepare_request(target: PlannedTarget, pipeline: Pipeline) -> PreparedRequest:
    upstream = target.candidate.provider.upstream
    assert isinstance(upstream, HttpDryRun | LitellmDryRun) and target.attempt is not None
    headers = pipeline.call.headers
    forwarded = {name: headers[name] for name in (TRACE, TRACE_STATE) if name in headers}
    first = target.attempt.calls[0]
    return await upstream.prepare(first.call, stream=first.stream, forwarded=forwarded)
