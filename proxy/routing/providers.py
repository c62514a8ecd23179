"""Providers as state: the dialect, the timeouts and the upstream of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from dragoman.adapters.dialect import Dialect
from dragoman.adapters.litellm import LITELLM
from dragoman.proxy.config.models import Config, Provider
from dragoman.proxy.config.traffic import RateLimits, Timeouts
from dragoman.proxy.upstreams.call_slots import CallSlots
from dragoman.proxy.upstreams.credentials import NO_CREDENTIALS, CredentialObserver, Credentials, FixedKey, KeyFile
from dragoman.proxy.upstreams.interface import Upstream
from dragoman.proxy.upstreams.oauth import TokenEndpoint, TokenSource

from .rate_limits import LIMITED_HERE, Limiter, RateCounters
from .retry_budget import RetryBudget

__all__ = ["CreateUpstream", "ProviderState", "create_provider"]

_ENGINE_DIALECT = "openai"
_ENGINE_PROTOCOLS = ("chat",)

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


def create_provider(
    name: str,
    provider: Provider,
    config: Config,
    dialects: Mapping[str, Dialect],
    create_upstream: CreateUpstream,
    observer: CredentialObserver,
    counters: RateCounters,
) -> ProviderState:
    """The provider's state, with its upstream. Raises OSError, or BadKeyFile, for files that cannot be used."""
    dialect = LITELLM if provider.engine == "litellm" else dialects[provider.dialect or _ENGINE_DIALECT]
    timeouts = provider.timeouts or config.timeouts
    assumed = _ENGINE_PROTOCOLS if provider.engine else dialect.list_default_protocols(provider.address)
    wanted = provider.protocols or assumed
    called = tuple(protocol for protocol in dialect.called if protocol in wanted)
    upstream = create_upstream(name, provider, timeouts, _create_credentials(name, dialect, provider, observer))
    profile = provider.profile or dialect.called_profile
    assumes_protocols = not provider.protocols and not provider.engine
    slots = CallSlots(name, provider.pool.connections, provider.pool.queue)
    wait, retries = provider.pool.queue_timeout, RetryBudget(config.retries)
    limiter = None
    if provider.rate != RateLimits():
        limiter = Limiter(f"the provider {name}", provider.rate, counters, LIMITED_HERE)
    return ProviderState(
        name, dialect, called, assumes_protocols, profile, timeouts, upstream, slots, wait, retries, limiter
    )


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
