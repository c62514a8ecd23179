"""The wire shapes of every dialect, as JSON Schema (draft 2020-12) files in this package.

A schema's name is `<dialect>/<protocol>.<side>`, as in `databricks/chat.request`; sides are `request`, `reply`, `event`
and `error`. The file is the `documented` profile; another profile is an RFC 7396 merge patch next to it
(`chat.request.actual.json`), applied here and nowhere else, to the documented profile or to the one in `_BASES`. A
profile without a patch is the same as its base.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, TypeAlias, TypeVar

__all__ = [
    "DOCUMENTED",
    "Schema",
    "SchemaNotFound",
    "inherit_rows",
    "lineage",
    "load",
    "merge_patch",
    "names",
    "profiles",
]

Schema: TypeAlias = dict[str, Any]

DOCUMENTED = "documented"
_ROOT = files(__name__)

_BASES: Mapping[tuple[str, str], str] = {("mindie", "native"): "actual"}
"""(dialect, profile) -> the profile that it differs from, if that is not the documented one."""

_Row = TypeVar("_Row")


class SchemaNotFound(LookupError):
    """No schema of that name, or no such profile of it."""


@cache
def load(name: str, profile: str = DOCUMENTED) -> Schema:
    """The schema of that name in that profile. Shared: never alter what this returns.

    Raises SchemaNotFound for an unknown name.
    """
    if profile != DOCUMENTED:
        base, patch = load(name, _base(name.partition("/")[0], profile)), _read(f"{name}.{profile}.json")
        return base if patch is None else merge_patch(base, patch)
    schema = _read(f"{name}.json")
    if schema is None:
        raise SchemaNotFound(f"no schema {name!r}; there are: {', '.join(names())}")
    return schema


def lineage(dialect: str, profile: str) -> tuple[str, ...]:
    """The profile, its base, the base of that, and so on; the last is `documented`."""
    return (profile,) if profile == DOCUMENTED else (profile, *lineage(dialect, _base(dialect, profile)))


def inherit_rows(dialect: str, rows: Mapping[str, _Row]) -> dict[str, _Row]:
    """A table by profile, completed: a profile of `_BASES` without a row of its own gets that of its base."""
    known = [*rows, *(profile for one, profile in _BASES if one == dialect)]
    return {profile: next(rows[one] for one in lineage(dialect, profile) if one in rows) for profile in known}


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    """Every schema's name, sorted."""
    found = {
        f"{folder.name}/{file.name.removesuffix('.json')}"
        for folder in _ROOT.iterdir()
        if folder.is_dir()
        for file in folder.iterdir()
        if file.name.endswith(".json") and file.name.count(".") == 2
    }
    return tuple(sorted(found))


def profiles(name: str) -> tuple[str, ...]:
    """The profiles in which the schema differs from the documented one, and that one, which is the first."""
    dialect, _, stem = name.partition("/")
    found = {
        file.name.removeprefix(f"{stem}.").removesuffix(".json")
        for file in _ROOT.joinpath(dialect).iterdir()
        if file.name.startswith(f"{stem}.") and file.name.count(".") == 3
    }
    found |= {profile for (one, profile), base in _BASES.items() if one == dialect and base in found}
    return (DOCUMENTED, *sorted(found))


def _base(dialect: str, profile: str) -> str:
    return _BASES.get((dialect, profile), DOCUMENTED)


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7396: members of `patch` replace those of `target`, null removes. Neither argument is altered."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def _read(path: str) -> Schema | None:
    file = _ROOT.joinpath(path)
    return json.loads(file.read_text("utf-8")) if file.is_file() else None
