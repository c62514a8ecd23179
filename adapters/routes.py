"""Which path serves which dialect and protocol. The paths are data of the dialects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

from .call import Call
from .dialect import Dialect, Served
from .faults import Fault
from .suggestions import did_you_mean, find_nearest

__all__ = ["Route", "RouteTable"]

_OPERATIONS = frozenset({"compact", "input_tokens"})
"""What OpenAI has in place of an id, below the path that keeps responses. They are not served."""

_SHARED_SEGMENTS = frozenset({"api", ".well-known"})
"""First segments of paths that no dialect has to itself; the second segment names the dialect."""

_LIKENESS = 0.85
"""A path that is less like any known one is no slip, but another API: Azure's /images/embeddings."""


@dataclass(frozen=True, slots=True)
class Route:
    """A protocol of a dialect at a path. `shared` holds the routes of all protocols, if the path serves several."""

    dialect: Dialect
    protocol: str
    served: Served
    profile: str
    shared: Mapping[str, Route] = field(default_factory=dict, compare=False, repr=False)

    def resolve(self, call: Call, task: Callable[[str], str | None]) -> Route:
        """The route of the protocol that the call asks for. `task` gives the task of a model. Raises Fault."""
        choose = self.dialect.choose_protocol if self.shared else None
        return self if choose is None else self.for_protocol(choose(call, task))

    def for_protocol(self, protocol: str) -> Route:
        """The same path in another of its protocols. Raises Fault if it does not serve that."""
        if not self.shared or protocol in self.shared:
            return self.shared.get(protocol, self)
        text = f"the body asks for {protocol}, which is not served here; served are: {', '.join(self.shared)}"
        raise Fault("invalid_request", text, code="unsupported_protocol")

    @property
    def keeps_responses(self) -> bool:
        """True if replies are kept, so that clients find each again below the path."""
        return self.protocol in self.dialect.stored_protocols

    def strip_prefix(self, path: str) -> str:
        """The path without the prefix that names the dialect."""
        prefix = f"/{self.dialect.name}/"
        return path[len(prefix) - 1 :] if path.startswith(prefix) else path


class RouteTable:
    """Finds routes by path. `profiles` are those in which dialects are served, if not in their own default."""

    def __init__(self, dialects: Mapping[str, Dialect], profiles: Mapping[Any, str]) -> None:
        self._exact: dict[str, Route] = {}
        self._patterns: list[tuple[list[str], Route]] = []
        self._stored: dict[str, Route] = {}
        self._by_beginning: dict[str, Route] = {}
        self._groups: dict[str, list[tuple[str, ...]]] = {}  # dialect -> patterns, those that serve the same together
        for name, dialect in dialects.items():
            routes: dict[str, Route] = {}
            profile = profiles.get(name) or dialect.served_profile
            for protocol, served in dialect.served.items():
                routes[protocol] = Route(dialect, protocol, served, profile)
                self._add_route(routes[protocol], routes)
            for information in dialect.information.values():
                self._add_group(next(iter(routes.values())), information.paths)

    def match(self, path: str) -> Route | None:
        """The route of a path that takes requests."""
        route = self._exact.get(path)
        if route is None and self._patterns:
            parts = path.split("/")
            route = next((route for pattern, route in self._patterns if _matches(pattern, parts)), None)
        return route

    def match_stored_response(self, path: str) -> tuple[Route, str, str] | None:
        """For the path of a kept response: the route that made it, its id, and the part of it that is asked for."""
        for base, route in self._stored.items():
            if path.startswith(base):
                response_id, slash, part = path[len(base) :].partition("/")
                if response_id and response_id not in _OPERATIONS and bool(slash) == bool(part):
                    return route, unquote(response_id), part
        return None

    def closest_route(self, path: str) -> Route:
        """The route whose dialect a client at this path most likely speaks: one that begins alike, else the first."""
        return self._by_beginning.get(_beginning(path)) or next(iter(self._by_beginning.values()))

    def unknown_path(self, path: str) -> Fault:
        """The fault for a path that is not served: it names the path that was meant, else those that exist."""
        known = [pattern for groups in self._groups.values() for group in groups for pattern in group]
        hint = did_you_mean(path, known, likeness=_LIKENESS)
        if not hint:
            dialect = self.closest_route(path).dialect.name
            served = ", ".join(_closest_pattern(path, group) for group in self._groups[dialect])
            hint = f": dragoman has no such API; to {dialect} clients it serves {served}"
        return Fault("not_found", f"nothing is served at this address{hint}", code="unknown_url")

    def _add_route(self, route: Route, routes: Mapping[str, Route]) -> None:
        patterns = route.dialect.served_paths(route.protocol)
        self._add_group(route, patterns)
        for pattern in patterns:
            if "{" in pattern:
                shared = routes if route.dialect.choose_protocol is not None else {}
                self._patterns.append((pattern.split("/"), replace(route, shared=shared)))
            else:
                self._exact[pattern] = route
            if route.keeps_responses:
                self._stored[f"{pattern}/"] = route

    def _add_group(self, route: Route, patterns: tuple[str, ...]) -> None:
        self._groups.setdefault(route.dialect.name, []).append(patterns)
        for pattern in patterns:
            self._by_beginning.setdefault(_beginning(pattern), route)


def _beginning(path: str) -> str:
    first, second = [*path.split("/"), "", ""][1:3]
    return f"{first}/{second}" if first in _SHARED_SEGMENTS else first


def _closest_pattern(path: str, patterns: tuple[str, ...]) -> str:
    """Prefer the pattern that is most like the path among those that begin as it does, else the first."""
    alike = [pattern for pattern in patterns if _beginning(pattern) == _beginning(path)]
    return find_nearest(path, alike or patterns[:1], likeness=0)[0]


def _matches(pattern: list[str], parts: list[str]) -> bool:
    return len(pattern) == len(parts) and all(
        bool(part) if wanted.startswith("{") else wanted == part for wanted, part in zip(pattern, parts, strict=True)
    )
