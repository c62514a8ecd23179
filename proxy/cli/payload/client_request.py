"""A client's request, as the options and the file describe it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from dragoman.adapters.call import Call, JsonObject
from dragoman.adapters.jsontext import read_object
from dragoman.adapters.routes import Route

from .wire_format import WireFormat

__all__ = ["ClientRequest", "RequestHead"]


@dataclass(frozen=True, slots=True)
class RequestHead:
    """A request without its body. Header names are in lower case. `path` replaces the dialect's own path."""

    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    path: str | None = None

    def create_call(self, wire_format: WireFormat, route: Route, body: JsonObject, model: str | None) -> Call:
        """The call of a client that requests this model."""
        path = self.path or route.strip_prefix(wire_format.path(model))
        headers = self.merge_headers(wire_format)
        return Call("POST", path, wire_format.with_model(body, model), self.merge_query(wire_format), headers)

    def merge_query(self, wire_format: WireFormat) -> dict[str, str]:
        """The query parameters that the dialect requires, and those of the client."""
        return {**wire_format.dialect.query, **self.query}

    def merge_headers(self, wire_format: WireFormat) -> dict[str, str]:
        """The headers that the dialect requires, and those of the client."""
        return {**wire_format.dialect.headers, **self.headers}


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A client's request. `data` is its body. `model` replaces the body's model, `key` is the name of a configured
    key, `stream` adds `"stream": true` to the body."""

    wire_format: WireFormat
    data: bytes
    model: str | None = None
    key: str | None = None
    head: RequestHead = field(default_factory=RequestHead)
    stream: bool = False

    def parse_body(self) -> JsonObject:
        """Parse the body, and apply `model` and `stream`. Raises Fault if it is not a JSON object."""
        body = read_object(self.data)
        return self.wire_format.with_model({**body, "stream": True} if self.stream else body, self.model)

    def create_call(self, route: Route, body: JsonObject) -> Call:
        """The call that the proxy's pipeline receives."""
        return self.head.create_call(self.wire_format, route, body, self._model_name(body))

    def target(self, body: JsonObject) -> str:
        """Path and query of the HTTP request (the request target of RFC 9112, 3.2)."""
        query = urlencode(self.head.merge_query(self.wire_format), quote_via=quote)
        return self.wire_format.path(self._model_name(body)) + (f"?{query}" if query else "")

    def _model_name(self, body: JsonObject) -> str | None:
        name = self.model or body.get("model")
        return name if isinstance(name, str) and name else None
