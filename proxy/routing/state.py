"""Everything that an exchange looks up, made once from the configuration and never altered."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

from dragoman.adapters.call import Policy, Target
from dragoman.adapters.dialect import Dialect
from dragoman.adapters.extras import ExtraParameters
from dragoman.adapters.faults import Fault
from dragoman.adapters.listing import ListedModel, Task
from dragoman.adapters.litellm import LITELLM
from dragoman.adapters.pipeline import TargetPlan, plan_target
from dragoman.adapters.suggestions import did_you_mean
from dragoman.proxy.config.models import Config, Model, PolicyChoice, Provider, TargetChoice, Timeouts
from dragoman.proxy.config.names import match, upstream_name
from dragoman.proxy.upstreams.credentials import NO_OBSERVER, NONE, CredentialObserver, Credentials, FixedKey, KeyFile
from dragoman.proxy.upstreams.factory import UpstreamFactory
from dragoman.proxy.upstreams.interface import Upstream
from dragoman.proxy.upstreams.oauth import TokenEndpoint, TokenSource

from .keys import Caller, Keys

__all__ = ["Candidate", "ProviderState", "RouterState"]

_ENGINES_SPEAK = "openai"
_TASKS: tuple[Task, ...] = ("chat", "completions", "embeddings")
"""What a model is listed for: the first of these that a target's provider is used for; over responses there is chat."""


@dataclass(frozen=True, slots=True)
class ProviderState:
    name: str
    dialect: Dialect
    protocols: tuple[str, ...]
    """The protocols that this provider is configured for, and can be called with."""
    profile: str
    timeouts: Timeouts
    upstream: Upstream


@dataclass(frozen=True, slots=True)
class Candidate:
    """One target that may serve a request."""

    provider: ProviderState
    plan: TargetPlan
    choice: TargetChoice

    @property
    def target(self) -> Target:
        return self.plan.target

    @property
    def label(self) -> str:
        return f"{self.provider.name}/{self.target.model}"


@dataclass(frozen=True, slots=True)
class _Entry:
    targets: tuple[Candidate, ...]
    fallbacks: tuple[str, ...]
    task: str | None


CreateUpstream = Callable[[str, Provider, Timeouts, Credentials], Upstream]


class RouterState:
    """Providers, models and keys. Made inside a running event loop; `close` it when its last exchange is over.
    `observer` hears of credentials that change. Raises OSError, or BadKeyFile, for files that cannot be used."""

    def __init__(
        self,
        config: Config,
        dialects: Mapping[str, Dialect],
        random: Random | None = None,
        create_upstream: CreateUpstream | None = None,
        observer: CredentialObserver = NO_OBSERVER,
    ) -> None:
        create_upstream = create_upstream or UpstreamFactory().create_upstream
        self.keys = Keys(config.keys)
        self._random = random or Random()
        self._since = int(time.time())
        self._default = config.server.default_model
        self._providers = {
            name: _provider(name, provider, config, dialects, create_upstream, observer)
            for name, provider in config.providers.items()
        }
        self._models = {name: self._entry(config, name, model) for name, model in config.models.items()}

    @property
    def upstreams(self) -> list[Upstream]:
        return [provider.upstream for provider in self._providers.values()]

    @property
    def routed_upstreams(self) -> list[Upstream]:
        """Those that are a target of some model."""
        used = {target.provider.name for entry in self._models.values() for target in entry.targets}
        return [provider.upstream for provider in self._providers.values() if provider.name in used]

    async def close(self) -> None:
        for provider in self._providers.values():
            await provider.upstream.close()

    def model(self, asked: object, deployment: str | None = None) -> str:
        """The model's name for a request that may leave it out. Raises Fault."""
        if isinstance(asked, str) and asked:
            return asked
        if deployment is not None:
            return self._with_deployment(deployment)
        if self._default is not None:
            return self._default
        if len(self._models) == 1 and "*" not in (only := next(iter(self._models))):
            return only
        raise Fault(
            "invalid_request",
            "model is required: there is no default model",
            ("model",),
            code="missing_required_parameter",
        )

    def task(self, model: str) -> str | None:
        """What the model is configured for, where an address leaves that open."""
        pattern = match(self._models, model)
        return None if pattern is None else self._models[pattern].task

    def listed(self, caller: Caller) -> list[ListedModel]:
        """The models that the caller may use, without patterns."""
        return [self._listed(name, name) for name in self._models if "*" not in name and caller.sees(name)]

    def described(self, name: str, caller: Caller) -> ListedModel:
        """One model that the caller may use. Raises Fault."""
        pattern = match(self._models, name) if caller.sees(name) and "*" not in name else None
        if pattern is None:
            raise Fault("not_found", self._unknown(name, caller).message, ("model",), code="model_not_found")
        return self._listed(name, pattern)

    def _listed(self, name: str, pattern: str) -> ListedModel:
        entry = self._models[pattern]
        protocols = {protocol for one in entry.targets for protocol in one.provider.protocols}
        protocols &= {entry.task} if entry.task else protocols
        return ListedModel(name, next((task for task in _TASKS if task in protocols), "chat"), self._since)

    def candidates(
        self, model: str, caller: Caller, extra: ExtraParameters | None = None, deployment: str | None = None
    ) -> Iterator[Candidate]:
        """The targets to try, best first: the model's own, drawn by weight, then those of its fallbacks; or only those
        of a deployment, where the client picks one.

        `extra` is the client's word on extra parameters. Raises Fault, at once, for a model that the caller cannot see.
        """
        pattern = match(self._models, model) if caller.sees(model) else None
        if pattern is None:
            raise self._unknown(model, caller)
        if deployment is not None:
            return self._deployed(pattern, model, extra, deployment)
        return self._walk(pattern, model, extra, {pattern})

    def _deployed(
        self, pattern: str, model: str, extra: ExtraParameters | None, deployment: str
    ) -> Iterator[Candidate]:
        targets = tuple(one for one in self._models[pattern].targets if one.choice.deployment == deployment)
        if not targets:
            raise _no_deployment(deployment)
        drawn = self._drawn(targets)
        return (_fitted(one, upstream_name(pattern, one.choice, model), extra) for one in drawn)

    def _with_deployment(self, deployment: str) -> str:
        for name, entry in self._models.items():
            if "*" not in name and any(one.choice.deployment == deployment for one in entry.targets):
                return name
        raise _no_deployment(deployment)

    def _walk(self, pattern: str, model: str, extra: ExtraParameters | None, seen: set[str]) -> Iterator[Candidate]:
        entry = self._models[pattern]
        for candidate in self._drawn(entry.targets):
            yield _fitted(candidate, upstream_name(pattern, candidate.choice, model), extra)
        for name in entry.fallbacks:
            following = match(self._models, name)
            if following is not None and following not in seen:
                seen.add(following)
                yield from self._walk(following, name, extra, seen)

    def _drawn(self, targets: tuple[Candidate, ...]) -> Iterator[Candidate]:
        """By weight, without putting back; a weight of 0 comes after all others."""
        left = list(targets)
        while len(left) > 1:
            weights = [candidate.choice.weight for candidate in left]
            if not any(weights):
                break
            chosen = self._random.choices(range(len(left)), weights)[0]
            yield left.pop(chosen)
        yield from left

    def _unknown(self, name: str, caller: Caller) -> Fault:
        visible = [known for known in self._models if "*" not in known and caller.sees(known)]
        hint = did_you_mean(name, visible, most=3)
        shown = name if len(name) <= 100 else name[:100] + "..."
        return Fault(
            "model_not_found", f"the model {shown!r} does not exist here{hint}", ("model",), code="model_not_found"
        )

    def _entry(self, config: Config, pattern: str, model: Model) -> _Entry:
        targets = tuple(self._candidate(config, pattern, model, choice) for choice in model.targets)
        return _Entry(targets, tuple(model.fallbacks), model.task)

    def _candidate(self, config: Config, pattern: str, model: Model, choice: TargetChoice) -> Candidate:
        provider, configured = self._providers[choice.provider], config.providers[choice.provider]
        target = Target(
            model=upstream_name(pattern, choice, pattern),
            profile=provider.profile,
            policy=_merged(Policy(), config.policy, configured.policy, model.policy, choice.policy),
            lacks=frozenset(choice.lacks),
            limits=configured.limits.model_dump(exclude_none=True),
            kind=configured.kind,
            api_version=configured.api_version,
            deployment=choice.deployment,
            address=configured.address,
            summarizes_reasoning=provider.dialect.summarizes_reasoning,
        )
        plan = plan_target(provider.name, provider.dialect, provider.protocols, target)
        return Candidate(provider, plan, choice)


