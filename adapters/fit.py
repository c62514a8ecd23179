"""Make a request fit its target: one table of rules for everything that the target's schema refuses.

The schema can refuse a body for three reasons. The rule depends on the value, on the hub's schema and on the policy:

    the target lacks it      null, or `x-neutral` in the hub    dropped, same meaning
                             `x-advisory` in the hub            dropped, a loss
                             known to the hub                   policy `unsupported`: refuse | drop
                             unknown to the hub too (extra)     policy `extra_parameters`: error | drop | pass-through
                                                                (`extras`)
    a number out of range    null, or `x-neutral` in the hub    dropped, same meaning
                             any other number                   policy `out_of_range`: error | clamp | drop
    any other rule is broken null, or `x-neutral` in the hub    dropped, same meaning
                             `x-advisory` in the hub            dropped, a loss
                             any other value                    refused, with its path

A value that would be dropped or clamped, though dragoman can serve it itself (`Target.emulates`), is refused: whoever
writes the request takes it out and writes the rest again.

Fields and their annotations come from the schema files; this module names no field.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from dragoman.schemas import Schema

from .call import Context, JsonObject
from .edits import Edits, remove
from .emulated_fields import name_emulated_field
from .extras import Extras, decide_extra, drop_inner_extras
from .faults import Fault
from .paths import Path, format_path, lookup
from .request_properties import HUB_CHAT, TOKEN_LIMITS, drop_positions, find_effort, hub_annotations, load_annotations
from .validation import Validator, Violation

__all__ = ["drop_lacking", "drop_or_reject", "fit", "is_taken"]

_ROUNDS = 4
_MOST_UNKNOWN = 1_000  # parameters of a request that no schema knows
_STEPS = {"minimum": 0, "maximum": 0, "exclusiveMinimum": 1, "exclusiveMaximum": -1}


def fit(
    body: JsonObject,
    validator: Validator,
    ctx: Context,
    extras: Extras = "keep",
    hub: str = HUB_CHAT,
    named: Collection[str] = (),
) -> bool:
    """Alter `body` until the validator accepts it: drop, clamp or refuse what it does not accept.

    `body` is the writer's own copy; nested values are copied, never altered. `hub` names the hub schema of the body's
    protocol. Fields that the target is configured to take are sent as they are. So are the fields `named` that the
    schema does not have: they depend on the target's model. Returns whether the body has extra parameters.
    Raises Fault `unsupported_parameter` or `extra_parameter`, with a path in the form being written.
    """
    taken: JsonObject = {}
    if ctx.target.takes or not validator.known.issuperset(named):
        added = {name for name in named if name not in validator.known}
        taken = {name: body.pop(name) for name in [*body] if name in added or is_taken(name, ctx)}
    kept = _fit_rest(body, validator, ctx, extras, hub)
    if taken:
        _apply_limits(Edits(taken), ctx, hub)
        body.update(taken)
    return bool(kept) or not body.keys() <= validator.defined


def is_taken(name: str | int, ctx: Context) -> bool:
    """Whether the target is configured to take a parameter that is being written: by its name there, or by the name
    that the client's request in hub form has for it."""
    takes = ctx.target.takes
    return bool(takes) and (name in takes or not takes.isdisjoint(ctx.receipt.unmap_to_canonical((name,))[:1]))


def _fit_rest(body: JsonObject, validator: Validator, ctx: Context, extras: Extras, hub: str) -> set[Path]:
    """Fit the body. Returns the paths of the keys inside its values that the schema lacks and that are kept."""
    edits = Edits(body)
    unknown = [] if body.keys() <= validator.known else [name for name in body if name not in validator.known]
    if len(unknown) > _MOST_UNKNOWN:
        text = f"The request has {len(unknown)} parameters that nobody knows; at most {_MOST_UNKNOWN} are looked at"
        raise Fault("extra_parameter", text, (unknown[0],), code="unknown_parameter")
    for name in unknown:
        _resolve_unknown(edits, (name,), ctx, extras, hub)
    _apply_limits(edits, ctx, hub)
    drop_inner_extras(body, ctx, hub, load_annotations(validator.name, validator.profile))
    kept: set[Path] = set()
    if ctx.accepted_by is validator and validator.accepts_again(body, ctx.call.body):
        return kept
    for _ in range(_ROUNDS):
        judge = validator.open if kept else validator  # without the rules that the kept keys break
        if judge.accepts(body) or not _resolve_violations(body, validator, kept, ctx, extras, hub):
            return kept
    for violation in validator.violations(body):
        if violation.path not in kept:
            raise _rejection(violation)
    return kept


