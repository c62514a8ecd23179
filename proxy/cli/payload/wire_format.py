"""A wire format: a dialect, one of its protocols, and a profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from dragoman.adapters import dialects
from dragoman.adapters.call import JsonObject
from dragoman.adapters.dialect import Dialect
from dragoman.adapters.routes import Route, RouteTable

from .usage_error import UsageError, unknown_name_error

__all__ = ["WireFormat"]

_NAME = "{name}"


@dataclass(frozen=True, slots=True)
class WireFormat:
    """A dialect and a protocol, as an option names them; `profile` if the user sets one."""

    dialect: Dialect
    protocol: str
    profile: str | None = None

    @classmethod
    def parse(cls, option: str, text: str, profile: str | None = None) -> WireFormat:
        """Parse `DIALECT/PROTOCOL`, the value of `option`. Raises UsageError."""
        name, slash, protocol = text.partition("/")
        dialect = dialects.get(name)
        if dialect is None:
            raise unknown_name_error(option, "dialect", name, dialects)
        if not slash:
            raise UsageError(f'{option}: "{name}" names no protocol; write {name}/chat')
        protocols = dict.fromkeys((*dialect.served, *dialect.called))
        if protocol not in protocols:
            known = ", ".join(f"{name}/{one}" for one in protocols)
            raise UsageError(f'{option}: there is no protocol "{protocol[:100]}"; there are: {known}')
        if profile is not None and profile not in dialect.profiles:
            text = f'{option}: {name} has no profile "{profile[:100]}"; it has: {", ".join(dialect.profiles)}'
            raise UsageError(text)
        return cls(dialect, protocol, profile)

    def require_client(self) -> None:
        """Raise UsageError unless clients may use this."""
        if self.protocol not in self.dialect.served:
            raise UsageError(f"{self.label} is not served to clients; providers are called with it")

    def require_provider(self) -> None:
        """Raise UsageError unless providers may be called with this."""
        if self.protocol not in self.dialect.called:
            raise UsageError(f"no provider is called with {self.label}; it is served to clients")

    @property
    def label(self) -> str:
        return f"{self.dialect.name}/{self.protocol}"

    @property
    def has_model_in_path(self) -> bool:
        """True if clients name the model in the path of a request."""
        return _NAME in self._path_pattern("")

    def path(self, model: str | None) -> str:
        """The path that a client requests; it contains the model's name if the dialect has such a path."""
        return self._path_pattern(model).replace(_NAME, quote(model or "", safe=""))

    def with_model(self, body: JsonObject, model: str | None) -> JsonObject:
        """The body with this model, unless the path names it."""
        return body if model is None or self.has_model_in_path else {**body, "model": model}

    def find_route(self, profiles: Mapping[str, str]) -> Route:
        """The proxy's route for clients of this format. `profiles` (by dialect) apply if the user sets none."""
        chosen = {self.dialect.name: self.profile} if self.profile else profiles
        route = RouteTable(dialects, chosen).match(self.path("name"))
        assert route is not None, "every address fits its own pattern"
        return route.for_protocol(self.protocol)

    def _path_pattern(self, model: str | None) -> str:
        patterns = self.dialect.paths[self.protocol]
        return next((one for one in patterns if (_NAME in one) == (model is not None)), patterns[0])
