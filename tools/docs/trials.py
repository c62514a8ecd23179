"""What becomes of one thing in a request on its way from a client's dialect to a provider's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from dragoman.adapters.call import Call, Context, JsonObject, Policy, Target
from dragoman.adapters.changes import Change, Receipt
from dragoman.adapters.dialect import Dialect
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path, lookup
from dragoman.adapters.translate.bridge import bridges

from .questions import Question

__all__ = ["CARRIED", "LENIENT", "MODEL", "PROVIDER_PROFILE", "SILENT", "Client", "NotInDialect", "fate", "leaves"]

LENIENT = Policy(extra_parameters="drop", unsupported="drop", out_of_range="clamp")
PROVIDER_PROFILE = "actual"
MODEL = "upstream-model"
CARRIED = "carried"
SILENT = "ALTERED IN SILENCE"
"""The word for what no change tells of: a defect of an adapter."""

_WORDS = {
    ("dropped", "loss"): "lost",
    ("clamped", "loss"): "nearest value",
    ("converted", "loss"): "converted, less exact",
    ("renamed", "form"): "as `{}`",
    ("converted", "form"): "converted",
    ("moved", "form"): "moved",
    ("dropped", "form"): "not needed",
}
"""Of several changes, the first in this order tells the fate."""
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


def fate(client: Client, provider: Dialect, question: Question) -> str:
    """One of the words of the table. Where the provider does not have the protocol, another stands in for it; of a
    request that becomes several, the first is looked at. Raises NotInDialect."""
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
    receipt, profile = Receipt(), client.profile
    call = Call("POST", "/", question.body, client.dialect.query)
    try:
        hub = client.dialect.served[question.protocol].read_request(call, Context(profile, call, receipt))
    except Fault as fault:
        raise NotInDialect(f"{client.dialect.name} ({profile}): {fault.message}") from fault
    ctx = Context(PROVIDER_PROFILE, call, receipt, Target(MODEL, PROVIDER_PROFILE, policy), hub)
    called = provider.called.get(question.protocol)
    if called is None:
        bridge = bridges[question.protocol]
        called = provider.called[bridge.called]
        ctx = ctx._replace(target=replace(ctx.target, policy=replace(policy, emulate_completions=True)))
        if bridge.batching is not None:
            ctx = bridge.batching.split(ctx)[0]
        hub = bridge.request(ctx.request, ctx)
        ctx = ctx._replace(request=hub)
    return _Sent(called.write_request(hub, ctx).body, ctx.receipt)


def _word(sent: _Sent, question: Question) -> str:
    found = [change for change in sent.receipt.changes if _concerns(change, question.path)]
    if found:
        first = min(found, key=lambda change: _RANKS.index((change.action, change.weight)))
        return _WORDS[first.action, first.weight].format(first.after[-1] if first.after else "")
    return CARRIED if not question.path or _arrived(sent, question) else SILENT


def _concerns(change: Change, path: Path) -> bool:
    """The change is of the value, of something in it, or of something that holds it."""
    before = change.before
    if not before or before == ("model",):
        return False
    length = min(len(before), len(path))
    return before[:length] == path[:length]


def _arrived(sent: _Sent, question: Question) -> bool:
    """Every leaf of the value stands in what is sent, at the place that leads back to its own."""
    arrived = {sent.receipt.unmap(place): value for place, value in leaves(sent.body, ())}
    missing = object()
    wanted = leaves(lookup(question.body, question.path), question.path)
    return all(arrived.get(place, missing) == value for place, value in wanted)


def leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Whatever holds nothing itself, with its path, which begins with the given one."""
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not items or not value:
        yield path, value
    for key, child in items:
        yield from leaves(child, (*path, key))
