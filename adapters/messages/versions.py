"""The versions of the Messages API, which a client names in the header `anthropic-version`.

A property of the request schema belongs to all versions unless its `x-versions` lists them. What a version does not
accept in messages of one role is in a table here.

Sources: anthropic 2.12.0 and 0.125.0, MessageCreateParams; Anthropic's pages "Versions" and "Migrating to API
version 2026-10-21".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault, join_faults
from dragoman.adapters.paths import Path, lookup
from dragoman.adapters.validation import Validator

__all__ = ["VERSIONS", "check_version", "list_foreign"]

VERSIONS = ("2023-06-01", "2026-10-21")
"""The versions that clients may ask for, the oldest first."""


class _Lack(NamedTuple):
    """A type of block that messages of a role must not have, or must not have with this key: directly in the content,
    or also in blocks of the type `inside`."""

    role: str
    block: str
    key: str | None = None
    inside: str | None = None


_LACKS: Mapping[str, tuple[_Lack, ...]] = {
    "2026-10-21": (_Lack("assistant", "document"), _Lack("user", "text", "citations", inside="search_result")),
}


def list_foreign(body: JsonObject, version: str, validator: Validator) -> list[Path]:
    """Return the paths of what a valid request has that the version does not, although another one does.

    What is null or empty counts as absent in messages, and what is null everywhere. `validator` is that of the
    dialect's requests.
    """
    foreign = _list_foreign_names(validator, version)
    names = [name for name, value in body.items() if name in foreign and value is not None]
    return [*((name,) for name in names), *_list_foreign_blocks(body, _LACKS.get(version, ()))]


@cache
def _list_foreign_names(validator: Validator, version: str) -> frozenset[str]:
    """The parameters that only other versions have."""
    properties = validator.schema["properties"]
    return frozenset(name for name, rule in properties.items() if version not in rule.get("x-versions", (version,)))


def check_version(body: JsonObject, version: str, validator: Validator) -> None:
    """Check that the version has all that the request has. Raises Fault `extra_parameter` with all others."""
    foreign = list_foreign(body, version, validator)
    if foreign:
        raise join_faults(_refuse(path, body, version) for path in foreign)


def _list_foreign_blocks(body: JsonObject, lacks: tuple[_Lack, ...]) -> Iterator[Path]:
    for i, message in enumerate(body.get("messages", ()) if lacks else ()):
        for lack in lacks:
            if lack.role == message["role"]:
                yield from _find_lacking(message["content"], ("messages", i, "content"), lack)


def _find_lacking(content: Any, path: Path, lack: _Lack) -> Iterator[Path]:
    for k, block in enumerate(content) if isinstance(content, list) else ():
        if block["type"] == lack.block and (lack.key is None or block.get(lack.key)):
            yield (*path, k) if lack.key is None else (*path, k, lack.key)
        elif block["type"] == lack.inside:
            yield from _find_lacking(block.get("content"), (*path, k, "content"), lack)


def _refuse(path: Path, body: JsonObject, version: str) -> Fault:
    value = lookup(body, path)
    if len(path) == 1:
        text = f"{path[0]} is not a parameter of the API version {version}"
        return Fault("extra_parameter", text, path, value, code="unknown_parameter")
    message = body["messages"][path[1]]
    what = path[-1] if isinstance(path[-1], str) else f"{value['type']} blocks"
    text = f"{what} are not accepted in messages of the {message['role']} in the API version {version}"
    return Fault("invalid_request", text, path, value, code="invalid_value")
