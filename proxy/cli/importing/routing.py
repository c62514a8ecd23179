"""Aliases and fallbacks between the models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dragoman.adapters.paths import Path
from dragoman.proxy.config.document import Document
from dragoman.proxy.config.names import match
from dragoman.proxy.config.values import is_pattern

__all__ = ["add_aliases", "add_fallbacks"]


def add_aliases(document: Document, models: dict[str, Any]) -> None:
    """A model for each alias, with the same targets."""
    path = ("router_settings", "model_group_alias")
    for alias in document.mapping(*path):
        known = document.text(*path, alias) or document.text(*path, alias, "model")
        if known not in models or alias in models or not is_pattern(alias):
            _left(document, (*path, alias), f"the alias {alias} leads to no model of this file, or is one itself")
            continue
        models[alias] = {"targets": [dict(target) for target in models[known]["targets"]]}


def add_fallbacks(document: Document, models: dict[str, Any]) -> None:
    """Fallbacks, without those that would close a circle."""
    for section in ("router_settings", "litellm_settings"):
        for path, name, following in _pairs(document, (section, "fallbacks")):
            if name not in models or match(models, following) is None:
                _left(document, path, f"{name} or {following} is no model of this file")
            elif _leads(models, following, name):
                _left(document, path, f"a fallback of {name} to {following} would go in a circle")
            elif following not in (known := models[name].setdefault("fallbacks", [])):
                known.append(following)


def _pairs(document: Document, path: Path) -> Iterator[tuple[Path, str, str]]:
    for position, _ in enumerate(document.items(*path)):
        for name in document.mapping(*path, position):
            for index, _ in enumerate(document.items(*path, position, name)):
                place = (*path, position, name, index)
                following = document.text(*place)
                if following is None:
                    _left(document, place, "a fallback is a name here, without parameters of its own")
                else:
                    yield place, name, following


def _leads(models: dict[str, Any], start: str, end: str) -> bool:
    """Whether the fallbacks of one model reach another."""
    waiting, seen = [start], set()
    while waiting:
        name = match(models, waiting.pop())
        if name == end:
            return True
        if name is not None and name not in seen:
            seen.add(name)
            waiting += models[name].get("fallbacks", [])
    return False


def _left(document: Document, path: Path, message: str) -> None:
    document.add(path, "not-carried", message, severity="warning")
