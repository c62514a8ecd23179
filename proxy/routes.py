"""Which address serves which dialect and protocol. The addresses are data; what is served is what the dialects say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dragoman.adapters.dialect import Dialect, Served
from dragoman.adapters.faults import Fault
from dragoman.adapters.suggestions import did_you_mean

__all__ = ["ADDRESSES", "Route", "Routes"]

ADDRESSES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("openai", "chat"): ("/v1/chat/completions", "/openai/v1/chat/completions"),
    ("openai", "responses"): ("/v1/responses", "/openai/v1/responses"),
    ("databricks", "chat"): (
        "/serving-endpoints/chat/completions",
        "/databricks/serving-endpoints/chat/completions",
        "/serving-endpoints/{name}/invocations",
        "/databricks/serving-endpoints/{name}/invocations",
    ),
    ("azure", "chat"): ("/chat/completions", "/azure/chat/completions"),
    ("mindie", "chat"): ("/mindie/v1/chat/completions",),
}
"""(dialect, protocol) -> patterns of paths; `{name}` is one segment."""


@dataclass(frozen=True, slots=True)
class Route:
    dialect: Dialect
    protocol: str
    served: Served
    profile: str

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
        self._by_segment: dict[str, Route] = {}
        for (name, protocol), patterns in ADDRESSES.items():
            dialect = dialects.get(name)
            if dialect is not None and protocol in dialect.served:
                profile = profiles.get(name) or ("documented" if name == "mindie" else "actual")
                self._add(Route(dialect, protocol, dialect.served[protocol], profile), patterns)

    def find(self, path: str) -> Route | None:
        route = self._exact.get(path)
        if route is None and self._patterns:
            parts = path.split("/")
            route = next((route for pattern, route in self._patterns if _fits(pattern, parts)), None)
        return route

    def kin(self, path: str) -> Route:
        """The route whose dialect a client at this path most likely speaks: one that shares its first segment."""
        first = path.split("/", 2)[1] if "/" in path else ""
        return self._by_segment.get(first) or self._by_segment["v1"]

    def unknown(self, path: str) -> Fault:
        hint = did_you_mean(path, self._exact, likeness=0.5)
        return Fault("not_found", f"nothing is served at this address{hint}", code="unknown_url")

    def _add(self, route: Route, patterns: tuple[str, ...]) -> None:
        for pattern in patterns:
            self._by_segment.setdefault(pattern.split("/", 2)[1], route)
            if "{" in pattern:
                self._patterns.append((pattern.split("/"), route))
            else:
                self._exact[pattern] = route


def _fits(pattern: list[str], parts: list[str]) -> bool:
    return len(pattern) == len(parts) and all(
        bool(part) if wanted.startswith("{") else wanted == part for wanted, part in zip(pattern, parts, strict=True)
    )
