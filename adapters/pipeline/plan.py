"""What configuration decides about one target, decided once: which verbs and which bridge serve each client protocol.

A plan is made when the routing state is built, so an exchange only follows it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from dragoman.adapters.call import Target
from dragoman.adapters.dialect import COMPANIONS, NEVER_CALLED, Called, Dialect
from dragoman.adapters.emulation.interface import Emulation
from dragoman.adapters.emulation.registry import WITHOUT_CALLS
from dragoman.adapters.faults import Fault
from dragoman.adapters.translate.bridge import BRIDGES
from dragoman.adapters.translate.bridge_interface import Bridge

__all__ = ["ProtocolPlan", "TargetPlan", "find_bridge", "plan_target", "to_canonical"]


@dataclass(frozen=True, slots=True)
class ProtocolPlan:
    """How a target serves one client protocol: the provider's protocol and verbs, and the bridge if the protocols
    differ."""

    protocol: str
    called: Called
    bridge: Bridge | None = None
    batching: Emulation | None = None
    """How a request becomes several calls, if it may."""


@dataclass(frozen=True, slots=True)
class TargetPlan:
    """One target. `canonical` is the same target under a policy whose replies come in canonical form: translations,
    kept responses and joined replies need it. `protocols` maps a client protocol to its plan."""

    provider: str
    dialect: Dialect
    target: Target
    canonical: Target
    protocols: Mapping[str, ProtocolPlan]
    called: tuple[str, ...]
    """The protocols that the provider is called with for this target, without companions."""
    default: tuple[str, ...] | None = None
    """The dialect's default protocols, if the configuration names none."""

    def for_protocol(self, protocol: str) -> ProtocolPlan:
        """Raises Fault if neither the provider nor a bridge serves the protocol."""
        plan = self.protocols.get(protocol)
        if plan is None:
            known = ", ".join(self.called)
            text = f"the provider {self.provider} is not used for {protocol}: its protocols are {known}"
            raise Fault("unsupported_parameter", text, ("model",), code="unsupported_protocol")
        return plan

    def with_target(self, target: Target) -> TargetPlan:
        """The same plan for another upstream model or policy of this provider."""
        if self.default is not None and target.facts.protocols != self.target.facts.protocols:
            return plan_target(self.provider, self.dialect, self.default, target, is_default=True)
        return replace(self, target=target, canonical=to_canonical(target))

    def without(self, unserved: Collection[str]) -> TargetPlan:
        """The plan that has all protocols but these. Those that the configuration names stay."""
        if self.default is None:
            unserved = COMPANIONS.keys() & unserved
            return plan_target(self.provider, self.dialect, self.called, self.target, unserved=unserved)
        return plan_target(self.provider, self.dialect, self.default, self.target, is_default=True, unserved=unserved)


def plan_target(
    provider: str,
    dialect: Dialect,
    protocols: Collection[str],
    target: Target,
    *,
    is_default: bool = False,
    unserved: Collection[str] = (),
) -> TargetPlan:
    """The plan for a target of a provider that is called with these protocols.

    If they are only the dialect's default, those that the target's model is documented to have replace them, and
    completions are left to chat if the policy says so. It is not called with those in `unserved`.
    """
    target = replace(target, dialect=dialect.name)
    default = tuple(protocols) if is_default else None
    if is_default:
        left_to_chat = {"completions"} if target.policy.emulate_completions else frozenset[str]()
        protocols = {*(target.facts.protocols or protocols)} - left_to_chat
    called = {
        protocol: verbs
        for protocol, verbs in dialect.called.items()
        if COMPANIONS.get(protocol, protocol) in protocols and protocol not in unserved
    }
    plans = {protocol: ProtocolPlan(protocol, verbs, batching=verbs.batching) for protocol, verbs in called.items()}
    for protocol in BRIDGES:
        bridge = None if protocol in plans else find_bridge(protocol, called)
        if bridge is not None:
            plans[protocol] = ProtocolPlan(bridge.called, called[bridge.called], bridge, bridge.batching)
    for protocol, emulation in WITHOUT_CALLS.items():
        if protocol not in plans and COMPANIONS[protocol] in plans:
            plans[protocol] = ProtocolPlan(protocol, NEVER_CALLED, batching=emulation)
    names = tuple(protocol for protocol in called if protocol not in COMPANIONS)
    return TargetPlan(provider, dialect, target, to_canonical(target), plans, names, default)


def find_bridge(protocol: str, called: Collection[str]) -> Bridge | None:
    """The first bridge from the client's protocol to one of those that a provider is called with."""
    return next((bridge for bridge in BRIDGES.get(protocol, ()) if bridge.called in called), None)


def to_canonical(target: Target) -> Target:
    """The same target under a policy whose replies come in canonical form."""
    if target.policy.replies in ("repair", "strict"):
        return target
    return replace(target, policy=replace(target.policy, replies="repair"))
