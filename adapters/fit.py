"""Make a request fit its target: one table of rules for everything that the target's schema refuses.

The schema can refuse a body for three reasons. The rule depends on the value, on the hub's schema and on the policy:

    the target lacks it      null, or `x-neutral` in the hub    dropped, same meaning
                             `x-advisory` in the hub            dropped, a loss
                             known to the hub                   policy `unsupported`: refuse | drop
                             unknown to the hub too (extra)     policy `extra_parameters`: error | drop | pass-through
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

from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, TypeAlias

from dragoman.schemas import Schema, load

from .call import Context, JsonObject
from .edits import Edits, remove
from .faults import Fault
from .paths import Path, format_path, lookup
from .suggestions import did_you_mean
from .validation import Validator, Violation

__all__ = [
    "HUB_CHAT",
    "HUB_COMPLETIONS",
    "HUB_RESPONSES",
    "Extras",
    "drop_lacking",
    "drop_or_reject",
    "fit",
    "hub_annotations",
    "is_taken",
    "resolve_extra",
]

HUB_CHAT = "hub/chat.request"
HUB_COMPLETIONS = "hub/completions.request"
HUB_RESPONSES = "hub/responses.request"

Extras: TypeAlias = Literal["keep", "drop", "keep-extensions", "keep-all"]
"""What a dialect does with extra parameters, if the policy passes them through.

`keep` keeps them. `drop` drops them, because its servers refuse unknown keys. `keep-extensions` also keeps the hub's
own extensions, because many different servers speak the dialect. `keep-all` keeps every top-level key that the
dialect's API does not define, because the client asked for that.
"""

_TOKEN_LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
_ROUNDS = 4
_STEPS = {"minimum": 0, "maximum": 0, "exclusiveMinimum": 1, "exclusiveMaximum": -1}


def fit(
    body: JsonObject,
    validator: Validator,
    ctx: Context,
    extras: Extras = "keep",
    hub: str = HUB_CHAT,
    named: str | None = None,
) -> None:
    """Alter `body` until the validator accepts it: drop, clamp or refuse what it does not accept.

    `body` is the writer's own copy; nested values are copied, never altered. `hub` names the hub schema of the body's
    protocol. Fields that the target is configured to take are sent as they are. So is the field `named` if the schema
    does not have it: its name depends on the target's model. Raises Fault `unsupported_parameter` or `extra_parameter`,
    with a path in the form being written.
    """
    named = None if named in validator.known else named
    taken: JsonObject = {}
    if named is not None or ctx.target.takes:
        taken = {name: body.pop(name) for name in [*body] if name == named or is_taken(name, ctx)}
    _fit_rest(body, validator, ctx, extras, hub)
    if taken:
        _apply_limits(Edits(taken), ctx)
        body.update(taken)


def is_taken(name: str | int, ctx: Context) -> bool:
    """Whether the target is configured to take a parameter that is being written: by its name there, or by the name
    that the client's request in hub form has for it."""
    takes = ctx.target.takes
    return bool(takes) and (name in takes or not takes.isdisjoint(ctx.receipt.unmap_to_canonical((name,))[:1]))


def _fit_rest(body: JsonObject, validator: Validator, ctx: Context, extras: Extras, hub: str) -> None:
    edits = Edits(body)
    for name in [name for name in body if name not in validator.known]:
        _resolve_unknown(edits, (name,), ctx, extras, hub)
    _apply_limits(edits, ctx)
    if ctx.accepted_by is validator and validator.accepts_again(body, ctx.call.body):
        return
    for _ in range(_ROUNDS):
        if validator.accepts(body):
            return
        missing: Violation | None = None
        edits = Edits(body)  # a new one in each round: values that were validated, copies included, are not altered
        for violation in validator.violations(body.copy()):  # one by one: the first refusal ends the loop
            if violation.keyword != "required":
                _resolve_violation(edits, violation, ctx, extras, hub)
            else:
                missing = missing or violation
        if missing is not None:
            raise _rejection(missing)
    for violation in validator.violations(body):
        raise _rejection(violation)


