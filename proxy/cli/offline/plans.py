"""A plan as lines for people, and as JSON for programs. Credentials are masked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import orjson

from dragoman.adapters.call import JsonObject
from dragoman.proxy.config.models import Config
from dragoman.proxy.telemetry.mask import Mask, collect_secrets

from .explain import Plan, Stop
from .rehearsal import Request
from .screen import pretty
from .texts import Line, call_lines, change_lines, fault_json, fault_lines, several

__all__ = ["plan_json", "plan_lines", "request_lines"]

_HIDDEN = "***"


def plan_lines(plan: Plan, config: Config) -> Iterator[Line]:
    if plan.model is not None and plan.entry is not None:
        match = "by its name" if plan.entry == plan.model else f"by the pattern {plan.entry}"
        yield "bold", f"model {plan.model}, found {match}"
        yield "", ""
    for number, stop in enumerate(plan.stops, 1):
        yield from _stop_lines(stop, number, stop is plan.chosen)
    if plan.stops:
        yield "", ""
    if plan.request is not None:
        if plan.calls > 1:
            yield "bold", several(plan.calls)
        yield from request_lines(plan.request, config)
        yield "", ""
        yield from change_lines(plan.changes)
    if plan.fault is not None:
        yield from fault_lines(plan.fault, plan.answer)


def plan_json(plan: Plan, config: Config) -> JsonObject:
    exact = None if plan.entry is None else plan.entry == plan.model
    return {
        "model": plan.model,
        "entry": plan.entry,
        "match": {None: None, True: "exact", False: "pattern"}[exact],
        "targets": [_stop_json(stop, stop is plan.chosen) for stop in plan.stops],
        "calls": plan.calls,
        "call": None if plan.request is None else _request_json(plan.request, config),
        "changes": [change.public() for change in plan.changes],
        "fault": None if plan.fault is None else fault_json(plan.fault),
        "answer": None if plan.answer is None else {"status": plan.answer.status, "body": plan.answer.body},
    }


def request_lines(request: Request, config: Config) -> Iterator[Line]:
    yield from call_lines(request.method, request.url, _masked(request.headers, config))
    yield "", ""
    yield from (("", line) for line in pretty(orjson.loads(request.body)).splitlines())


def _stop_lines(stop: Stop, number: int, chosen: bool) -> Iterator[Line]:
    target = f"{number}. {stop.candidate.label} ({stop.candidate.provider.dialect.name})"
    fallback = f"fallback {stop.entry}, " if stop.fallback else ""
    weight = f"weight {stop.candidate.choice.weight:g}"
    if stop.fault is not None:
        yield "yellow", f"{target}: {fallback}{weight}, skipped: {stop.fault.message}"
        where = f" at {stop.fault.param}" if stop.fault.param else ""
        yield "", f"   {stop.fault.kind}{where}"
        return
    chance = f"{stop.chance:.0%} to be asked first" if stop.chance else "asked where those before it fail"
    yield "green" if chosen else "", f"{target}: {fallback}{weight}, {chance}{', chosen' if chosen else ''}"


def _stop_json(stop: Stop, chosen: bool) -> JsonObject:
    return {
        "entry": stop.entry,
        "fallback": stop.fallback,
        "provider": stop.candidate.provider.name,
        "dialect": stop.candidate.provider.dialect.name,
        "model": stop.candidate.target.model,
        "weight": stop.candidate.choice.weight,
        "chance": round(stop.chance, 6),
        "chosen": chosen,
        "skipped": None if stop.fault is None else fault_json(stop.fault),
    }


def _request_json(request: Request, config: Config) -> JsonObject:
    headers = _masked(request.headers, config)
    return {"method": request.method, "url": request.url, "headers": headers, "body": orjson.loads(request.body)}


def _masked(headers: Mapping[str, str], config: Config) -> dict[str, str]:
    """No configured secret shows, nor the value of a header that a configuration file sets itself."""
    mask = Mask(collect_secrets(config))
    own = {name.lower() for provider in config.providers.values() for name in provider.headers}
    return {
        name: _HIDDEN if name.lower() in own else mask(value.encode("latin-1")).decode("latin-1")
        for name, value in headers.items()
    }