def _resolve_violations(
    body: JsonObject, validator: Validator, kept: set[Path], ctx: Context, extras: Extras, hub: str
) -> bool:
    """Alter the body where it violates the schema. Returns False if it violates it only by keys in `kept`.

    Adds the extra parameters that the target gets to `kept`.
    """
    missing: Violation | None = None
    edits = Edits(body)  # a new one in each round: values that were validated, copies included, are not altered
    is_altered = False
    for violation in validator.violations(body.copy()):  # one by one: the first refusal ends the loop
        if violation.path in kept:
            continue
        if violation.keyword == "required":
            missing = missing or violation
        elif _resolve_violation(edits, violation, ctx, extras, hub):
            kept.add(violation.path)
        else:
            is_altered = True
    if missing is not None:
        raise _rejection(missing)
    return is_altered


def _apply_limits(edits: Edits, ctx: Context, hub: str) -> None:
    for name, most in ctx.target.limits.items():
        if isinstance(edits.body.get(name), int) and edits.body[name] > most:
            _resolve_range(edits, (name,), most, f"the target's limit is {most}", ctx)
    longest = ctx.target.most_output
    if longest is not None:
        for name in TOKEN_LIMITS.get(hub, ()):
            if isinstance(edits.body.get(name), int) and edits.body[name] > longest and name not in ctx.target.takes:
                why = f"the most tokens that the model generates are {longest}: {ctx.target.facts.describe('output')}"
                _resolve_range(edits, (name,), longest, why, ctx)


def drop_lacking(body: JsonObject, ctx: Context, hub: str = HUB_CHAT) -> None:
    """Drop the fields of the body that the target is configured to lack, or that its model is documented to refuse.

    Raises Fault if the policy refuses that.
    """
    lacks, refuses = ctx.target.lacks, ctx.target.refuses
    if lacks:
        _drop_configured(body, ctx, hub)
    for name in [name for name in refuses if name in body] if refuses else ():
        refusal, effort = refuses[name], find_effort(body) or ctx.target.facts.default_effort
        if refusal.applies(body[name], effort):
            drop_or_reject(body, (name,), ctx, f"{refusal.family} refuses it ({refusal.source.title})", hub)


def _drop_configured(body: JsonObject, ctx: Context, hub: str) -> None:
    """Drop the fields that the target is configured to lack, and those that require them."""
    lacks, annotations = ctx.target.lacks, hub_annotations(hub)
    for name in [*body]:
        needed = annotations.get((name,), {}).get("x-requires")
        if name in lacks:
            drop_or_reject(body, (name,), ctx, "the target is configured without it", hub)
        elif needed in lacks:
            drop_or_reject(body, (name,), ctx, f"the target is configured without {needed}, which it requires", hub)


def drop_or_reject(body: JsonObject, path: Path, ctx: Context, why: str, hub: str = HUB_CHAT) -> None:
    """Drop a field of the hub that the target does not accept; `why` gives the reason.

    Raises Fault `unsupported_parameter` if the field matters and the policy `unsupported` is `refuse`.
    """
    _record_drop_or_reject(body, path, ctx, why, hub)
    remove(body, path)


def _record_drop_or_reject(body: JsonObject, path: Path, ctx: Context, why: str, hub: str) -> None:
    """Record that a field is dropped because the target does not accept it. Raises Fault if it must not be dropped."""
    value = lookup(body, path)
    hint = hub_annotations(hub).get(drop_positions(path), {})
    if _is_neutral(value, path, hub):
        ctx.receipt.record_drop(path, f"{why}; leaving it out means the same", "form")
    elif _is_advisory(hint, value) or ctx.receipt.is_advisory(path):
        ctx.receipt.record_drop(path, f"{why}; it is advisory")
    elif ctx.target.policy.unsupported == "drop" and not _is_emulated(path, ctx):
        ctx.receipt.record_drop(path, why, policy="unsupported")
    else:
        name = format_path(ctx.receipt.unmap(path))
        message = f"{name} cannot be served: {why}; leave it out, or set the policy unsupported to drop"
        raise Fault("unsupported_parameter", message, path, value, code="unsupported_parameter")


