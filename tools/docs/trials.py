"""Traces one value of a request from a client's dialect to a provider's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from dragoman.adapters.call import Call, JsonObject, Policy, Target
from dragoman.adapters.changes import Change, Receipt
from dragoman.adapters.dialect import Dialect
from dragoman.adapters.emulation.registry import EMULATIONS, SETTINGS
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path, lookup
from dragoman.adapters.pipeline import Pipeline, plan_target
from dragoman.adapters.routes import Route

from .questions import Question

__all__ = [
    "CARRIED",
    "LENIENT",
    "MODEL",
    "PROVIDER_PROFILE",
    "SILENT",
    "Client",
    "NotInDialect",
    "leaves",
    "trace_fate",
]

_EMULATED = frozenset(EMULATIONS) - SETTINGS["token_arrays"]  # which need an extra
LENIENT = Policy(extra_parameters="drop", unsupported="drop", out_of_range="clamp")
PROVIDER_PROFILE = "actual"
MODEL = "upstream-model"
CARRIED = "carried"
SILENT = "CHANGED WITHOUT A RECORD"
"""The word for a value that changed without a recorded change: a defect of an adapter."""

_WORDS = {
    ("dropped", "loss"): "lost",
    ("clamped", "loss"): "nearest value",
    ("converted", "loss"): "converted, less exact",
    ("renamed", "form"): "as `{}`",
    ("converted", "form"): "converted",
    ("moved", "form"): "moved",
    ("emulated", "form"): "emulated",
    ("dropped", "form"): "not needed",
}
"""If a value has several changes, the first in this order decides its fate."""
_RANKS = list(_WORDS)


class NotInDialect(Exception):
    """The client's own dialect does not allow the request."""


@dataclass(frozen=True, slots=True)
class Client:
    dialect: Dialect
    profile: str


@dataclass(frozen=True, slots=True)
class _Sent:
    body: JsonObject
    receipt: Receipt


def trace_fate(client: Client, provider: Dialect, question: Question) -> str:
    """Send the question's request and return the word of the table for its value.

    If the provider lacks the protocol, a bridge replaces it; if the request becomes several, the first one counts.
    Raises NotInDialect if the client's own dialect refuses the request.
    """
    try:
        return _word(_send(client, provider, question, Policy()), question)
    except Fault:
        pass  # refused by default; the lenient policies may still find a way
    try:
        return f"refused ({_word(_send(client, provider, question, LENIENT), question)})"
    except Fault:
        return "refused"


def _send(client: Client, provider: Dialect, question: Question, policy: Policy) -> _Sent:
    """Raises Fault where the provider's side refuses, NotInDialect where the client's does."""
    dialect, protocol = client.dialect, question.protocol
    route = Route(dialect, protocol, dialect.served[protocol], client.profile)
    pipeline = Pipeline(route, Call("POST", "/", {}, dialect.query, dialect.headers))
    try:
        pipeline.receive_object(question.body)
    except Fault as fault:
        raise NotInDialect(f"{dialect.name} ({client.profile}): {fault.message}") from fault
    if protocol not in provider.called:
        policy = replace(policy, emulate_completions=True)
    target = Target(MODEL, PROVIDER_PROFILE, policy, emulates=_EMULATED)
    plan = plan_target(provider.name, provider, provider.called, target)
    first = pipeline.prepare(plan).calls[0]
    return _Sent(first.call.body, first.receipt)


def _word(sent: _Sent, question: Question) -> str:
    found = [change for change in sent.receipt.changes if _is_about(change, question.path)]
    if found:
        first = min(found, key=lambda change: _RANKS.index((change.action, change.weight)))
        return _WORDS[first.action, first.weight].format(first.after[-1] if first.after else "")
    return CARRIED if not question.path or _has_arrived(sent, question) else SILENT


def _is_about(change: Change, path: Path) -> bool:
    """Whether the change affects the value, something inside it or something around it."""
    before = change.before
    if not before or before == ("model",):
        return False
    length = min(len(before), len(path))
    return before[:length] == path[:length]


def _has_arrived(sent: _Sent, question: Question) -> bool:
    """Whether the sent body holds every leaf of the value, at a place that maps back to the leaf's own path."""
    arrived = {sent.receipt.unmap(place): value for place, value in leaves(sent.body, ())}
    missing = object()
    wanted = leaves(lookup(question.body, question.path), question.path)
    return all(arrived.get(place, missing) == value for place, value in wanted)


def leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Yield every scalar and every empty container with its path, which begins with the given one."""
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not items or not value:
        yield path, value
    for key, child in items:
        yield from leaves(child, (*path, key))
