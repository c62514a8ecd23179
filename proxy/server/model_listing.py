"""Lists and descriptions of models, at the addresses that each dialect has for them.

Models that a key may not use are hidden: they are not listed, and a request for one is answered like a request for a
model that does not exist. Lists do not contain patterns, because no client can request a pattern, but the names behind
them that their providers list. A request for any name that matches a pattern is answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from dragoman.adapters.call import Call, Headers, JsonObject
from dragoman.adapters.dialect import Dialect
from dragoman.adapters.listing import Information, ListedModel
from dragoman.proxy.routing.keys import Caller
from dragoman.proxy.routing.state import RouterState

__all__ = ["ModelQuery", "ModelRoutes", "list_models"]

_NAME = "{name}"


@dataclass(frozen=True, slots=True)
class ModelQuery:
    """A request about models. `name` is the model in the address, "" if there is none."""

    dialect: Dialect
    information: Information
    name: str = ""


class ModelRoutes:
    """The addresses of model lists and model descriptions, for all dialects. Two dialects may have the same address if
    one of them requires a header."""

    def __init__(self, dialects: Mapping[str, Dialect]) -> None:
        self._exact: dict[str, list[ModelQuery]] = {}
        self._named: dict[str, list[ModelQuery]] = {}
        for dialect in sorted(dialects.values(), key=lambda dialect: not dialect.headers):
            for information in dialect.information.values():
                for pattern in information.paths:
                    known = self._named if pattern.endswith(_NAME) else self._exact
                    known.setdefault(pattern.removesuffix(_NAME), []).append(ModelQuery(dialect, information))

    def match(self, path: str, headers: Headers) -> ModelQuery | None:
        """The query that belongs to the path, or None."""
        if (exact := self._exact.get(path)) is not None:
            return _choose(exact, headers)
        for start, queries in self._named.items():
            if path.startswith(start) and len(path) > len(start):
                query = _choose(queries, headers)
                return ModelQuery(query.dialect, query.information, unquote(path[len(start) :]))
        return None


def _choose(queries: Sequence[ModelQuery], headers: Headers) -> ModelQuery:
    """The query of the first dialect whose headers the client has sent, else the only one."""
    return next((query for query in queries if all(name in headers for name in query.dialect.headers)), queries[-1])


def list_models(query: ModelQuery, call: Call, caller: Caller, state: RouterState) -> JsonObject:
    """The body of the response. Raises Fault."""
    return query.information.write(_select_models(query, call, caller, state), call)


def _select_models(query: ModelQuery, call: Call, caller: Caller, state: RouterState) -> list[ListedModel]:
    about = query.information.about
    if about == "none":
        return []
    if about == "all":
        return state.list_models(caller)
    if about == "named":
        return [state.describe_model(query.name, caller)]
    named = query.dialect.deployment_header
    deployment = call.headers.get(named) if named else None
    return [state.describe_model(state.resolve_model(call.query.get("model"), deployment), caller)]