def _no_deployment(deployment: str) -> Fault:
    text = f"no target has the deployment {deployment[:100]!r}"
    return Fault("model_not_found", text, ("azureml-model-deployment",), code="deployment_not_found")


def _provider(
    name: str,
    provider: Provider,
    config: Config,
    dialects: Mapping[str, Dialect],
    create_upstream: CreateUpstream,
    observer: CredentialObserver,
) -> ProviderState:
    dialect = LITELLM if provider.engine == "litellm" else dialects[provider.dialect or _ENGINES_SPEAK]
    timeouts = provider.timeouts or config.timeouts
    wanted = provider.protocols or dialect.default_protocols
    called = tuple(protocol for protocol in dialect.called if protocol in wanted)
    upstream = create_upstream(name, provider, timeouts, _credentials(name, dialect, provider, observer))
    profile = provider.profile or dialect.called_profile
    return ProviderState(name, dialect, called, profile, timeouts, upstream)


def _credentials(name: str, dialect: Dialect, provider: Provider, observer: CredentialObserver) -> Credentials:
    if not dialect.auth:
        return NONE
    templates = dialect.auth[provider.auth or dialect.default_auth(provider.address, token=provider.oauth is not None)]
    if provider.oauth is not None:
        endpoint = TokenEndpoint(provider, provider.oauth, partial(observer.add_secret, f"{name}.oauth"))
        return TokenSource(name, templates, endpoint, observer)
    if provider.api_key_file is not None:
        return KeyFile(name, templates, Path(provider.api_key_file), observer)
    return NONE if provider.api_key is None else FixedKey(templates, provider.api_key.get_secret_value())


def _merged(base: Policy, *choices: PolicyChoice) -> Policy:
    """Each field from the last choice that sets it."""
    for choice in choices:
        base = replace(base, **choice.model_dump(exclude_none=True))
    return base


def _fitted(candidate: Candidate, name: str, extra: ExtraParameters | None) -> Candidate:
    target = candidate.plan.target
    if extra is not None and extra != target.policy.extra_parameters:
        target = replace(target, policy=replace(target.policy, extra_parameters=extra))
    if name != target.model:
        target = replace(target, model=name)
    return candidate if target is candidate.plan.target else replace(candidate, plan=candidate.plan.with_target(target))
