"""What the schema tests share: compiled judges, and walks over a schema written in this project's style."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from dragoman.schemas import load

FIXTURES = Path(__file__).parent / "fixtures"


def _refuse(uri: str) -> Any:
    raise AssertionError(f"{uri} was to be fetched")


@cache
def _compiled(name: str, profile: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(load(name, profile), retriever=_refuse)


@pytest.fixture
def compiled() -> Callable[[str, str], jsonschema_rs.Draft202012Validator]:
    """A schema by name and profile, compiled with every remote reference refused."""
    return _compiled


@pytest.fixture
def errors() -> Callable[..., list[jsonschema_rs.ValidationError]]:
    """What is wrong with a body."""

    def check(name: str, body: Any, profile: str = "documented") -> list[jsonschema_rs.ValidationError]:
        return list(_compiled(name, profile).iter_errors(body))

    return check


@pytest.fixture
def fixture() -> Callable[[str], Any]:
    """A JSON fixture by file name, a copy of its own each time."""

    def read(name: str) -> Any:
        return json.loads((FIXTURES / name).read_text("utf-8"))

    return read


@pytest.fixture
def declared() -> Callable[[Any], Iterator[tuple[str, dict[str, Any]]]]:
    """Every property that a schema declares, by its place in the file. Rules (if, then, not, ...) declare nothing."""
    return _declared


def _declared(rule: Any, place: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
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
def cases() -> list[tuple[str, str, str, Any, bool]]:
    """The boundary tables, spread out: schema, profile, field, body, whether the body is good."""
    found = []
    tables = ("", ".responses", ".completions", ".embeddings")
    for name in (f"boundaries{protocol}.json" for protocol in tables):
        table = json.loads((FIXTURES / name).read_text("utf-8"))
        for row in table["rows"]:
            for good in (True, False):
                for value in row["good" if good else "bad"]:
                    body = copy.deepcopy(table["base"]) | row.get("beside", {}) | {row["field"]: value}
                    found.append((row["schema"], row["profile"], row["field"], body, good))
    return found


@pytest.fixture
def spoils() -> Callable[[Any], Iterator[tuple[tuple[Any, ...], Any]]]:
    """Copies of a body with one value spoilt or left out, each with the path of that value."""
    return _spoils


def _spoils(body: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    for path in _paths(body):
        for value in (None, "x", "", 7, -1, 0.5, [], {}, True):
            yield path, _changed(body, path, lambda parent, key, value=value: parent.__setitem__(key, value))
        yield path, _changed(body, path, lambda parent, key: parent.__delitem__(key))


def _paths(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield (*path, key)
        yield from _paths(child, (*path, key))


def _changed(body: Any, path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    copied = copy.deepcopy(body)
    parent = copied
    for key in path[:-1]:
        parent = parent[key]
    change(parent, path[-1])
    return copied