def _apply_limits(edits: Edits, ctx: Context) -> None:
    for name, most in ctx.target.limits.items():
        if isinstance(edits.body.get(name), int) and edits.body[name] > most:
            _resolve_range(edits, (name,), most, f"the target's limit is {most}", ctx)
    longest = ctx.target.most_output
    if longest is not None:
        for name in _TOKEN_LIMITS:
            if isinstance(edits.body.get(name), int) and edits.body[name] > longest and name not in ctx.target.takes:
                why = f"the most tokens that the model generates are {longest}: {ctx.target.facts.describe('output')}"
                _resolve_range(edits, (name,), longest, why, ctx)


def drop_lacking(body: JsonObject, ctx: Context, hub: str = HUB_CHAT) -> None:
    """Drop the fields of the body that the target is configured to lack, or that its model is documented to refuse.

    Raises Fault if the policy refuses that.
    """
    lacks, refuses = ctx.target.lacks, ctx.target.refuses
    for name in [name for name in body if name in lacks] if lacks else ():
        drop_or_reject(body, (name,), ctx, "the target is configured without it", hub)
    for name in [name for name in refuses if name in body] if refuses else ():
        refusal, effort = refuses[name], find_effort(body) or ctx.target.facts.default_effort
        if refusal.applies(body[name], effort):
            drop_or_reject(body, (name,), ctx, f"{refusal.family} refuses it ({refusal.source.title})", hub)


def find_effort(body: JsonObject) -> str | None:
    """The reasoning effort that a request of chat or Responses asks for."""
    effort = body.get("reasoning_effort") or lookup(body, ("reasoning", "effort"))
    return effort if isinstance(effort, str) else None


def drop_or_reject(body: JsonObject, path: Path, ctx: Context, why: str, hub: str = HUB_CHAT) -> None:
    """Drop a field of the hub that the target does not accept; `why` gives the reason.

    Raises Fault `unsupported_parameter` if the field matters and the policy `unsupported` is `refuse`.
    """
    _record_drop_or_reject(body, path, ctx, why, hub)
    remove(body, path)


def _record_drop_or_reject(body: JsonObject, path: Path, ctx: Context, why: str, hub: str) -> None:
    """Record that a field is dropped because the target does not accept it. Raises Fault if it must not be dropped."""
    value = lookup(body, path)
    hint = hub_annotations(hub).get(_without_positions(path), {})
    if _is_neutral(value, path, hub):
        ctx.receipt.record_drop(path, f"{why}; leaving it out means the same", "form")
    elif _is_advisory(hint, value):
        ctx.receipt.record_drop(path, f"{why}; it is advisory")
    elif ctx.target.policy.unsupported == "drop" and not _is_emulated(path, ctx):
        ctx.receipt.record_drop(path, why)
    else:
        name = format_path(ctx.receipt.unmap(path))
        message = f"{name} cannot be served: {why}; leave it out, or set the policy unsupported to drop"
        raise Fault("unsupported_parameter", message, path, value, code="unsupported_parameter")


@cache
def hub_annotations(hub: str = HUB_CHAT) -> dict[Path, Schema]:
    """Return the schema of every property of a hub request, by its path without positions: `("messages", "name")`."""
    schema = load(hub)
    found: dict[Path, Schema] = {}
    for path, rule in _walk_properties(schema, schema, (), ()):
        found[path] = {**rule, **found.get(path, {})}
    return found


def _resolve_violation(edits: Edits, violation: Violation, ctx: Context, extras: Extras, hub: str) -> None:
    body, path = edits.body, violation.path
    if not _exists(body, path):
        return  # an earlier resolution removed it
    if _is_neutral(lookup(body, path), path, hub):
        ctx.receipt.record_drop(path, "the target does not accept it; leaving it out means the same", "form")
        edits.remove_parameter(path)
    elif violation.keyword == "additionalProperties":
        _resolve_unknown(edits, path, ctx, extras, hub)
    elif violation.keyword in _STEPS:
        _resolve_range(edits, path, _nearest_allowed(violation), violation.message, ctx)
    elif _is_advisory(hub_annotations(hub).get(_without_positions(path), {}), lookup(body, path)):
        ctx.receipt.record_drop(path, f"{violation.message}; it is advisory")
        edits.remove_parameter(path)
    else:
        raise _rejection(violation)


