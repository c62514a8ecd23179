"""What may go to litellm at all. A key of a body becomes an argument of litellm's own function, which has many that
steer it, so only what the hub knows goes there; and of that nothing that merely advises, for a vendor that lacks such a
parameter refuses it."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.fit import drop_or_reject, hub_annotations, resolve_extra
from dragoman.schemas import Schema

__all__ = ["close"]

_WHY = "not every provider behind litellm takes it"


def close(body: JsonObject, ctx: Context, hub: str) -> None:
    """Settle what litellm is not given. Alters the body, the writer's own. Raises Fault."""
    for name in body.keys() - {"model", "stream"}:
        hint = hub_annotations(hub).get((name,))
        if hint is None:
            resolve_extra(body, (name,), ctx, hub=hub)
        elif _says_little(body[name], hint):
            drop_or_reject(body, (name,), ctx, _WHY, hub)


def _says_little(value: object, hint: Schema) -> bool:
    """True for what says nothing, and for what merely advises."""
    advisory = hint.get("x-advisory")
    advises = advisory is True or (isinstance(advisory, list) and value in advisory)
    return value is None or value in hint.get("x-neutral", ()) or advises
