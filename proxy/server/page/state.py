"""What the page shows of the running proxy: how busy it is, the health of its providers, and what limits leave."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

from dragoman.adapters.call import JsonObject
from dragoman.proxy.config.models import Config
from dragoman.proxy.routing.health import TargetHealth
from dragoman.proxy.routing.providers import ProviderState
from dragoman.proxy.routing.rate_limits import Limiter
from dragoman.proxy.routing.state import RouterState

if TYPE_CHECKING:
    from dragoman.proxy.server.gateway import Gateway

__all__ = ["describe_state", "list_limits", "read_gauges"]


def read_gauges(gateway: Gateway) -> JsonObject:
    """How busy the proxy is, and how full the buffer of its exchanges."""
    providers = gateway.state.providers
    return {
        "in_flight": len(gateway.running),
        "loop_lag_ms": round(gateway.overload.lag * 1000, 3),
        "calls_in_flight": sum(one.slots.in_use for one in providers),
        "calls_waiting": sum(one.slots.waiting for one in providers),
        "draining": gateway.draining,
        "exchanges": gateway.inspector.count,
        "buffer_bytes": gateway.inspector.size,
        "dropped": gateway.inspector.dropped,
    }


async def describe_state(gateway: Gateway) -> JsonObject:
    """The gauges, every provider with its targets, and every limit."""
    serving = gateway.states.current
    targets = _list_targets(serving.router, serving.config)
    return {
        "gauges": read_gauges(gateway),
        "providers": [
            _describe_provider(one, serving.config, targets.get(one.name, {})) for one in serving.router.providers
        ],
        "limits": [limit async for limit in list_limits(serving.router)],
    }


def _list_targets(router: RouterState, config: Config) -> dict[str, dict[str, TargetHealth | None]]:
    """The configured targets of each provider, and those that were used, by the provider's name of the model."""
    found: dict[str, dict[str, TargetHealth | None]] = {}
    for pattern, model in config.models.items():
        for choice in model.targets:
            found.setdefault(choice.provider, {})[choice.model or pattern] = None
    for (provider, name), health in router.list_healths():
        found.setdefault(provider, {})[name] = health
    return found


def _describe_provider(
    provider: ProviderState, config: Config, targets: Mapping[str, TargetHealth | None]
) -> JsonObject:
    configured = config.providers[provider.name]
    return {
        "name": provider.name,
        "dialect": provider.dialect.name,
        "engine": configured.engine,
        "url": configured.base_url,
        "protocols": [*provider.protocols],
        "in_flight": provider.slots.in_use,
        "waiting": provider.slots.waiting,
        "targets": [_describe_target(name, health) for name, health in targets.items() if "*" not in name],
    }


def _describe_target(name: str, health: TargetHealth | None) -> JsonObject:
    if health is None:
        return {"model": name, "state": "unused", "latency_ms": None, "until": None, "in_flight": 0}
    left = health.remaining_pause
    return {
        "model": name,
        "state": health.state,
        "latency_ms": None if health.latency is None else round(health.latency * 1000, 3),
        "until": round(time.time() + left, 3) if left else None,
        "in_flight": health.in_flight,
    }


async def list_limits(router: RouterState) -> AsyncIterator[JsonObject]:
    """The limits of providers and keys, and what is left of them."""
    for provider in router.providers:
        async for limit in _describe_limiter("provider", provider.name, provider.limiter):
            yield limit
    for caller in router.keys.callers:
        async for limit in _describe_limiter("key", caller.name, caller.limiter):
            yield limit


async def _describe_limiter(kind: str, name: str | None, limiter: Limiter | None) -> AsyncIterator[JsonObject]:
    if limiter is None:
        return
    count, most = limiter.running
    if most is not None:
        left = max(0, most - count)
        yield {kind: name, "kind": "concurrency", "limit": most, "burst": most, "remaining": left, "reset_s": None}
    for rate in await limiter.read_rates():
        counts = {"limit": rate.limit, "burst": limiter.find_burst(rate.unit), "remaining": rate.remaining}
        yield {kind: name, "kind": f"{rate.unit} a minute", **counts, "reset_s": round(rate.reset, 3)}