def _resolve_violation(edits: Edits, violation: Violation, ctx: Context, extras: Extras, hub: str) -> bool:
    """Alter the body where it violates the schema. Returns True if it is an extra parameter that is kept."""
    body, path = edits.body, violation.path
    if not _exists(body, path):
        return False  # an earlier resolution removed it
    if _is_neutral(lookup(body, path), path, hub):
        ctx.receipt.record_drop(path, "the target does not accept it; leaving it out means the same", "form")
        edits.remove_parameter(path)
    elif violation.keyword == "additionalProperties":
        return _resolve_unknown(edits, path, ctx, extras, hub)
    elif violation.keyword in _STEPS:
        _resolve_range(edits, path, _nearest_allowed(violation), violation.message, ctx)
    elif _is_advisory(hub_annotations(hub).get(drop_positions(path), {}), lookup(body, path)):
        ctx.receipt.record_drop(path, f"{violation.message}; it is advisory")
        edits.remove_parameter(path)
    else:
        raise _rejection(violation)
    return False


def _resolve_unknown(edits: Edits, path: Path, ctx: Context, extras: Extras, hub: str) -> bool:
    """Keep or drop a key that the target's schema does not have. Returns True if it is kept."""
    hint = hub_annotations(hub).get(drop_positions(path))
    extension = hint is not None and hint.get("x-extension") and extras == "keep-extensions"
    if hint is None or ((extension or extras == "keep-all") and "x-dialect" not in hint):
        if decide_extra(edits.body, path, ctx, extras, hub):
            return True
    else:
        _record_drop_or_reject(edits.body, path, ctx, "the target's API does not have it", hub)
    edits.remove_parameter(path)
    return False


def _resolve_range(edits: Edits, path: Path, nearest: float | None, why: str, ctx: Context) -> None:
    choice = ctx.target.policy.out_of_range
    if choice == "error" or _is_emulated(path, ctx):
        raise Fault(
            "unsupported_parameter",
            f"{why} (a limit of the model's provider)",
            path,
            lookup(edits.body, path),
            code="out_of_range",
        )
    if choice == "clamp" and nearest is not None:
        ctx.receipt.record_clamp(path, f"{why}; sent as {nearest}", "out_of_range")
        edits.replace(path, nearest)
    else:
        ctx.receipt.record_drop(path, why, policy="out_of_range")
        edits.remove_parameter(path)


def _nearest_allowed(violation: Violation) -> float | None:
    """Return the closest value that the rule allows; None if there is none, as for a number greater than 0."""
    if "x-nearest" in violation.rule:
        nearest: float = violation.rule["x-nearest"]
        return nearest
    step = _STEPS[violation.keyword]
    limit: float = violation.limit
    types = violation.rule.get("type", ())
    return limit if step == 0 else limit + step if "integer" in types else None


def _rejection(violation: Violation) -> Fault:
    fault = violation.to_fault("unsupported_parameter")
    fault.message += " (a limit of the model's provider)"
    return fault


def _is_emulated(path: Path, ctx: Context) -> bool:
    """Whether dragoman can serve the field itself that the client wrote."""
    emulates, places = ctx.target.emulates, ctx.target.opt_ins.places
    if not emulates and not places:
        return False
    place = ctx.receipt.unmap_to_canonical(path)
    return place in places or name_emulated_field(place) in emulates


def _is_neutral(value: Any, path: Path, hub: str) -> bool:
    return value is None or value in hub_annotations(hub).get(drop_positions(path), {}).get("x-neutral", ())


def _is_advisory(hint: Schema, value: Any) -> bool:
    advisory = hint.get("x-advisory", False)
    return advisory is True or (isinstance(advisory, list) and value in advisory)


def _exists(body: Any, path: Path) -> bool:
    container = lookup(body, path[:-1])
    last = path[-1] if path else None
    return (isinstance(container, dict) and last in container) or (
        isinstance(container, list) and isinstance(last, int) and last < len(container)
    )
