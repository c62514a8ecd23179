"""How two configurations differ, without their secrets, and what a running process cannot change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any, TypeAlias

from dragoman.adapters.paths import Path, format_path

from .masks import is_secret, mask_secrets
from .models import Config
from .rules import SecretText

__all__ = ["keep_fixed_settings", "list_changes"]

_FIXED = ("host", "port", "admin_host", "admin_port", "tracing")
"""Settings of the server that only a restart changes; so are all of the store's."""
_MOST_SHOWN = 60  # characters of a value

_Values: TypeAlias = dict[str | int, Any]
_MISSING = object()


def keep_fixed_settings(old: Config, new: Config) -> tuple[Config, list[str]]:
    """The new configuration with the old values of what a running process cannot change, and the names of the settings
    that would have changed."""
    kept = {name: value for name in _FIXED if (value := getattr(old.server, name)) != getattr(new.server, name)}
    names = [f"server.{name}" for name in kept]
    names += [f"store.{name}" for name in vars(old.store) if _differ(old.store, new.store, name)]
    server = replace(new.server, **kept)
    return replace(new, server=server, store=old.store), names


def list_changes(old: Config, new: Config) -> list[str]:
    """What differs, each as `models.fast.balance: "weighted" -> "sticky"`. Of secrets only the place is named."""
    return list(_compare((), asdict(old), asdict(new)))


def _differ(one: object, other: object, name: str) -> bool:
    return bool(getattr(one, name) != getattr(other, name))


def _compare(path: Path, old: Any, new: Any) -> Iterator[str]:
    if old == new:
        return
    before, after = _name_parts(old), _name_parts(new)
    if before is None or after is None:
        yield f"{format_path(path)}: {_describe(path, old, new)}"
        return
    for name in dict.fromkeys((*before, *after)):
        yield from _compare((*path, name), before.get(name, _MISSING), after.get(name, _MISSING))


def _name_parts(value: Any) -> _Values | None:
    """The parts of a value that are compared by themselves: those of a mapping, and of a list of mappings by their
    names, else by their positions."""
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, list) and all(isinstance(one, dict) for one in value):
        return {one.get("name", position): one for position, one in enumerate(value)}
    return None


def _describe(path: Path, old: Any, new: Any) -> str:
    if old is _MISSING or old is None:
        return "added" if old is _MISSING or _is_hidden(path, new) else f"null -> {_show(new)}"
    if new is _MISSING or new is None:
        return "removed" if new is _MISSING or _is_hidden(path, old) else f"{_show(old)} -> null"
    if _is_hidden(path, old) or _is_hidden(path, new):
        return "changed"
    return f"{_show(old)} -> {_show(new)}"


def _is_hidden(path: Path, value: Any) -> bool:
    """Whether a value may be a secret. Of client keys only the texts themselves are, which have a type of their own."""
    if isinstance(value, SecretText) or path[-1] == "key_hash":
        return True
    return path[0] != "keys" and isinstance(value, str) and is_secret(path, value)


def _show(value: Any) -> str:
    text = json.dumps(value, default=_describe_type, ensure_ascii=False)
    return mask_secrets(text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "...")


def _describe_type(value: object) -> str:
    """For values that JSON lacks; a secret shows nothing of itself."""
    return "***" if isinstance(value, SecretText) else str(value)
