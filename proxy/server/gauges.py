"""Reads what is not counted but true at this moment: connections, places, pauses, memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dragoman.adapters.call import JsonObject
from dragoman.proxy.http.aiohttp_server import HttpServer
from dragoman.proxy.routing.budgets import BudgetState
from dragoman.proxy.routing.providers import ProviderState
from dragoman.proxy.telemetry.exposition import Gauge
from dragoman.proxy.telemetry.metrics import Labels
from dragoman.proxy.upstreams.supervision.upstream import SupervisedUpstream

from .gateway import Gateway
from .reload import ReloadStatus

__all__ = ["read_gauges"]

_ENGINE = {
    "slots": "Sequences that an engine runs at one time",
    "running": "Sequences that an engine runs",
    "waiting": "Sequences that wait for a slot of an engine",
}
"""What engines say of themselves."""

_LIMITS = {
    "limit": "What a key or provider may use",
    "burst": "What of a limit may be used at once",
    "remaining": "What is left of a limit at this moment, at most its burst",
}
"""The fields of a limit that are numbers."""

_STATES = ("closed", "half-open", "open")


def read_gauges(
    gateway: Gateway, server: HttpServer, reloads: ReloadStatus, limits: Sequence[JsonObject]
) -> Iterator[Gauge]:
    """The gauges of one proxy. Of health and places, only providers and targets that were used. `limits` are those of
    keys and providers, as the page shows them."""
    yield Gauge("requests_in_flight", "Requests that are being served", (), [((), len(gateway.running))])
    yield Gauge("client_connections", "Connections of clients", (), [((), len(server.connections))])
    yield Gauge("loop_lag_seconds", "How late the event loop is", (), [((), gateway.overload.lag)])
    yield Gauge("draining", "1 while the proxy stops", (), [((), int(gateway.draining))])
    yield from _read_reloads(reloads)
    yield from _read_budgets([*gateway.state.keys.list_budgets()])
    yield from _read_limits(limits)
    yield from _read_engines(gateway.state.providers)
    providers = gateway.state.providers
    in_use = [((one.name,), float(one.slots.in_use)) for one in providers]
    yield Gauge("provider_calls_in_flight", "Calls that providers are answering", ("provider",), in_use)
    waiting = [((one.name,), float(one.slots.waiting)) for one in providers]
    yield Gauge("provider_calls_waiting", "Calls that wait for a place of a provider", ("provider",), waiting)
    healths = [*gateway.state.list_healths()]
    states = [((*name, state), float(one.state == state)) for name, one in healths for state in _STATES]
    yield Gauge("target_state", "1 for the state of a target's breaker", ("provider", "model", "state"), states)
    latencies = [(name, one.latency) for name, one in healths if one.latency is not None]
    yield Gauge("target_latency_seconds", "The smoothed time to an answer", ("provider", "model"), latencies)


def _read_reloads(reloads: ReloadStatus) -> Iterator[Gauge]:
    success = float(not reloads.problem)
    yield Gauge("config_last_reload_success", "1 if the configuration in its files serves", (), [((), success)])
    text = "When a configuration was last read and used"
    yield Gauge("config_last_reload_success_timestamp_seconds", text, (), [((), reloads.succeeded_at)])


def _read_budgets(states: Sequence[BudgetState]) -> Iterator[Gauge]:
    names = ("key", "unit", "period")
    limits = [((one.key, one.unit, one.period), one.limit) for one in states]
    yield Gauge("key_budget", "What a key may use in a period", names, limits)
    used = [((one.key, one.unit, one.period), one.used) for one in states]
    yield Gauge("key_budget_used", "What a key has used in this period", names, used)


def _read_limits(limits: Sequence[JsonObject]) -> Iterator[Gauge]:
    """Limits and what is left of them."""
    names = ("owner", "name", "kind")
    found = [(_name_limit(limit), limit) for limit in limits]
    for field, text in _LIMITS.items():
        values = [(labels, float(limit[field])) for labels, limit in found]
        yield Gauge("limit" if field == "limit" else f"limit_{field}", text, names, values)


def _name_limit(limit: JsonObject) -> Labels:
    owner = "key" if "key" in limit else "provider"
    return owner, str(limit[owner]), str(limit["kind"]).replace(" a ", "_per_")


def _read_engines(providers: Iterable[ProviderState]) -> Iterator[Gauge]:
    """Places and sequences of the engines on this machine, as they last said."""
    upstreams = [(one.name, one.upstream) for one in providers]
    found = [(name, one.engine.statistics) for name, one in upstreams if isinstance(one, SupervisedUpstream)]
    for key, text in _ENGINE.items():
        values = [((name,), float(health[key])) for name, health in found if key in health]
        yield Gauge(f"engine_{key}", text, ("provider",), values)
