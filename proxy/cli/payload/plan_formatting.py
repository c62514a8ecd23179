"""A routing plan as lines for people, and as JSON for programs. Credentials are masked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict

import orjson

from dragoman.adapters.call import JsonObject, Target
from dragoman.adapters.emulation.registry import OPT_INS, SETTINGS
from dragoman.proxy.config.models import Config
from dragoman.proxy.config.presets import DEFAULT_PRESET, find_preset, merge_policies
from dragoman.proxy.telemetry.mask import Mask, collect_secrets

from .dry_run import PreparedRequest
from .explain import PlannedTarget, RoutingPlan
from .fact_formatting import fact_to_json, format_facts
from .formatting import Line, fault_to_json, format_call_count, format_changes, format_fault, format_request_head
from .output import format_json

__all__ = ["format_plan", "plan_to_json"]

_MASKED = "***"


def format_plan(plan: RoutingPlan, config: Config) -> Iterator[Line]:
    """The model, its targets in the order of the tries, the request to the first usable target, and the changes."""
    if plan.model is not None and plan.entry is not None:
        match = "by its name" if plan.entry == plan.model else f"by the pattern {plan.entry}"
        yield "bold", f"model {plan.model}, found {match}"
        yield "", ""
    for number, target in enumerate(plan.targets, 1):
        yield from _format_target(target, number, target is plan.first_target)
    if plan.targets:
        yield "", ""
    if plan.first_target is not None and (facts := [*format_facts(plan.first_target.candidate.target)]):
        yield from facts
        yield "", ""
    if plan.request is not None:
        if plan.call_count > 1:
            yield "bold", format_call_count(plan.call_count)
        yield from _format_request(plan.request, config)
        yield "", ""
        yield from format_changes(plan.changes)
    elif plan.first_target is not None:
        yield "bold", "dragoman answers this without a call"
        yield "", ""
        yield from format_changes(plan.changes)
    if plan.fault is not None:
        yield from format_fault(plan.fault, plan.answer)


def plan_to_json(plan: RoutingPlan, config: Config) -> JsonObject:
    exact = None if plan.entry is None else plan.entry == plan.model
    return {
        "model": plan.model,
        "entry": plan.entry,
        "match": {None: None, True: "exact", False: "pattern"}[exact],
        "targets": [_target_to_json(target, target is plan.first_target) for target in plan.targets],
        "calls": plan.call_count,
        "call": None if plan.request is None else _request_to_json(plan.request, config),
        "changes": [change.public() for change in plan.changes],
        "fault": None if plan.fault is None else fault_to_json(plan.fault),
        "answer": None if plan.answer is None else {"status": plan.answer.status, "body": plan.answer.body},
    }


def _format_request(request: PreparedRequest, config: Config) -> Iterator[Line]:
    yield from format_request_head(request.method, request.url, _mask_headers(request.headers, config))
    yield "", ""
    yield from (("", line) for line in format_json(orjson.loads(request.body)).splitlines())


def _format_target(target: PlannedTarget, number: int, is_first: bool) -> Iterator[Line]:
    label = f"{number}. {target.candidate.label} ({target.candidate.provider.dialect.name})"
    fallback = f"fallback {target.entry}, " if target.fallback else ""
    weight = f"weight {target.candidate.choice.weight:g}"
    if target.fault is not None:
        for number, reason in enumerate(target.fault.reasons):
            begin = "   and" if number else f"{label}: {fallback}{weight}, skipped"
            yield "yellow", f"{begin}: {reason.message}"
            yield "", f"   {reason.kind}{f' at {reason.param}' if reason.param else ''}"
        yield from _format_policy(target.candidate.target)
        return
    order = f"{target.chance:.0%} chance to be tried first" if target.chance else "tried if those before it fail"
    yield "green" if is_first else "", f"{label}: {fallback}{weight}, {order}{', chosen' if is_first else ''}"
    yield from _format_policy(target.candidate.target)


def _format_policy(target: Target) -> Iterator[Line]:
    """The policies that are not the default, with their preset if they have one, and what is not emulated."""
    policy = target.policy
    default = asdict(merge_policies())
    chosen = ", ".join(f"{name} {value}" for name, value in asdict(policy).items() if value != default[name])
    if chosen:
        preset = find_preset(policy)
        yield "", f"   policy: {chosen}" + (f" (preset {preset})" if preset not in (None, DEFAULT_PRESET) else "")
    refused = ", ".join(name for name, fields in SETTINGS.items() if not fields <= target.emulates)
    if refused:
        yield "", f"   not emulated: {refused}"
    if opted := ", ".join(f"{name} {how}" for name, how in _list_opt_ins(target).items() if how):
        yield "", f"   emulated: {opted}" + ("" if target.opt_ins.hold_streams else ", streams are not held")


def _list_opt_ins(target: Target) -> dict[str, str | None]:
    """How each setting that is off by default is emulated; None if it is not."""
    return {name: getattr(target.opt_ins, name) for name in OPT_INS}


def _target_to_json(target: PlannedTarget, is_first: bool) -> JsonObject:
    policy = target.candidate.target.policy
    return {
        "entry": target.entry,
        "fallback": target.fallback,
        "provider": target.candidate.provider.name,
        "dialect": target.candidate.provider.dialect.name,
        "model": target.candidate.target.model,
        "weight": target.candidate.choice.weight,
        "chance": round(target.chance, 6),
        "policy": {"preset": find_preset(policy), **asdict(policy)},
        "emulate": {name: fields <= target.candidate.target.emulates for name, fields in SETTINGS.items()}
        | _list_opt_ins(target.candidate.target),
        "chosen": is_first,
        "facts": [fact_to_json(fact) for fact in target.candidate.target.facts.facts],
        "skipped": None if target.fault is None else fault_to_json(target.fault),
    }


def _request_to_json(request: PreparedRequest, config: Config) -> JsonObject:
    headers = _mask_headers(request.headers, config)
    return {"method": request.method, "url": request.url, "headers": headers, "body": orjson.loads(request.body)}


def _mask_headers(headers: Mapping[str, str], config: Config) -> dict[str, str]:
    """Mask configured secrets, and the values of headers that the configuration sets."""
    mask = Mask(collect_secrets(config))
    configured = {name.lower() for provider in config.providers.values() for name in provider.headers}
    return {
        name: _MASKED if name.lower() in configured else mask(value.encode("latin-1")).decode("latin-1")
        for name, value in headers.items()
    }
