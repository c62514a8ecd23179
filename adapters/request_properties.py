"""The properties that requests may have, with the annotations that their schemas give them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from dragoman.schemas import Schema, load

from .call import JsonObject
from .paths import Path, lookup

__all__ = [
    "EFFORTS",
    "HUB_CHAT",
    "HUB_COMPLETIONS",
    "HUB_MESSAGES",
    "HUB_RESPONSES",
    "TOKEN_LIMITS",
    "drop_positions",
    "find_effort",
    "find_session",
    "hub_annotations",
    "list_siblings",
    "load_annotations",
]

HUB_CHAT = "hub/chat.request"
HUB_COMPLETIONS = "hub/completions.request"
HUB_MESSAGES = "hub/messages.request"
HUB_RESPONSES = "hub/responses.request"

TOKEN_LIMITS: Mapping[str, tuple[str, ...]] = {
    HUB_CHAT: ("max_completion_tokens", "max_tokens"),
    HUB_COMPLETIONS: ("max_tokens",),
    HUB_MESSAGES: ("max_tokens",),
    HUB_RESPONSES: ("max_output_tokens",),
}
"""The names of the limit on generated tokens, by the hub's schema. If a request has several, the first counts."""

EFFORTS: Mapping[str, Path] = {
    HUB_CHAT: ("reasoning_effort",),
    HUB_RESPONSES: ("reasoning", "effort"),
    HUB_MESSAGES: ("output_config", "effort"),
}
"""Where a request has its reasoning effort, by the hub's schema."""


_SESSIONS: Mapping[str, tuple[Path, ...]] = {
    "messages": (("metadata", "user_id"),),
    "count_tokens": (("metadata", "user_id"),),
}
_USUAL_SESSION: tuple[Path, ...] = (("prompt_cache_key",), ("user",))
"""What requests of one session have in common, by the protocol: the first of these that a request has."""


def find_session(request: JsonObject, protocol: str) -> str | None:
    """The name of the session, or of the user, that a request of the protocol belongs to; None if it names none."""
    paths = _SESSIONS.get(protocol, _USUAL_SESSION)
    name = next((found for path in paths if (found := lookup(request, path))), None)
    return name if isinstance(name, str) else None


def find_effort(body: JsonObject) -> str | None:
    """The reasoning effort that a request of chat, Responses or Messages asks for."""
    effort = next((found for path in EFFORTS.values() if (found := lookup(body, path))), None)
    return effort if isinstance(effort, str) else None


def hub_annotations(hub: str = HUB_CHAT) -> dict[Path, Schema]:
    """Return the schema of every property of a hub request, by its path without positions: `("messages", "name")`."""
    return load_annotations(hub)


@cache
def load_annotations(name: str, profile: str = "documented") -> dict[Path, Schema]:
    """Return the schema of every property of a request, as `hub_annotations`; `name` and `profile` are its schema's."""
    schema = load(name, profile)
    found: dict[Path, Schema] = {}
    for path, rule in _walk_properties(schema, schema, (), ()):
        found[path] = {**rule, **found.get(path, {})}
    return found


def list_siblings(path: Path, known: Iterable[Path]) -> list[str]:
    """Return the names of the known properties that may be next to the key at `path`; not that of the key."""
    place, name = drop_positions(path[:-1]), path[-1]
    return [str(one[-1]) for one in known if one[:-1] == place and one[-1] != name]


def drop_positions(path: Path) -> Path:
    """Return the path without positions in lists."""
    return tuple(part for part in path if isinstance(part, str))


def _walk_properties(root: Schema, rule: Any, path: Path, seen: tuple[str, ...]) -> Iterator[tuple[Path, Schema]]:
    """Walk a schema written in this project's style: properties, items, $ref and if/then."""
    if not isinstance(rule, dict):
        return
    target = rule.get("$ref")
    if isinstance(target, str) and target not in seen:
        yield from _walk_properties(root, _resolve_reference(root, target), path, (*seen, target))
    for name, child in rule.get("properties", {}).items():
        yield (*path, name), child
        yield from _walk_properties(root, child, (*path, name), seen)
    for key in ("items", "then", "else"):
        yield from _walk_properties(root, rule.get(key), path, seen)
    for branch in (*rule.get("allOf", ()), *rule.get("prefixItems", ())):
        yield from _walk_properties(root, branch, path, seen)


def _resolve_reference(root: Schema, ref: str) -> Schema:
    found: Any = root
    for part in ref.removeprefix("#/").split("/"):
        found = found[part]
    schema: Schema = found
    return schema
