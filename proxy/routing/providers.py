"""Providers as state: the dialect, the timeouts and the upstream of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from dragoman.adapters.dialect import Dialect
from dragoman.adapters.litellm import LITELLM
from dragoman.proxy.config.keyfile import read_stamp
from dragoman.proxy.config.models import Config, Provider
from dragoman.proxy.config.traffic import Pool, RateLimits, Retries, Timeouts
from dragoman.proxy.upstreams.call_slots import CallSlots
from dragoman.proxy.upstreams.credentials import NO_CREDENTIALS, CredentialObserver, Credentials, FixedKey, KeyFile
from dragoman.proxy.upstreams.interface import Upstream
from dragoman.proxy.upstreams.oauth import TokenEndpoint, TokenSource

from .model_catalog import ModelCatalog
from .rate_limits import LIMITED_HERE, Limiter, RateCounters
from .retry_budget import RetryBudget

__all__ = ["CreateUpstream", "ProviderState", "create_provider"]

_ENGINE_DIALECT = "openai"
_ENGINE_PROTOCOLS = ("chat",)

_NOT_CONNECTING = {
    "api_version",
    "emulate",
    "kind",
    "limits",
    "policy",
    "pool",
    "profile",
    "protocols",
    "rate",
    "reasoning_tags",
    "timeouts",
}
"""Settings of a provider that its upstream does not read."""

CreateUpstream: TypeAlias = Callable[[str, Provider, Timeouts, Credentials], Upstream]


@dataclass(frozen=True, slots=True)
class ProviderState:
    name: str
    dialect: Dialect
    protocols: tuple[str, ...]
    """The protocols that the provider is configured for, and that its dialect can call."""
    assumes_protocols: bool
    """True if the configuration names no protocols, so that these are the dialect's default."""
    profile: str
    timeouts: Timeouts
    upstream: Upstream
    slots: CallSlots
    longest_wait: float
    """Seconds that a call may wait for a place."""
    retries: RetryBudget
    limiter: Limiter | None
    connection: Mapping[str, Any]
    """What the upstream depends on."""
    catalog: ModelCatalog | None
    """What the provider says about its models; None if it cannot be asked."""


def create_provider(
    name: str,
    provider: Provider,
    config: Config,
    dialects: Mapping[str, Dialect],
    create_upstream: CreateUpstream,
    observer: CredentialObserver,
    counters: RateCounters,
    previous: ProviderState | None = None,
) -> ProviderState:
    """The provider's state, with its upstream. `previous` is the state under an earlier configuration: its connections
    and its counters are kept as far as nothing about them has changed. Raises OSError, or BadKeyFile, for files that
    cannot be used."""
    dialect = LITELLM if provider.engine == "litellm" else dialects[provider.dialect or _ENGINE_DIALECT]
    timeouts = provider.timeouts or config.timeouts
    assumed = _ENGINE_PROTOCOLS if provider.engine else dialect.list_default_protocols(provider.address)
    wanted = provider.protocols or assumed
    called = tuple(protocol for protocol in dialect.called if protocol in wanted)
    connection = _describe_connection(provider, timeouts)
    if previous is not None and previous.connection == connection:
        upstream = previous.upstream
    else:
        upstream = create_upstream(name, provider, timeouts, _create_credentials(name, dialect, provider, observer))
    profile = provider.profile or dialect.called_profile
    assumes_protocols = not provider.protocols and not provider.engine
    slots = _create_slots(name, provider.pool, previous)
    wait, retries = provider.pool.queue_timeout, _create_retries(config.retries, previous)
    limiter = _create_limiter(name, provider.rate, counters, previous)
    if previous is not None and previous.upstream is upstream:
        catalog = previous.catalog
    else:
        catalog = _create_catalog(name, dialect, provider, upstream, observer)
    return ProviderState(
        name,
        dialect,
        called,
        assumes_protocols,
        profile,
        timeouts,
        upstream,
        slots,
        wait,
        retries,
        limiter,
        connection,
        catalog,
    )


def _describe_connection(provider: Provider, timeouts: Timeouts) -> Mapping[str, Any]:
    """What a provider's upstream depends on. If it is the same under a new configuration, the connections, the tokens
    and the engine stay. Raises OSError."""
    tls = provider.tls
    files = [read_stamp(Path(path)) for path in (tls.ca, tls.cert, tls.key) if path is not None]
    waits = (timeouts.connect, timeouts.total if provider.engine == "litellm" else None, provider.pool.idle)
    connecting = {name: value for name, value in vars(provider).items() if name not in _NOT_CONNECTING}
    return {**connecting, "waits": waits, "files": files}


def _create_slots(name: str, pool: Pool, previous: ProviderState | None) -> CallSlots:
    """The places for calls: those that are there, with the calls that have them, unless their numbers change."""
    if previous is not None and (previous.slots.slots, previous.slots.queue) == (pool.connections, pool.queue):
        return previous.slots
    return CallSlots(name, pool.connections, pool.queue)


def _create_retries(rules: Retries, previous: ProviderState | None) -> RetryBudget:
    return previous.retries if previous is not None and previous.retries.rules == rules else RetryBudget(rules)


def _create_limiter(
    name: str, rules: RateLimits, counters: RateCounters, previous: ProviderState | None
) -> Limiter | None:
    if rules == RateLimits():
        return None
    before = None if previous is None else previous.limiter
    return Limiter(f"the provider {name}", rules, counters, LIMITED_HERE, before)


def _create_catalog(
    name: str, dialect: Dialect, provider: Provider, upstream: Upstream, observer: CredentialObserver
) -> ModelCatalog | None:
    """None for engines, and for other forms of address, which have no lists."""
    if dialect.model_list is None or provider.engine is not None or provider.address is not None:
        return None
    return ModelCatalog(name, dialect.model_list, upstream, observer)


def _create_credentials(name: str, dialect: Dialect, provider: Provider, observer: CredentialObserver) -> Credentials:
    if not dialect.auth:
        return NO_CREDENTIALS
    templates = dialect.auth[provider.auth or dialect.default_auth(provider.address, token=provider.oauth is not None)]
    if provider.oauth is not None:
        endpoint = TokenEndpoint(provider, provider.oauth, partial(observer.add_secret, f"{name}.oauth"))
        return TokenSource(name, templates, endpoint, observer)
    if provider.api_key_file is not None:
        return KeyFile(name, templates, Path(provider.api_key_file), observer)
    return NO_CREDENTIALS if provider.api_key is None else FixedKey(templates, provider.api_key.get_secret_value())
