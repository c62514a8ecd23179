"""The state for a request that is sent again: as its caller, to another target, under another policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace

from dragoman.adapters.dialect import Dialect
from dragoman.adapters.extras import ExtraParameters
from dragoman.adapters.faults import Fault
from dragoman.proxy.config.choices import PolicyChoice
from dragoman.proxy.config.models import Config, Model, TargetChoice
from dragoman.proxy.config.presets import merge_policies

from .keys import ANYONE, Caller, Keys
from .state import RouterState
from .targets import Candidate, create_candidate

__all__ = ["ReplayChoice", "ReplayRouter"]


_AS_BEFORE = PolicyChoice()


@dataclass(frozen=True, slots=True)
class ReplayChoice:
    """What differs from the first time. `caller` is the name of the key to act for; `target` is `provider/model`;
    `policy` overrides the policy of every target, `profile` the profile of its dialect."""

    caller: str | None = None
    target: str | None = None
    policy: PolicyChoice = _AS_BEFORE
    profile: str | None = None


class ReplayRouter(RouterState):
    """Looks up what another state does, with a choice applied. It shares everything with that state, and is never
    closed. Raises Fault for a choice that the configuration does not allow."""

    def __init__(self, router: RouterState, config: Config, choice: ReplayChoice) -> None:
        vars(self).update(vars(router))
        self.keys = _KnownCaller(_find_caller(router.keys, choice.caller))
        self._config = config
        self._choice = choice
        if choice.target is not None:
            self._split_target(choice.target)

    def list_candidates(
        self,
        model: str,
        caller: Caller,
        extra: ExtraParameters | None = None,
        deployment: str | None = None,
        session: str | None = None,
    ) -> Iterator[Candidate]:
        """The targets to try, as the choice says. Raises Fault."""
        found = super().list_candidates(model, caller, extra, deployment, session)
        if self._choice.target is not None:
            known = (one for one in found if one.label == self._choice.target)
            found = iter([next(known, None) or self._create_target(model, extra)])
        return map(self._adapt, found)

    def find_only_target(self, model: object, caller: Caller) -> Candidate | None:
        """None: the choice is applied to the targets of `list_candidates`."""
        return None

    def list_candidates_after(
        self, reason: str, model: str, extra: ExtraParameters | None = None, session: str | None = None
    ) -> Iterator[Candidate]:
        """The targets to try after a fault; none if the choice names one target."""
        found = super().list_candidates_after(reason, model, extra, session)
        return iter(()) if self._choice.target is not None else map(self._adapt, found)

    def _create_target(self, pattern: str, extra: ExtraParameters | None) -> Candidate:
        """A target that the model does not have in the configuration."""
        provider, name = self._split_target(self._choice.target or "")
        target = TargetChoice(provider=provider, model=name)
        state, model = self._providers[provider], Model(targets=[target])
        known = self._find_unserved(target)
        made = create_candidate(state, self._config, pattern, model, target, self._healths, known)
        return made.adapt(name, extra)

    def _split_target(self, label: str) -> tuple[str, str]:
        """The names of the provider and of its model. Raises Fault."""
        found = next((name for name in self._providers if label.startswith(f"{name}/")), None)
        if found is None or len(label) == len(found) + 1:
            text = f"there is no such target; write provider/model, with one of: {', '.join(self._providers)}"
            raise Fault("invalid_request", text, ("target",), code="unknown_target")
        return found, label[len(found) + 1 :]

    def _adapt(self, candidate: Candidate) -> Candidate:
        given = candidate.target
        policy = merge_policies(PolicyChoice(**asdict(given.policy)), self._choice.policy)
        profile = self._choice.profile or given.profile
        if (policy, profile) == (given.policy, given.profile):
            return candidate
        _check_profile(candidate.provider.dialect, profile)
        plan = candidate.plan.with_target(replace(given, policy=policy, profile=profile))
        return replace(candidate, plan=plan.without(candidate.unserved.list_for(given.model)))


class _KnownCaller(Keys):
    """Takes every request as one of the same caller."""

    def __init__(self, caller: Caller) -> None:
        super().__init__(())
        self._caller = caller

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        return self._caller


def _find_caller(keys: Keys, name: str | None) -> Caller:
    """Raises Fault if no key has the name any more."""
    if not keys:
        return ANYONE
    found = next((caller for caller in keys.callers if caller.name == name), None)
    if found is None:
        raise Fault("auth", "the key of this exchange is not configured any more", code="unknown_key")
    return found


def _check_profile(dialect: Dialect, profile: str) -> None:
    if profile not in dialect.profiles:
        text = f"the dialect {dialect.name} has no profile {profile!r}; it has: {', '.join(dialect.profiles)}"
        raise Fault("invalid_request", text, ("profile",), code="unknown_profile")
