"""Decide which parameters go to litellm.

A key of the body becomes an argument of litellm's function, and many of its arguments control litellm itself. So only
parameters of the hub are sent, and no advisory ones, because a vendor refuses an advisory parameter that it lacks.
"""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.extras import resolve_extra
from dragoman.adapters.fit import drop_or_reject
from dragoman.adapters.request_properties import hub_annotations
from dragoman.schemas import Schema

__all__ = ["drop_unknown_parameters"]

_REASON = "not every vendor behind litellm accepts it"


def drop_unknown_parameters(body: JsonObject, ctx: Context, hub: str) -> None:
    """Drop each parameter of the body that litellm must not get. Raises Fault if the policy refuses to drop one.

    `hub` names the hub schema of the body's protocol.
    """
    for name in body.keys() - {"model", "stream"}:
        hint = hub_annotations(hub).get((name,))
        if hint is None:
            resolve_extra(body, (name,), ctx, hub=hub)
        elif _is_neutral_or_advisory(body[name], hint):
            drop_or_reject(body, (name,), ctx, _REASON, hub)


def _is_neutral_or_advisory(value: object, hint: Schema) -> bool:
    advisory = hint.get("x-advisory")
    is_advisory = advisory is True or (isinstance(advisory, list) and value in advisory)
    return value is None or value in hint.get("x-neutral", ()) or is_advisory
