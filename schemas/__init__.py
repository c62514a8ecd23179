"""The wire shapes of every dialect, as JSON Schema (draft 2020-12) files in the folders of this package.

A schema's name is `<dialect>/<protocol>.<side>`, as in `databricks/chat.request`; sides are `request`, `reply`, `event`
and `error`. The file `chat.request.json` is the `documented` profile. Another profile is an RFC 7396 merge patch in the
same folder (`chat.request.actual.json`), which only this module applies: to the documented profile, or to the one in
`_BASES`. A file with `x-base` is a patch of the schema that it names, in the same profile: the service passes requests
on to another vendor, or two protocols have the same shape. If it is the documented one, it is so in every profile that
has no patch. Any other profile without a patch equals its base. `load("config")` is the schema of the configuration
file.

The files in `models` are no schemas: they hold facts about the models of one vendor each. `load("models")` is their
schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

__all__ = [
    "DOCUMENTED",
    "Schema",
    "SchemaNotFound",
    "all_profiles",
    "find_base",
    "inherit_rows",
    "lineage",
    "load",
    "merge_patch",
    "model_files",
    "names",
    "profiles",
]

Schema: TypeAlias = dict[str, Any]
"""A JSON Schema as plain JSON values."""

DOCUMENTED = "documented"
_ROOT = Path(__file__).parent

_BASES: Mapping[tuple[str, str], str] = {("mindie", "native"): "actual"}
"""(dialect, profile) -> the profile that it differs from, if that is not the documented one."""

_Row = TypeVar("_Row")


class SchemaNotFound(LookupError):
    """There is no schema with this name. The text lists the known names."""


@cache
def load(name: str, profile: str = DOCUMENTED) -> Schema:
    """Load a schema in a profile; an unknown profile is the documented one.

    `name` is `<dialect>/<protocol>.<side>`, or `config`. The result is a JSON object that all callers share: never
    alter it. Raises SchemaNotFound for an unknown name.
    """
    schema = _read(f"{name}.json")
    if schema is None:
        raise _not_found(name)
    patch = None if profile == DOCUMENTED else _read(f"{name}.{profile}.json")
    if patch is None and "x-base" in schema:
        patch = schema
    if patch is not None and (other := patch.pop("x-base", None)) is not None:
        merged: Schema = merge_patch(load(other, profile), patch)
        return merged
    if profile == DOCUMENTED:
        return schema
    base = load(name, _base(name.partition("/")[0], profile))
    changed: Schema = base if patch is None else merge_patch(base, patch)
    return changed


def find_base(name: str) -> tuple[str, list[str]] | None:
    """Find the schema that a documented one is a patch of, and the properties that the patch removes; None if it is no
    patch."""
    schema = _read(f"{name}.json") or {}
    removed = [key for key, rule in schema.get("properties", {}).items() if rule is None]
    return (schema["x-base"], removed) if "x-base" in schema else None


def lineage(dialect: str, profile: str) -> tuple[str, ...]:
    """The profile, its base, the base of that, and so on; the last is `documented`."""
    return (profile,) if profile == DOCUMENTED else (profile, *lineage(dialect, _base(dialect, profile)))


def inherit_rows(dialect: str, rows: Mapping[str, _Row]) -> dict[str, _Row]:
    """A table by profile, completed: a profile of `_BASES` without a row of its own gets that of its base."""
    known = [*rows, *(profile for one, profile in _BASES if one == dialect)]
    return {profile: next(rows[one] for one in lineage(dialect, profile) if one in rows) for profile in known}


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    """The names of all dialects' schemas, as `<dialect>/<protocol>.<side>`, sorted. `config` is not among them."""
    found = {
        f"{folder.name}/{file.name.removesuffix('.json')}"
        for folder in _ROOT.iterdir()
        if folder.is_dir()
        for file in folder.iterdir()
        if file.name.endswith(".json") and file.name.count(".") == 2
    }
    return tuple(sorted(found))


@lru_cache(maxsize=1)
def model_files() -> tuple[str, ...]:
    """The names of the files with facts about models, as `models/<vendor>`, sorted; `load` loads them too."""
    folder = _ROOT.joinpath("models")
    return tuple(sorted(f"models/{file.name.removesuffix('.json')}" for file in folder.iterdir()))


def profiles(name: str) -> tuple[str, ...]:
    """The profiles of a schema that have a file, `documented` first, then sorted.

    `name` is one of `names()`. Raises SchemaNotFound for any other.
    """
    if name not in names():
        raise _not_found(name)
    return (DOCUMENTED, *_patches(name))


def _patches(name: str) -> list[str]:
    """The profiles of a known schema that are merge patches, sorted."""
    dialect, _, stem = name.partition("/")
    found = {
        file.name.removeprefix(f"{stem}.").removesuffix(".json")
        for file in _ROOT.joinpath(dialect).iterdir()
        if file.name.startswith(f"{stem}.") and file.name.count(".") == 3
    }
    found |= {profile for (one, profile), base in _BASES.items() if one == dialect and base in found}
    return sorted(found)


@lru_cache(maxsize=1)
def all_profiles() -> tuple[str, ...]:
    """Every profile that some schema has, `documented` first."""
    return tuple(dict.fromkeys((DOCUMENTED, *(profile for name in names() for profile in _patches(name)))))


def _base(dialect: str, profile: str) -> str:
    return _BASES.get((dialect, profile), DOCUMENTED)


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply an RFC 7396 merge patch: members of `patch` replace those of `target`, null removes a member.

    Both are any JSON values. Neither is altered; the result may share parts with them.
    """
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def _not_found(name: str) -> SchemaNotFound:
    return SchemaNotFound(f"no schema {name!r}; there are: {', '.join(names())}")


def _read(path: str) -> Schema | None:
    file = _ROOT.joinpath(path)
    return json.loads(file.read_text("utf-8")) if file.is_file() else None
