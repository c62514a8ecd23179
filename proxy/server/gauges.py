"""Reads what is not counted but true at this moment: connections, places, pauses, memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dragoman.proxy.http.aiohttp_server import HttpServer
from dragoman.proxy.routing.budgets import BudgetState
from dragoman.proxy.telemetry.exposition import Gauge

from .gateway import Gateway
from .reload import ReloadStatus

__all__ = ["read_gauges"]

_STATES = ("closed", "half-open", "open")


def read_gauges(gateway: Gateway, server: HttpServer, reloads: ReloadStatus) -> Iterator[Gauge]:
    """The gauges of one proxy. Of health and places, only providers and targets that were used."""
    yield Gauge("requests_in_flight", "Requests that are being served", (), [((), len(gateway.running))])
    yield Gauge("client_connections", "Connections of clients", (), [((), len(server.connections))])
    yield Gauge("loop_lag_seconds", "How late the event loop is", (), [((), gateway.overload.lag)])
    yield Gauge("draining", "1 while the proxy stops", (), [((), int(gateway.draining))])
    yield from _read_reloads(reloads)
    yield from _read_budgets([*gateway.state.keys.list_budgets()])
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