def _resolve_unknown(edits: Edits, path: Path, ctx: Context, extras: Extras, hub: str) -> None:
    hint = hub_annotations(hub).get(_without_positions(path))
    extension = hint is not None and hint.get("x-extension") and extras == "keep-extensions"
    is_kept = extension or (extras == "keep-all" and len(path) == 1)
    if hint is None or (is_kept and "x-dialect" not in hint):
        if _decide_extra(edits.body, path, ctx, extras, hub):
            return
    else:
        _record_drop_or_reject(edits.body, path, ctx, "the target's API does not have it", hub)
    edits.remove_parameter(path)


def resolve_extra(body: JsonObject, path: Path, ctx: Context, extras: Extras = "drop", hub: str = HUB_CHAT) -> None:
    """Drop or keep a key that no schema has, by policy and dialect. Raises Fault if the policy refuses it."""
    if not _decide_extra(body, path, ctx, extras, hub):
        remove(body, path)


def _decide_extra(body: JsonObject, path: Path, ctx: Context, extras: Extras, hub: str) -> bool:
    """Whether an extra parameter is kept. Records it if it is to be dropped; raises Fault if it is refused."""
    choice = ctx.target.policy.extra_parameters
    nested = len(path) > 1  # comes here only if the target's schema allows no other keys
    if lookup(body, path) is None:
        ctx.receipt.record_drop(path, "it is null and not a known parameter", "form")
    elif choice == "error" or (nested and choice == "pass-through"):
        text = f"{format_path(ctx.receipt.unmap(path))} is not a known parameter{_suggest_name(path, hub)}"
        raise Fault("extra_parameter", text, path, lookup(body, path), code="unknown_parameter")
    elif choice == "drop" or extras == "drop":
        ctx.receipt.record_drop(path, "not a known parameter")
    else:
        return True
    return False


def _suggest_name(path: Path, hub: str) -> str:
    """Return a question with the most similar name that the hub has there, or an empty text."""
    *above, name = path
    place = _without_positions(tuple(above))
    siblings = [known[-1] for known in hub_annotations(hub) if known[:-1] == place]
    return did_you_mean(str(name), [one for one in siblings if isinstance(one, str) and one != name])


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
        ctx.receipt.record_clamp(path, f"{why}; sent as {nearest}")
        edits.replace(path, nearest)
    else:
        ctx.receipt.record_drop(path, why)
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
    emulates = ctx.target.emulates
    return bool(emulates) and not emulates.isdisjoint(ctx.receipt.unmap_to_canonical(path)[:1])


def _is_neutral(value: Any, path: Path, hub: str) -> bool:
    return value is None or value in hub_annotations(hub).get(_without_positions(path), {}).get("x-neutral", ())


def _is_advisory(hint: Schema, value: Any) -> bool:
    advisory = hint.get("x-advisory", False)
    return advisory is True or (isinstance(advisory, list) and value in advisory)


def _without_positions(path: Path) -> Path:
    return tuple(part for part in path if isinstance(part, str))


def _exists(body: Any, path: Path) -> bool:
    container = lookup(body, path[:-1])
    last = path[-1] if path else None
    return (isinstance(container, dict) and last in container) or (
        isinstance(container, list) and isinstance(last, int) and last < len(container)
    )


def _walk_properties(root: Schema, rule: Any, path: Path, seen: tuple[str, ...]) -> Iterator[tuple[Path, Schema]]:
    """Walk a schema written in this project's style: properties, items, $ref and if/then."""
    if not isinstance(rule, dict):
        return
    target = rule.get("$ref")
    if isinstance(target, str) and target not in seen:
        yield from _walk_properties(root, _resolve_reference(root, target), path, (*seen, target))
    for name, child in rule.get("properties", {}).items():
        yield (*path, name), child
        yield from _walk_properties(root, child, (*path, name), seen)
    for key in ("items", "then", "else"):
        yield from _walk_properties(root, rule.get(key), path, seen)
    for branch in (*rule.get("allOf", ()), *rule.get("prefixItems", ())):
        yield from _walk_properties(root, branch, path, seen)


def _resolve_reference(root: Schema, ref: str) -> Schema:
    found: Any = root
    for part in ref.removeprefix("#/").split("/"):
        found = found[part]
    schema: Schema = found
    return schema
