"""Targets as state: what a request to each of them needs to know, with the policies that apply to it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any
from urllib.parse import urlsplit

from dragoman.adapters.call import Target
from dragoman.adapters.dialect import COMPANIONS
from dragoman.adapters.emulation.registry import SETTINGS
from dragoman.adapters.extras import ExtraParameters
from dragoman.adapters.opt_ins import OptIns
from dragoman.adapters.pipeline import TargetPlan, plan_target
from dragoman.adapters.request_properties import TOKEN_LIMITS
from dragoman.proxy.config.choices import EmulationChoice
from dragoman.proxy.config.models import Config, Limits, Model, TargetChoice
from dragoman.proxy.config.names import upstream_name
from dragoman.proxy.config.presets import merge_policies

from .health import HealthRegistry, TargetHealth
from .providers import ProviderState
from .unserved import UnservedProtocols

__all__ = ["Candidate", "create_candidate"]

_MOST_ADAPTED = 256
"""How many names of models, which clients choose, a target with a pattern keeps candidates for."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One target that may serve a request."""

    provider: ProviderState
    plan: TargetPlan
    choice: TargetChoice
    unserved: UnservedProtocols
    health: TargetHealth
    pattern: str
    """The configured name of the model whose target it is."""
    hedge_after: float | None
    """Seconds after which the model's next target is asked too, None for never."""
    label: str = field(init=False)
    vendor: str = field(init=False)
    """OpenTelemetry's name of who made the provider's API."""
    _healths: HealthRegistry
    _adapted: dict[tuple[str, ExtraParameters | None], Candidate] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        dialect = self.plan.dialect
        object.__setattr__(self, "label", f"{self.provider.name}/{self.plan.target.model}")
        object.__setattr__(self, "vendor", dialect.telemetry_name or dialect.name)

    @property
    def target(self) -> Target:
        return self.plan.target

    def assumes(self, protocol: str) -> bool:
        """Whether nobody has said that the provider serves this protocol of a client."""
        return self.provider.assumes_protocols or protocol in COMPANIONS

    def adapt(self, model: str, extra: ExtraParameters | None) -> Candidate:
        """The candidate for one request: with the upstream's name of the model, and the client's policy on extra
        parameters if it sends one, without the protocols that its provider is known not to serve."""
        adapted = self._find_adapted(model, extra)
        return adapted.plan_again() if self.unserved else adapted

    def _find_adapted(self, model: str, extra: ExtraParameters | None) -> Candidate:
        """The candidate with all its protocols. It is kept for further requests."""
        if extra is None and model == self.plan.target.model:
            return self
        known = self._adapted.get((model, extra))
        if known is None:
            if len(self._adapted) >= _MOST_ADAPTED:
                self._adapted.clear()
            known = self._adapted[model, extra] = self._create_adapted(model, extra)
        return known

    def _create_adapted(self, model: str, extra: ExtraParameters | None) -> Candidate:
        given = target = self.plan.target
        if extra is not None and extra != target.policy.extra_parameters:
            target = replace(target, policy=replace(target.policy, extra_parameters=extra))
        if model != target.model:
            target = replace(target, model=model)
        if target is given:
            return self
        health = self._healths.find(self.provider.name, target.model)
        return replace(self, plan=self.plan.with_target(target), health=health)

    def plan_again(self) -> Candidate:
        """The candidate without the protocols that its provider is known not to serve for this model."""
        unserved = self.unserved.list_for(self.target.model)
        return replace(self, plan=self.plan.without(unserved)) if unserved else self

    def with_every_protocol(self) -> Candidate:
        """The candidate, as if the provider served every protocol that it is used for."""
        return replace(self, plan=self.plan.without(()))


def create_candidate(
    provider: ProviderState,
    config: Config,
    pattern: str,
    model: Model,
    choice: TargetChoice,
    healths: HealthRegistry,
    unserved: UnservedProtocols,
) -> Candidate:
    """The candidate for a target of the model that is configured as `pattern`. `unserved` is what is known of it."""
    configured = config.providers[choice.provider]
    target = Target(
        model=upstream_name(pattern, choice, pattern),
        profile=provider.profile,
        policy=merge_policies(config.policy, configured.policy, model.policy, choice.policy),
        lacks=frozenset(choice.lacks),
        takes=frozenset(choice.takes),
        emulates=_list_emulated(config.emulate, configured.emulate, model.emulate, choice.emulate),
        opt_ins=_choose_opt_ins(config.emulate, configured.emulate, model.emulate, choice.emulate),
        max_tokens_name=choice.max_tokens_name,
        limits=_list_limits(configured.limits),
        kind=configured.kind,
        api_version=configured.api_version,
        deployment=choice.deployment,
        address=configured.address,
        summarizes_reasoning=provider.dialect.summarizes_reasoning,
        reasoning_replay=choice.reasoning_replay or ("keep" if configured.engine else None),
        reasoning_tags=configured.reasoning_tags,
        host=urlsplit(configured.base_address).hostname or "",
    )
    is_default = provider.assumes_protocols
    plan = plan_target(provider.name, provider.dialect, provider.protocols, target, is_default=is_default)
    health = healths.find(provider.name, target.model)
    return Candidate(provider, plan, choice, unserved, health, pattern, model.hedge_after, healths)


def _list_limits(limits: Limits) -> dict[str, int]:
    """The limits by the names of fields. The limit on tokens applies to each of its names."""
    made: dict[str, int] = limits.list_values()
    if limits.max_tokens is not None:
        made |= dict.fromkeys(chain.from_iterable(TOKEN_LIMITS.values()), limits.max_tokens)
    return made


def _list_emulated(*choices: EmulationChoice) -> frozenset[str]:
    """The fields to emulate: all but those of settings that the last choice to name them sets to false."""
    settings = dict.fromkeys(SETTINGS, True)
    for choice in choices:
        settings |= {name: is_on for name, is_on in choice.list_values().items() if name in SETTINGS}
    return frozenset(field for name, is_on in settings.items() if is_on for field in SETTINGS[name])


def _choose_opt_ins(*choices: EmulationChoice) -> OptIns:
    """How the settings that are off by default are emulated: as the last choice that names them says."""
    chosen: dict[str, Any] = {}
    for choice in choices:
        chosen |= {name: how for name, how in choice.list_values().items() if name not in SETTINGS}
    holds = chosen.pop("hold_streams", True)
    return OptIns(hold_streams=holds, **{name: how or None for name, how in chosen.items()})
