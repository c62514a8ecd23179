"""Which address serves which dialect and protocol. The addresses are data; what is served is what the dialects say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

from .call import Call
from .dialect import Dialect, Served
from .faults import Fault
from .suggestions import did_you_mean, nearest

__all__ = ["ADDRESSES", "AZURE_OPENAI", "INFORMATION", "STORED", "Route", "Routes"]

ADDRESSES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("openai", "chat"): ("/v1/chat/completions", "/openai/v1/chat/completions"),
    ("openai", "responses"): ("/v1/responses", "/openai/v1/responses"),
    ("openai", "completions"): ("/v1/completions", "/openai/v1/completions"),
    ("databricks", "chat"): (
        "/serving-endpoints/chat/completions",
        "/databricks/serving-endpoints/chat/completions",
        "/serving-endpoints/{name}/invocations",
        "/databricks/serving-endpoints/{name}/invocations",
    ),
    ("databricks", "responses"): ("/serving-endpoints/responses", "/databricks/serving-endpoints/responses"),
    ("databricks", "completions"): ("/serving-endpoints/completions", "/databricks/serving-endpoints/completions"),
    ("azure", "chat"): (
        "/chat/completions",
        "/azure/chat/completions",
        "/models/chat/completions",
        "/azure/models/chat/completions",
    ),
    ("mindie", "chat"): ("/mindie/v1/chat/completions",),
    ("openai", "embeddings"): ("/v1/embeddings", "/openai/v1/embeddings"),
    ("databricks", "embeddings"): ("/serving-endpoints/embeddings", "/databricks/serving-endpoints/embeddings"),
    ("azure", "embeddings"): (
        "/embeddings",
        "/azure/embeddings",
        "/models/embeddings",
        "/azure/models/embeddings",
    ),
}
"""(dialect, protocol) -> patterns of paths; `{name}` is one segment. Where a dialect has `protocol_of`, its addresses
with a name in them serve all of its protocols."""

AZURE_OPENAI: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("openai", "chat"): ("/openai/deployments/{name}/chat/completions",),
    ("openai", "completions"): ("/openai/deployments/{name}/completions",),
    ("openai", "embeddings"): ("/openai/deployments/{name}/embeddings",),
    ("openai", "responses"): ("/openai/responses",),
}
"""The same for clients of Azure OpenAI, whose form of address `adapters/openai/azure_addresses.py` reads."""

STORED = frozenset({("openai", "responses")})
"""Those whose replies are kept: their clients find each again below the address that made it."""

_OPERATIONS = frozenset({"compact", "input_tokens"})  # OpenAI has them where ids stand; they are not served

INFORMATION: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("openai", "models"): ("/v1/models", "/openai/v1/models", "/openai/models"),
    ("openai", "model"): ("/v1/models/{name}", "/openai/v1/models/{name}", "/openai/models/{name}"),
    ("databricks", "models"): ("/api/2.0/serving-endpoints", "/databricks/api/2.0/serving-endpoints"),
    ("databricks", "model"): ("/api/2.0/serving-endpoints/{name}", "/databricks/api/2.0/serving-endpoints/{name}"),
    ("databricks", "host"): ("/.well-known/databricks-config",),
    ("azure", "info"): ("/info", "/azure/info", "/models/info", "/azure/models/info"),
    ("mindie", "models"): ("/mindie/v1/models",),
    ("mindie", "model"): ("/mindie/v1/models/{name}",),
    ("mindie", "info"): ("/mindie/info",),
}
"""(dialect, what it tells) -> patterns of paths; `{name}` is all the rest."""

_ANYBODYS = frozenset({"api", ".well-known"})  # first segments that tell of no dialect; the second does
_LIKE = 0.85  # less is no slip of the pen, but another API: Azure's /images/embeddings, OpenAI's /v1/conversations


@dataclass(frozen=True, slots=True)
class Route:
    """`shared` are the routes of all protocols that the address serves, where it serves several."""

    dialect: Dialect
    protocol: str
    served: Served
    profile: str
    shared: Mapping[str, Route] = field(default_factory=dict, compare=False, repr=False)

    def asked_by(self, call: Call, task: Callable[[str], str | None]) -> Route:
        """The route of the protocol that the call asks for. `task` tells what a model is there for. Raises Fault."""
        choose = self.dialect.protocol_of if self.shared else None
        return self if choose is None else self.of(choose(call, task))

    def of(self, protocol: str) -> Route:
        """The same address in another of its protocols. Raises Fault where it does not serve that."""
        if not self.shared or protocol in self.shared:
            return self.shared.get(protocol, self)
        text = f"the body asks for {protocol}, which is not served here; served are: {', '.join(self.shared)}"
        raise Fault("invalid_request", text, code="unsupported_protocol")

    @property
    def keeps(self) -> bool:
        return (self.dialect.name, self.protocol) in STORED

    def natural(self, path: str) -> str:
        """The path without the prefix that names the dialect."""
        prefix = f"/{self.dialect.name}/"
        return path[len(prefix) - 1 :] if path.startswith(prefix) else path


class Routes:
    """The route table. `profiles` are those in which dialects are served: `actual` where nothing is said, `documented`
    for mindie."""

    def __init__(self, dialects: Mapping[str, Dialect], profiles: Mapping[Any, str]) -> None:
        self._exact: dict[str, Route] = {}
        self._patterns: list[tuple[list[str], Route]] = []
        self._by_beginning: dict[str, Route] = {}
        self._told: dict[str, list[tuple[str, ...]]] = {}  # dialect -> patterns, those of the same thing together
        self._keeping: list[str] = []
        every: dict[str, dict[str, Route]] = {}
        for (name, protocol), patterns in ADDRESSES.items():
            dialect = dialects.get(name)
            if dialect is not None and protocol in dialect.served:
                profile = profiles.get(name) or ("documented" if name == "mindie" else "actual")
                spoken = every.setdefault(name, {})
                route = spoken[protocol] = Route(dialect, protocol, dialect.served[protocol], profile)
                self._add(route, (*patterns, *AZURE_OPENAI.get((name, protocol), ())), spoken)

        for (name, _), patterns in INFORMATION.items():
            kin = next((route for route in self._by_beginning.values() if route.dialect.name == name), None)
            if kin is not None:
                self._tell(kin, patterns)

    def find(self, path: str) -> Route | None:
        route = self._exact.get(path)
        if route is None and self._patterns:
            parts = path.split("/")
            route = next((route for pattern, route in self._patterns if _fits(pattern, parts)), None)
        return route

    def stored(self, path: str) -> tuple[Route, str, str] | None:
        """The route that made the response which a path speaks of, that response's id, and which part of it."""
        for base in self._keeping:
            if path.startswith(base):
                response_id, slash, part = path[len(base) :].partition("/")
                if response_id and response_id not in _OPERATIONS and bool(slash) == bool(part):
                    return self._exact[base[:-1]], unquote(response_id), part
        return None

    def kin(self, path: str) -> Route:
        """The route whose dialect a client at this path most likely speaks: one that begins alike."""
        return self._by_beginning.get(_beginning(path)) or self._by_beginning["v1"]

    def unknown(self, path: str) -> Fault:
        """What to say of an address that is not served: which one was meant, else which ones there are."""
        known = [pattern for groups in self._told.values() for group in groups for pattern in group]
        hint = did_you_mean(path, known, likeness=_LIKE)
        if not hint:
            dialect = self.kin(path).dialect.name
            served = ", ".join(_closest(path, group) for group in self._told[dialect])
            hint = f": dragoman has no such API; to {dialect} clients it serves {served}"
        return Fault("not_found", f"nothing is served at this address{hint}", code="unknown_url")

    def _tell(self, route: Route, patterns: tuple[str, ...]) -> None:
        self._told.setdefault(route.dialect.name, []).append(patterns)
        for pattern in patterns:
            self._by_beginning.setdefault(_beginning(pattern), route)

    def _add(self, route: Route, patterns: tuple[str, ...], spoken: Mapping[str, Route]) -> None:
        self._tell(route, patterns)
        for pattern in patterns:
            if "{" in pattern:
                shared = spoken if route.dialect.protocol_of is not None else {}
                self._patterns.append((pattern.split("/"), replace(route, shared=shared)))
            else:
                self._exact[pattern] = route
            if route.keeps:
                self._keeping.append(f"{pattern}/")


def _beginning(path: str) -> str:
    first, second = [*path.split("/"), "", ""][1:3]
    return f"{first}/{second}" if first in _ANYBODYS else first


def _closest(path: str, patterns: tuple[str, ...]) -> str:
    """Of patterns that serve the same, the most alike of those that begin as the path does, else the first."""
    alike = [pattern for pattern in patterns if _beginning(pattern) == _beginning(path)]
    return nearest(path, alike or patterns[:1], likeness=0)[0]


def _fits(pattern: list[str], parts: list[str]) -> bool:
    return len(pattern) == len(parts) and all(
        bool(part) if wanted.startswith("{") else wanted == part for wanted, part in zip(pattern, parts, strict=True)
    )
