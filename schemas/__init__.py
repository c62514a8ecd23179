"""The wire shapes of every dialect, as JSON Schema (draft 2020-12) files beside this module.

A schema's name is `<dialect>/<protocol>.<side>`, as in `databricks/chat.request`; sides are `request`, `reply`, `event`
and `error`. The file is the `documented` profile; another profile is an RFC 7396 merge patch beside it
(`chat.request.actual.json`), applied here and nowhere else. Where there is no patch the profile is the documented one.
"""

from __future__ import annotations

import json
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, TypeAlias

__all__ = ["DOCUMENTED", "Schema", "SchemaNotFound", "all_profiles", "load", "merge_patch", "names", "profiles"]

Schema: TypeAlias = dict[str, Any]

DOCUMENTED = "documented"
_ROOT = files(__name__)


class SchemaNotFound(LookupError):
    """No schema of that name, or no such profile of it."""


@cache
def load(name: str, profile: str = DOCUMENTED) -> Schema:
    """The schema of that name in that profile. Shared: never alter what this returns.

    Raises SchemaNotFound for an unknown name.
    """
    schema = _read(f"{name}.json")
    if schema is None:
        raise SchemaNotFound(f"no schema {name!r}; there are: {', '.join(names())}")
    patch = None if profile == DOCUMENTED else _read(f"{name}.{profile}.json")
    return schema if patch is None else merge_patch(schema, patch)


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
    """The profiles that the schema has a file for, `documented` first."""
    dialect, _, stem = name.partition("/")
    found = [
        file.name.removeprefix(f"{stem}.").removesuffix(".json")
        for file in _ROOT.joinpath(dialect).iterdir()
        if file.name.startswith(f"{stem}.") and file.name.count(".") == 3
    ]
    return (DOCUMENTED, *sorted(found))


@lru_cache(maxsize=1)
def all_profiles() -> tuple[str, ...]:
    """Every profile that some schema has a file for, `documented` first."""
    return tuple(dict.fromkeys(profile for name in names() for profile in profiles(name)))


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
