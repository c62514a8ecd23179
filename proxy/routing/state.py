"""What an exchange looks up: models, their targets, and keys. Created once from the configuration, and immutable.

A new configuration makes a new state. It takes over from the previous one what is not about the configuration: the
connections and engines of providers that stay as they are, the health of their targets, and what is counted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from random import Random

from dragoman.adapters.dialect import Dialect
from dragoman.adapters.extras import ExtraParameters
from dragoman.adapters.faults import Fault
from dragoman.adapters.listing import ListedModel, Task
from dragoman.adapters.suggestions import did_you_mean
from dragoman.proxy.config.models import Config, Model, TargetChoice
from dragoman.proxy.config.names import match, upstream_name
from dragoman.proxy.telemetry.usage_ledger import UsageLedger
from dragoman.proxy.upstreams.credentials import NO_OBSERVER, CredentialObserver
from dragoman.proxy.upstreams.factory import UpstreamFactory
from dragoman.proxy.upstreams.interface import Upstream

from .balance import BALANCES, Order
from .health import HealthRegistry, TargetHealth
from .keys import Caller, Keys
from .providers import CreateUpstream, ProviderState, create_provider
from .rate_limits import LocalCounters, RateCounters
from .targets import Candidate, create_candidate
from .unserved import UnservedProtocols

__all__ = ["RouterState"]

_MAX_NAME = 100  # characters of a client's model name in a message

_TASKS: tuple[Task, ...] = ("chat", "completions", "embeddings")
"""A model is listed for the first of these that its providers are used for; if there is none, for chat, because
Responses are served over chat."""


@dataclass(frozen=True, slots=True)
class _ModelEntry:
    """A configured model."""

    targets: tuple[Candidate, ...]
    fallbacks: tuple[str, ...]
    fallbacks_for: Mapping[str, tuple[str, ...]]
    order: Order
    task: str | None


class RouterState:
    """Models, providers and keys. Created inside a running event loop; `close` it after its last exchange.

    `observer` is called when credentials change. `counters` count what is limited, by default in this process; `ledger`
    knows what keys have used. `previous` is the state that this one replaces: both may serve for a while, and `close`
    what only one of them uses. Raises OSError, or BadKeyFile, for files that cannot be used.
    """

    def __init__(
        self,
        config: Config,
        dialects: Mapping[str, Dialect],
        random: Random | None = None,
        create_upstream: CreateUpstream | None = None,
        observer: CredentialObserver = NO_OBSERVER,
        counters: RateCounters | None = None,
        previous: RouterState | None = None,
        ledger: UsageLedger | None = None,
    ) -> None:
        if previous is not None:
            create_upstream, counters = previous._create_upstream, previous._counters
        self._create_upstream: CreateUpstream = create_upstream or UpstreamFactory().create_upstream
        self._counters: RateCounters = counters or LocalCounters()
        self.keys: Keys = Keys(config.keys, self._counters, None if previous is None else previous.keys, ledger)
        self._random = random or Random()
        self._healths = HealthRegistry(config.breaker, Random())
        self.most_attempts = config.retries.attempts
        self._since = int(time.time())
        self._default_model = config.server.default_model
        before: Mapping[str, ProviderState] = {} if previous is None else previous._providers
        self._providers: dict[str, ProviderState] = self._create_providers(config, dialects, observer, before)
        self._unserved: dict[tuple[str, str, str | None], UnservedProtocols] = {}
        if previous is not None:
            kept = {name for name, one in self._providers.items() if one.upstream in previous.upstreams}
            self._healths.take_over(previous._healths, kept)
            self._unserved = {place: known for place, known in previous._unserved.items() if place[0] in kept}
        self._models: dict[str, _ModelEntry] = {}
        self._only_targets: dict[str, Candidate] = {}
        for name, model in config.models.items():
            self.add_model(config, name, model)

    def add_model(self, config: Config, name: str, model: Model) -> None:
        """Plan a model of the configuration. Thousands of them take so long that those of a state which others wait for
        are added one by one."""
        entry = self._models[name] = self._create_entry(config, name, model)
        if _has_only_target(name, entry):
            self._only_targets[name] = entry.targets[0]

    @property
    def providers(self) -> Collection[ProviderState]:
        return self._providers.values()

    def list_healths(self) -> Iterable[tuple[tuple[str, str], TargetHealth]]:
        """The health of the targets that were looked up so far, by the names of provider and model; without those of an
        earlier configuration."""
        targets = [one for entry in self._models.values() for one in entry.targets]
        names = {(one.provider.name, one.target.model) for one in targets}
        open_providers = {provider for provider, model in names if "*" in model}  # clients choose its models
        return [one for one in self._healths.list_all() if one[0] in names or one[0][0] in open_providers]

    @property
    def upstreams(self) -> list[Upstream]:
        return [provider.upstream for provider in self._providers.values()]

    @property
    def routed_upstreams(self) -> list[Upstream]:
        """The upstreams that at least one model has as a target."""
        used = {target.provider.name for entry in self._models.values() for target in entry.targets}
        return [provider.upstream for provider in self._providers.values() if provider.name in used]

    async def close(self, keep: Collection[Upstream] = ()) -> None:
        """Close the upstreams, except those that other states use."""
        for upstream in self.upstreams:
            if upstream not in keep:
                await upstream.close()

    def _create_providers(
        self,
        config: Config,
        dialects: Mapping[str, Dialect],
        observer: CredentialObserver,
        before: Mapping[str, ProviderState],
    ) -> dict[str, ProviderState]:
        """The providers, in the order of the configuration. Engines are created last: nothing that can fail follows,
        so a state that cannot be created leaves nothing behind."""
        given = config.providers
        made = {
            name: create_provider(
                name, given[name], config, dialects, self._create_upstream, observer, self._counters, before.get(name)
            )
            for name in sorted(given, key=lambda name: given[name].engine is not None)
        }
        return {name: made[name] for name in given}

    def resolve_model(self, requested: object, deployment: str | None = None) -> str:
        """The model's name for a request that may omit it: the requested one, the deployment's, or the default.
        Raises Fault."""
        if isinstance(requested, str) and requested:
            return requested
        if deployment is not None:
            return self._find_deployment(deployment)
        if self._default_model is not None:
            return self._default_model
        if len(self._models) == 1 and "*" not in (only := next(iter(self._models))):
            return only
        raise Fault(
            "invalid_request",
            "model is required: there is no default model",
            ("model",),
            code="missing_required_parameter",
        )

    def find_task(self, model: str) -> str | None:
        """The configured task of the model, which decides if the address of a request leaves the protocol open."""
        pattern = match(self._models, model)
        return None if pattern is None else self._models[pattern].task

    async def refresh_catalogs(self) -> None:
        """Ask the providers behind patterns for the names of their models, unless they were asked a short time ago."""
        targets = (target for pattern, entry in self._models.items() if "*" in pattern for target in entry.targets)
        catalogs = {id(target.provider.catalog): target.provider.catalog for target in targets}
        await asyncio.gather(*(catalog.refresh() for catalog in catalogs.values() if catalog is not None))

    def list_models(self, caller: Caller) -> list[ListedModel]:
        """The models that the caller may use. Of a pattern, those that its providers have named so far."""
        names = {name: pattern for pattern in self._models for name in self._expand(pattern)}
        return [self._create_listing(name, pattern) for name, pattern in names.items() if caller.can_use(name)]

    def _expand(self, pattern: str) -> Iterator[str]:
        """The names that clients use for the models behind a configured name, which may be a pattern."""
        if "*" not in pattern:
            yield pattern
            return
        for target in self._models[pattern].targets:
            catalog, choice = target.provider.catalog, target.choice
            if catalog is None or choice.model not in (None, "*"):
                continue
            names = ((choice.strip or "") + name for name in catalog.names)
            yield from (name for name in names if match(self._models, name) == pattern)

    def describe_model(self, name: str, caller: Caller) -> ListedModel:
        """One model that the caller may use. Raises Fault."""
        pattern = match(self._models, name) if caller.can_use(name) and "*" not in name else None
        if pattern is None:
            raise Fault("not_found", self._unknown_model(name, caller).message, ("model",), code="model_not_found")
        return self._create_listing(name, pattern)

    def find_only_target(self, model: object, caller: Caller) -> Candidate | None:
        """The target of a model that has one, about which nothing has to be decided at the moment: it is what
        `list_candidates` begins with. None if that does not hold, or if the caller may not use the model."""
        found = self._only_targets.get(model) if type(model) is str else None
        if found is None or found.unserved or not found.health.is_untroubled or not caller.can_use(found.pattern):
            return None
        return found

    def list_candidates(
        self,
        model: str,
        caller: Caller,
        extra: ExtraParameters | None = None,
        deployment: str | None = None,
        session: str | None = None,
    ) -> Iterator[Candidate]:
        """The targets to try, in this order: the model's own as its `balance` says, then those of its fallbacks. If the
        client names a deployment, only the targets with this deployment.

        `extra` is the client's policy on extra parameters, `session` what keeps sticky requests together. Raises Fault,
        at once, for a model that the caller may not use.
        """
        pattern = match(self._models, model) if caller.can_use(model) else None
        if pattern is None:
            raise self._unknown_model(model, caller)
        if deployment is not None:
            return self._list_deployed(pattern, model, extra, deployment)
        return self._list_with_fallbacks(pattern, model, extra, session, {pattern})

    def list_candidates_after(
        self, reason: str, model: str, extra: ExtraParameters | None = None, session: str | None = None
    ) -> Iterator[Candidate]:
        """The targets to try after a fault for this reason, a key of `fallbacks_for`: those of the models there, and of
        their fallbacks."""
        pattern = match(self._models, model)
        names = () if pattern is None else self._models[pattern].fallbacks_for.get(reason, ())
        return self._list_models(names, extra, session, {pattern or model})

    def _list_deployed(
        self, pattern: str, model: str, extra: ExtraParameters | None, deployment: str
    ) -> Iterator[Candidate]:
        targets = tuple(one for one in self._models[pattern].targets if one.choice.deployment == deployment)
        if not targets:
            raise _unknown_deployment(deployment)
        order = self._models[pattern].order
        return (
            one.adapt(upstream_name(pattern, one.choice, model), extra) for one in self._order(targets, order, None)
        )

    def _list_with_fallbacks(
        self, pattern: str, model: str, extra: ExtraParameters | None, session: str | None, seen: set[str]
    ) -> Iterator[Candidate]:
        entry = self._models[pattern]
        if len(entry.targets) == 1 and not entry.fallbacks:
            (only,) = entry.targets
            return iter((only.adapt(upstream_name(pattern, only.choice, model), extra),))
        return self._list_in_order(entry, pattern, model, extra, session, seen)

    def _list_in_order(
        self,
        entry: _ModelEntry,
        pattern: str,
        model: str,
        extra: ExtraParameters | None,
        session: str | None,
        seen: set[str],
    ) -> Iterator[Candidate]:
        for candidate in self._order(entry.targets, entry.order, session):
            yield candidate.adapt(upstream_name(pattern, candidate.choice, model), extra)
        yield from self._list_models(entry.fallbacks, extra, session, seen)

    def _list_models(
        self, names: Iterable[str], extra: ExtraParameters | None, session: str | None, seen: set[str]
    ) -> Iterator[Candidate]:
        for name in names:
            following = match(self._models, name)
            if following is not None and following not in seen:
                seen.add(following)
                yield from self._list_with_fallbacks(following, name, extra, session, seen)

    def _order(self, targets: tuple[Candidate, ...], order: Order, session: str | None) -> Iterator[Candidate]:
        """The targets in this order. Those with the weight 0 come after all others."""
        if len(targets) < 2:
            return iter(targets)
        weighted = [one for one in targets if one.choice.weight]
        return chain(order(weighted, self._random, session), [one for one in targets if not one.choice.weight])

    def _find_deployment(self, deployment: str) -> str:
        """The first model with a target that has this deployment. Raises Fault."""
        for name, entry in self._models.items():
            if "*" not in name and any(one.choice.deployment == deployment for one in entry.targets):
                return name
        raise _unknown_deployment(deployment)

    def _create_entry(self, config: Config, pattern: str, model: Model) -> _ModelEntry:
        targets = tuple(
            create_candidate(
                self._providers[choice.provider],
                config,
                pattern,
                model,
                choice,
                self._healths,
                self._find_unserved(choice),
            )
            for choice in model.targets
        )
        after: dict[str, tuple[str, ...]] = {reason: tuple(names) for reason, names in model.fallbacks_for.items()}
        return _ModelEntry(targets, tuple(model.fallbacks), after, BALANCES[model.balance], model.task)

    def _find_unserved(self, choice: TargetChoice) -> UnservedProtocols:
        """What is known of the protocols that a target does not serve; by name of the model, if it is a pattern's."""
        place = (choice.provider, choice.model or "*", choice.deployment)
        return self._unserved.setdefault(place, UnservedProtocols())

    def _create_listing(self, name: str, pattern: str) -> ListedModel:
        entry = self._models[pattern]
        protocols = {protocol for one in entry.targets for protocol in one.plan.called}
        protocols &= {entry.task} if entry.task else protocols
        return ListedModel(name, next((task for task in _TASKS if task in protocols), "chat"), self._since)

    def _unknown_model(self, name: str, caller: Caller) -> Fault:
        visible = [known for known in self._models if "*" not in known and caller.can_use(known)]
        hint = did_you_mean(name, visible, most=3) or "; GET /v1/models lists those that do"
        shown = name if len(name) <= _MAX_NAME else name[:_MAX_NAME] + "..."
        return Fault(
            "model_not_found", f"the model {shown!r} does not exist here{hint}", ("model",), code="model_not_found"
        )


def _has_only_target(name: str, entry: _ModelEntry) -> bool:
    """Whether there is nothing to choose, to wait for or to adapt to a request when the model's target is called."""
    first = entry.targets[0]
    is_plain = "*" not in name and first.hedge_after is None and first.provider.limiter is None
    return is_plain and len(entry.targets) == 1 and upstream_name(name, first.choice, name) == first.target.model


def _unknown_deployment(deployment: str) -> Fault:
    text = f"no target has the deployment {deployment[:_MAX_NAME]!r}"
    return Fault("model_not_found", text, ("azureml-model-deployment",), code="deployment_not_found")
