"""Check that a dialect is complete: that its files exist and its data fits together.

The registry runs the check when it loads the dialects, so that an incomplete dialect fails at the start and not during
a request. The check only looks whether files exist, because reading them all would delay every start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from dragoman.schemas import names as schema_names

from .dialect import Dialect

__all__ = ["SIDES", "IncompleteDialect", "find_missing_parts", "require_complete"]

Exists: TypeAlias = Callable[[str], bool]
"""Whether a file exists, by its path in the dialect's folder."""

_WHOLE = ("request", "reply", "error")
SIDES: Mapping[str, tuple[str, ...]] = {
    "chat": (*_WHOLE, "event"),
    "responses": (*_WHOLE, "event"),
    "messages": (*_WHOLE, "event"),
    "count_tokens": _WHOLE,
    "completions": (*_WHOLE, "event"),
    "embeddings": _WHOLE,
}
"""Protocol -> the kinds of message that a dialect must have a schema for."""


class IncompleteDialect(Exception):
    """A dialect of the registry is incomplete. `missing` has a sentence for each part that it lacks."""

    def __init__(self, name: str, missing: list[str]) -> None:
        super().__init__(f"the dialect {name} is incomplete: {'; '.join(missing)}")
        self.missing = tuple(missing)


def require_complete(name: str, dialect: Dialect) -> None:
    """Check the dialect of the folder adapters/`name`. Raises IncompleteDialect, with everything that is missing."""
    folder = Path(__file__).with_name(name)
    missing = list(find_missing_parts(name, dialect, lambda path: folder.joinpath(path).is_file()))
    if missing:
        raise IncompleteDialect(name, missing)


def find_missing_parts(name: str, dialect: Dialect, exists: Exists) -> Iterator[str]:
    """Yield a sentence for each part that the dialect lacks. `exists` looks for files in the dialect's folder."""
    if dialect.name != name:
        yield f"its name is {dialect.name}, but its folder is adapters/{name}"
    yield from _find_missing_files(name, dialect, exists)
    yield from _find_missing_paths(dialect)
    yield from _find_unknown_names(dialect)


def _find_missing_files(name: str, dialect: Dialect, exists: Exists) -> Iterator[str]:
    known = schema_names()
    protocols = dict.fromkeys([*dialect.served, *dialect.called])
    if not protocols:
        yield "it has no verbs of any protocol (served, called)"
    for protocol in protocols:
        sides = SIDES.get(protocol)
        if sides is None:
            yield f"there is no protocol {protocol}"
            continue
        for side in sides:
            if f"{name}/{protocol}.{side}" not in known:
                yield f"schemas/{name}/{protocol}.{side}.json is missing"
        if not exists(f"samples/{protocol}.json"):
            yield f"adapters/{name}/samples/{protocol}.json is missing"
    if not exists("fake.json"):
        yield f"adapters/{name}/fake.json is missing"


def _find_missing_paths(dialect: Dialect) -> Iterator[str]:
    for protocol in dialect.served:
        if not dialect.paths.get(protocol):
            yield f"{protocol} is served, but has no path"
    forms = [form.paths for form in dialect.address_forms.values()]
    for protocol, paths in (item for found in (dialect.paths, *forms) for item in found.items()):
        if protocol not in dialect.served:
            yield f"the path {', '.join(paths)} is for {protocol}, which is not served"
    for what, information in dialect.information.items():
        if not information.paths:
            yield f"the information {what} has no path"
    if dialect.information and not dialect.served:
        yield "it has information, but serves no protocol, so it cannot answer with an error"
    if dialect.called and dialect.base_address is None:
        yield "it is called, but has no base_address"
    if dialect.called and not dialect.auth:
        yield "it is called, but has no way to present a key (auth)"


def _find_unknown_names(dialect: Dialect) -> Iterator[str]:
    """Yield a sentence for each name in the dialect's data that refers to nothing in it."""
    for kind, profile in (("served", dialect.served_profile), ("called", dialect.called_profile)):
        if profile not in dialect.profiles:
            yield f"the {kind} profile {profile} is not one of its profiles"
    for form, data in dialect.address_forms.items():
        if data.auth not in dialect.auth:
            yield f"the address form {form} has the unknown auth {data.auth}"
    wanted = {
        "default_protocols": dialect.default_protocols if dialect.called else (),
        **{f"environment {source.name}": source.protocols for source in dialect.environment},
        **{f"vendor {word}": vendor.protocols for word, vendor in dialect.vendors.items()},
    }
    for where, protocols in wanted.items():
        for protocol in protocols:
            if protocol not in dialect.called:
                yield f"{where}: {protocol} is not called"
    for protocol in dialect.stored_protocols - dialect.served.keys():
        yield f"stored_protocols: {protocol} is not served"
