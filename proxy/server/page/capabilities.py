"""What the page's playground can ask: the models, and each address with a request to begin with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlencode

from dragoman.adapters.call import JsonObject
from dragoman.adapters.dialect import COMPANIONS, Dialect
from dragoman.proxy.routing.keys import ANYONE
from dragoman.proxy.routing.state import RouterState

__all__ = ["list_addresses", "list_models"]

_QUESTION = "Say hello in one word."
_MESSAGES = [{"role": "user", "content": _QUESTION}]
_SAMPLES: Mapping[str, JsonObject] = {
    "chat": {"messages": _MESSAGES},
    "responses": {"input": _QUESTION},
    "messages": {"max_tokens": 256, "messages": _MESSAGES},
    "completions": {"prompt": "Hello", "max_tokens": 16},
    "embeddings": {"input": ["hello"]},
    "count_tokens": {"messages": _MESSAGES},
}
"""The request of each protocol, without its model. Only fields that every dialect has."""


def list_models(state: RouterState) -> list[JsonObject]:
    """The configured models, with the protocols that their targets serve to clients."""
    return [
        {"name": one.name, "task": one.task, "protocols": sorted(_list_protocols(state, one.name))}
        for one in state.list_models(ANYONE)
    ]


def list_addresses(dialects: Mapping[str, Dialect], state: RouterState) -> list[JsonObject]:
    """One address for each protocol of each dialect, with a request to begin with."""
    first = next((one.name for one in state.list_models(ANYONE)), "model")
    return [
        {
            "dialect": name,
            "protocol": protocol,
            "path": path.replace("{name}", first),
            "headers": _list_headers(dialects, protocol),
            "sample": {"model": first, **_SAMPLES[protocol]},
        }
        for name, dialect in dialects.items()
        for protocol, path in _list_paths(dialect)
    ]


def _list_protocols(state: RouterState, model: str) -> set[str]:
    plans = (candidate.plan for candidate in state.list_candidates(model, ANYONE))
    return {protocol for plan in plans for protocol in plan.protocols if protocol not in COMPANIONS}


def _list_paths(dialect: Dialect) -> Iterator[tuple[str, str]]:
    """The protocols with their shortest address of the usual form: the one that the docs and most clients use."""
    query = f"?{urlencode(dialect.query)}" if dialect.query else ""
    for protocol in dialect.served:
        yield protocol, min(dialect.paths.get(protocol) or dialect.served_paths(protocol), key=len) + query


def _list_headers(dialects: Mapping[str, Dialect], protocol: str) -> dict[str, str]:
    """The headers that requests of the protocol must have in some dialect; the others accept them."""
    serving = (dialect for dialect in dialects.values() if protocol in dialect.served)
    return {name: value for dialect in serving for name, value in dialect.headers.items()}
