"""Addresses that tell of models instead of asking one.

Whoever asks hears of the models that its key may use, and of no others: a model that it may not use is answered like
one that does not exist. Patterns are left out of lists, for nobody can ask for a pattern, and only its provider knows
the names that it stands for; a name that a pattern covers is there when it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from dragoman.adapters.call import Call, JsonObject
from dragoman.adapters.dialect import Dialect
from dragoman.adapters.listing import Information, ListedModel
from dragoman.proxy.routing.keys import Caller
from dragoman.proxy.routing.state import RouterState

__all__ = ["Desk", "Inquiry", "told"]

_NAME = "{name}"


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A question about models; `name` where the address has one."""

    dialect: Dialect
    information: Information
    name: str = ""


class Desk:
    """Which address tells of what."""

    def __init__(self, dialects: Mapping[str, Dialect]) -> None:
        self._exact: dict[str, Inquiry] = {}
        self._named: dict[str, Inquiry] = {}
        for dialect in dialects.values():
            for information in dialect.information.values():
                for pattern in information.paths:
                    known = self._named if pattern.endswith(_NAME) else self._exact
                    known[pattern.removesuffix(_NAME)] = Inquiry(dialect, information)

    def find(self, path: str) -> Inquiry | None:
        if (exact := self._exact.get(path)) is not None:
            return exact
        for start, inquiry in self._named.items():
            if path.startswith(start) and len(path) > len(start):
                return Inquiry(inquiry.dialect, inquiry.information, unquote(path[len(start) :]))
        return None


def told(inquiry: Inquiry, call: Call, caller: Caller, state: RouterState) -> JsonObject:
    """The answer's body. Raises Fault."""
    return inquiry.information.write(_models(inquiry, call, caller, state), call)


def _models(inquiry: Inquiry, call: Call, caller: Caller, state: RouterState) -> list[ListedModel]:
    about = inquiry.information.about
    if about == "none":
        return []
    if about == "all":
        return state.listed(caller)
    if about == "named":
        return [state.described(inquiry.name, caller)]
    named = inquiry.dialect.deployment_header
    deployment = call.headers.get(named) if named else None
    return [state.described(state.model(call.query.get("model"), deployment), caller)]
