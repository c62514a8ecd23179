"""Words in a request that would steer the proxy or a server: refused from every client, whatever the policy."""

from __future__ import annotations

from functools import lru_cache

from dragoman.schemas import load

from .call import JsonObject
from .faults import Fault
from .fit import HUB_CHAT

__all__ = ["refuse_steering"]


def refuse_steering(body: JsonObject) -> None:
    """Raise Fault if the body holds a word from the hub schema's `x-refused` list."""
    if _refused().isdisjoint(body):
        return
    for name in body.keys() & _refused():
        message = f"{name} is not accepted from clients: it would steer the proxy or the model's server; leave it out"
        raise Fault("extra_parameter", message, (name,), code="unknown_parameter")


@lru_cache(maxsize=1)
def _refused() -> frozenset[str]:
    return frozenset(load(HUB_CHAT)["x-refused"])
