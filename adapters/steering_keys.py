"""Keys of a request that would control the proxy or a server: refused from every client under every policy."""

from __future__ import annotations

from functools import lru_cache

from dragoman.schemas import load

from .call import JsonObject
from .faults import Fault
from .request_properties import HUB_CHAT

__all__ = ["refuse_steering"]


def refuse_steering(body: JsonObject) -> None:
    """Refuse a body with a key of the hub schema's `x-refused` list. Raises Fault `extra_parameter`."""
    if _load_refused_keys().isdisjoint(body):
        return
    for name in body.keys() & _load_refused_keys():
        message = f"{name} is not accepted from clients: it would steer the proxy or the model's server; leave it out"
        raise Fault("extra_parameter", message, (name,), code="unknown_parameter")


@lru_cache(maxsize=1)
def _load_refused_keys() -> frozenset[str]:
    return frozenset(load(HUB_CHAT)["x-refused"])
