"""Fixtures of the schema tests: validators, bodies from files, and walks over schemas and bodies."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Never, Protocol, TypeAlias

import jsonschema_rs
import pytest

from dragoman.contract.json_types import JsonValue
from dragoman.schemas import Schema, load

FIXTURES = Path(__file__).parent / "fixtures"
FILES = Path(__file__).resolve().parents[2] / "schemas"

JsonPath: TypeAlias = tuple[str | int, ...]


class Case(NamedTuple):
    """A body from a boundary table: `field` has a value that the schema allows (`good`) or not."""

    schema: str
    profile: str
    field: str
    body: Schema
    good: bool


def is_patch(name: str) -> bool:
    """Whether the documented schema is a patch of another schema."""
    return "x-base" in json.loads((FILES / f"{name}.json").read_text("utf-8"))


class Compile(Protocol):
    """Compiles a schema, with every remote reference refused."""

    def __call__(self, name: str, profile: str = "documented") -> jsonschema_rs.Draft202012Validator: ...


class FindErrors(Protocol):
    """Lists the errors of a body."""

    def __call__(self, name: str, body: object, profile: str = "documented") -> list[jsonschema_rs.ValidationError]: ...


class ReadFixture(Protocol):
    """Reads a JSON fixture by file name: a new copy each time."""

    def __call__(self, name: str) -> JsonValue: ...


class SpoilBody(Protocol):
    """Yields copies of a body with one value replaced or removed, each with the path of that value."""

    def __call__(self, body: object) -> Iterator[tuple[JsonPath, JsonValue]]: ...


class FindProperties(Protocol):
    """Yields every property that a schema declares, by its place in the file. Rules (if, then, not, ...) declare
    nothing."""

    def __call__(self, rule: object) -> Iterator[tuple[str, Schema]]: ...


def _refuse(uri: str) -> Never:
    raise AssertionError(f"{uri} was to be fetched")


@cache
def _compiled(name: str, profile: str = "documented") -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(load(name, profile), retriever=_refuse)


@pytest.fixture
def compiled() -> Compile:
    return _compiled


@pytest.fixture
def errors() -> FindErrors:
    def find(name: str, body: object, profile: str = "documented") -> list[jsonschema_rs.ValidationError]:
        return list(_compiled(name, profile).iter_errors(body))

    return find


@pytest.fixture
def fixture() -> ReadFixture:
    def read(name: str) -> JsonValue:
        return json.loads((FIXTURES / name).read_text("utf-8"))

    return read


@pytest.fixture
def declared() -> FindProperties:
    return _declared


def _declared(rule: object, place: str = "#") -> Iterator[tuple[str, Schema]]:
    if not isinstance(rule, dict):
        return
    for name, child in rule.get("properties", {}).items():
        yield f"{place}/{name}", child
        yield from _declared(child, f"{place}/{name}")
    for name, child in rule.get("$defs", {}).items():
        yield from _declared(child, f"{place}/$defs/{name}")
    for key in ("items", "additionalProperties"):
        yield from _declared(rule.get(key), f"{place}/{key}")


@pytest.fixture
def cases() -> list[Case]:
    """Every case of the boundary tables."""
    found = []
    tables = ("", ".responses", ".completions", ".embeddings", ".messages")
    for name in (f"boundaries{protocol}.json" for protocol in tables):
        table = json.loads((FIXTURES / name).read_text("utf-8"))
        for row in table["rows"]:
            for good in (True, False):
                for value in row["good" if good else "bad"]:
                    body = copy.deepcopy(table["base"]) | row.get("beside", {}) | {row["field"]: value}
                    found.append(Case(row["schema"], row["profile"], row["field"], body, good))
    return found


@pytest.fixture
def spoils() -> SpoilBody:
    return _spoils


_REPLACEMENTS: tuple[object, ...] = (None, "x", "", 7, -1, 0.5, [], {}, True)


def _spoils(body: object) -> Iterator[tuple[JsonPath, JsonValue]]:
    for path in _paths(body):
        for value in _REPLACEMENTS:
            changed, parent = _copy_with_parent(body, path)
            parent[path[-1]] = copy.deepcopy(value)
            yield path, changed
        changed, parent = _copy_with_parent(body, path)
        del parent[path[-1]]
        yield path, changed


def _paths(node: object, path: JsonPath = ()) -> Iterator[JsonPath]:
    children: Iterable[tuple[str | int, object]] = (
        node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    )
    for key, child in children:
        yield (*path, key)
        yield from _paths(child, (*path, key))


def _copy_with_parent(body: object, path: JsonPath) -> tuple[JsonValue, JsonValue]:
    """A copy of the body, and the object or list in it that has the path's last key."""
    copied: Any = copy.deepcopy(body)
    parent = copied
    for key in path[:-1]:
        parent = parent[key]
    return copied, parent
