"""Routes: which dialect and protocol a path serves. The paths are data of the dialects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

from .call import Call, Headers
from .dialect import Dialect, Served
from .faults import Fault
from .providers import AddressForm
from .rate_headers import RateHeaders
from .suggestions import did_you_mean, find_nearest

__all__ = ["Route", "RouteTable"]

_OPERATIONS = frozenset({"compact", "input_tokens"})
"""Operations that OpenAI has below the path of stored responses, in place of an id. They are not served."""

_SHARED_SEGMENTS = frozenset({"api", ".well-known"})
"""First segments of paths that several APIs share; only the second segment identifies the dialect."""

_NO_HEADERS: Headers = {}

_SIMILARITY = 0.85
"""A path less similar to every known one is no typing error, but another API, such as Azure's /images/embeddings."""


@dataclass(frozen=True, slots=True)
class Route:
    """A protocol of a dialect at a path. `shared` holds the routes of all protocols if the path serves several, `form`
    is the form of address that has the path, None for the usual one."""

    dialect: Dialect
    protocol: str
    served: Served
    profile: str
    shared: Mapping[str, Route] = field(default_factory=dict, compare=False, repr=False)
    form: AddressForm | None = field(default=None, compare=False, repr=False)

    def resolve(self, call: Call, task: Callable[[str], str | None]) -> Route:
        """Return the route of the protocol that the call asks for. Raises Fault if the path does not serve it.

        `task` returns the task that is configured for a model, None if there is none.
        """
        choose = self.dialect.choose_protocol if self.shared else None
        return self if choose is None else self.for_protocol(choose(call, task))

    def for_protocol(self, protocol: str) -> Route:
        """Return the route of another protocol at the same path. Raises Fault if the path does not serve it."""
        if not self.shared or protocol in self.shared:
            return self.shared.get(protocol, self)
        text = f"the body asks for {protocol}, which this address does not serve; it serves {', '.join(self.shared)}"
        raise Fault("invalid_request", text, code="unsupported_protocol")

    @property
    def keeps_responses(self) -> bool:
        """Whether replies are stored, so that clients can get each one below the path."""
        return self.protocol in self.dialect.stored_protocols

    @property
    def rate_headers(self) -> RateHeaders:
        """The headers that tell clients of the path what their limits leave them."""
        own = None if self.form is None else self.form.rate_headers
        return self.dialect.rate_headers if own is None else own

    def strip_prefix(self, path: str) -> str:
        """Return the path without the prefix that names the dialect."""
        prefix = f"/{self.dialect.name}/"
        return path[len(prefix) - 1 :] if path.startswith(prefix) else path


class RouteTable:
    """Finds routes by path. `profiles` maps dialects to the profiles that they are served in, if not the default."""

    def __init__(self, dialects: Mapping[str, Dialect], profiles: Mapping[Any, str]) -> None:
        self._exact: dict[str, Route] = {}
        self._patterns: list[tuple[list[str], Route]] = []
        self._stored: dict[str, Route] = {}
        self._by_beginning: dict[str, Route] = {}
        self._by_header: dict[str, Route] = {}
        self._groups: dict[str, list[tuple[str, ...]]] = {}  # dialect -> groups of patterns that serve the same
        for name, dialect in dialects.items():
            routes: dict[str, Route] = {}
            profile = profiles.get(name) or dialect.served_profile
            for protocol, served in dialect.served.items():
                routes[protocol] = Route(dialect, protocol, served, profile)
                self._add_route(routes[protocol], routes)
            for information in dialect.information.values():
                self._add_group(next(iter(routes.values())), information.paths)
            if routes:
                self._by_header |= dict.fromkeys(dialect.headers, next(iter(routes.values())))

    def match(self, path: str) -> Route | None:
        """Return the route of a path that serves requests; None if there is none."""
        route = self._exact.get(path)
        if route is None and self._patterns:
            parts = path.split("/")
            route = next((route for pattern, route in self._patterns if _matches(pattern, parts)), None)
        return route

    def match_stored_response(self, path: str) -> tuple[Route, str, str] | None:
        """Return, for the path of a stored response, the route that made it, its id, and the part that the path names.

        None if the path is not that of a stored response.
        """
        for base, route in self._stored.items():
            if path.startswith(base):
                response_id, slash, part = path[len(base) :].partition("/")
                if response_id and response_id not in _OPERATIONS and bool(slash) == bool(part):
                    return route, unquote(response_id), part
        return None

    def closest_route(self, path: str, headers: Headers = _NO_HEADERS) -> Route:
        """Return the route of the client's likely dialect: one that requires a header that the client has sent, else
        one that begins as the path does, else the first."""
        for name, route in self._by_header.items():
            if name in headers:
                return route
        return self._by_beginning.get(_beginning(path)) or next(iter(self._by_beginning.values()))

    def unknown_path(self, path: str, headers: Headers = _NO_HEADERS) -> Fault:
        """Return the fault for a path that is not served: it proposes a similar path, or lists the dialect's."""
        known = [pattern for groups in self._groups.values() for group in groups for pattern in group]
        hint = did_you_mean(path, known, likeness=_SIMILARITY)
        if not hint:
            dialect = self.closest_route(path, headers).dialect.name
            served = ", ".join(_closest_pattern(path, group) for group in self._groups[dialect])
            hint = f": dragoman has no such API; to {dialect} clients it serves {served}"
        return Fault("not_found", f"nothing is served at this address{hint}", code="unknown_url")

    def _add_route(self, route: Route, routes: Mapping[str, Route]) -> None:
        patterns = route.dialect.served_paths(route.protocol)
        self._add_group(route, patterns)
        forms = route.dialect.address_forms.values()
        form_of = {pattern: form for form in forms for pattern in form.paths.get(route.protocol, ())}
        for pattern in patterns:
            route = replace(route, form=form_of.get(pattern))
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
    """Return the pattern most similar to the path, of those that begin as it does; if none does, the first pattern."""
    alike = [pattern for pattern in patterns if _beginning(pattern) == _beginning(path)]
    return find_nearest(path, alike or patterns[:1], likeness=0)[0]


def _matches(pattern: list[str], parts: list[str]) -> bool:
    return len(pattern) == len(parts) and all(
        bool(part) if wanted.startswith("{") else wanted == part for wanted, part in zip(pattern, parts, strict=True)
    )
