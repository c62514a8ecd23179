"""Who speaks: a dialect, one of its protocols, and a profile; and how a client of it calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, JsonObject
from dragoman.adapters.dialect import Called, Dialect
from dragoman.adapters.routes import Route, RouteTable

from .misuse import Misuse, unknown

__all__ = ["Asking", "Speech"]

_NAME = "{name}"


@dataclass(frozen=True, slots=True)
class Speech:
    """A dialect and protocol as an option names them; `profile` where the user asks for one."""

    dialect: Dialect
    protocol: str
    profile: str | None = None

    @classmethod
    def parse(cls, option: str, text: str, profile: str | None = None) -> Speech:
        """Raises Misuse."""
        name, slash, protocol = text.partition("/")
        dialect = dialects.get(name)
        if dialect is None:
            raise unknown(option, "dialect", name, dialects)
        if not slash:
            raise Misuse(f'{option}: "{name}" names no protocol; write {name}/chat')
        protocols = dict.fromkeys((*dialect.served, *dialect.called))
        if protocol not in protocols:
            there = ", ".join(f"{name}/{one}" for one in protocols)
            raise Misuse(f'{option}: there is no protocol "{protocol[:100]}"; there are: {there}')
        if profile is not None and profile not in dialect.profiles:
            raise Misuse(f'{option}: {name} has no profile "{profile[:100]}"; it has: {", ".join(dialect.profiles)}')
        return cls(dialect, protocol, profile)

    def require_client(self) -> None:
        """Raise Misuse unless clients may speak this."""
        if self.protocol not in self.dialect.served:
            raise Misuse(f"{self.dialect.name}/{self.protocol} is not served to clients; providers are called with it")

    def require_provider(self) -> None:
        """Raise Misuse unless providers may be called with this."""
        if self.protocol not in self.dialect.called:
            raise Misuse(f"no provider is called with {self.dialect.name}/{self.protocol}; it is served to clients")

    @property
    def called(self) -> Called:
        return self.dialect.called[self.protocol]

    def route(self, profiles: Mapping[str, str]) -> Route:
        """How the proxy serves it; `profiles` by dialect, for where the user asks for none."""
        chosen = {self.dialect.name: self.profile} if self.profile else profiles
        route = RouteTable(dialects, chosen).match(self.address("name"))
        assert route is not None, "every address fits its own pattern"
        return route.for_protocol(self.protocol)

    def address(self, model: str | None) -> str:
        """The path that a client asks, with the model in it where the dialect has such a path."""
        return self._pattern(model).replace(_NAME, quote(model or "", safe=""))

    def named(self, body: JsonObject, model: str | None) -> JsonObject:
        """The body that asks for this model, where the address does not."""
        return body if model is None or self.in_address else {**body, "model": model}

    @property
    def in_address(self) -> bool:
        """True where a client names the model in the address it asks."""
        return _NAME in self._pattern("")

    def _pattern(self, model: str | None) -> str:
        patterns = self.dialect.paths[self.protocol]
        return next((one for one in patterns if (_NAME in one) == (model is not None)), patterns[0])


@dataclass(frozen=True, slots=True)
class Asking:
    """What a client says beside the body of its request; header names are lower case."""

    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    path: str | None = None

    def call(self, speech: Speech, route: Route, body: JsonObject, model: str | None) -> Call:
        """The call of a client that asks for this model."""
        path = self.path or route.strip_prefix(speech.address(model))
        return Call("POST", path, speech.named(body, model), self.full_query(speech), self.headers)

    def full_query(self, speech: Speech) -> dict[str, str]:
        return {**speech.dialect.query, **self.query}
