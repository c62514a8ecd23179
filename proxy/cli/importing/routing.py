"""Conversion of aliases and fallbacks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dragoman.adapters.paths import Path
from dragoman.proxy.config.document import Document
from dragoman.proxy.config.names import match
from dragoman.proxy.config.values import is_model_pattern

__all__ = ["add_aliases", "add_fallbacks"]


def add_aliases(document: Document, models: dict[str, Any]) -> None:
    """Add a model for each alias, with the targets of the model it names."""
    path = ("router_settings", "model_group_alias")
    _check_shape(document, path, dict)
    for alias in document.mapping(*path):
        known = document.text(*path, alias) or document.text(*path, alias, "model")
        if known not in models or alias in models or not is_model_pattern(alias):
            _add_warning(
                document, (*path, alias), f"the alias {alias} names no model of this file, or is itself the name of one"
            )
            continue
        models[alias] = {"targets": [dict(target) for target in models[known]["targets"]]}


_REASONS = {"context_window_fallbacks": "context_length", "content_policy_fallbacks": "content_filter"}


def add_fallbacks(document: Document, models: dict[str, Any]) -> None:
    """Add the fallbacks, except those that would close a circle."""
    for section in ("router_settings", "litellm_settings"):
        for setting, reason in _REASONS.items():
            for path, name, following in _list_fallbacks(document, (section, setting)):
                if name not in models or match(models, following) is None:
                    _add_warning(document, path, f"{name} or {following} is not a model of this file")
                else:
                    models[name].setdefault("fallbacks_for", {}).setdefault(reason, []).append(following)
        for path, name, following in _list_fallbacks(document, (section, "fallbacks")):
            if name not in models or match(models, following) is None:
                _add_warning(document, path, f"{name} or {following} is not a model of this file")
            elif _leads_to(models, following, name):
                _add_warning(document, path, f"a fallback of {name} to {following} would form a cycle")
            elif following not in (known := models[name].setdefault("fallbacks", [])):
                known.append(following)


def _list_fallbacks(document: Document, path: Path) -> Iterator[tuple[Path, str, str]]:
    """Each fallback: its path, the model, and the model that follows. Add a warning for each of another shape."""
    _check_shape(document, path, list)
    for position, _ in enumerate(document.items(*path)):
        _check_shape(document, (*path, position), dict)
        for name in document.mapping(*path, position):
            _check_shape(document, (*path, position, name), list)
            for index, _ in enumerate(document.items(*path, position, name)):
                place = (*path, position, name, index)
                following = document.text(*place)
                if following is None:
                    _add_warning(document, place, "a fallback can only be the name of a model, without parameters")
                else:
                    yield place, name, following


def _check_shape(document: Document, path: Path, shape: type[list[Any] | dict[str, Any]]) -> None:
    node = document.find(path)
    if node is not None and node.value is not None and not isinstance(node.value, shape):
        expected = "a list" if shape is list else "a mapping"
        _add_warning(document, path, f"this is not converted, because it is not {expected}")


def _leads_to(models: dict[str, Any], start: str, end: str) -> bool:
    """True if the fallbacks of the model `start` lead to the model `end`."""
    waiting, seen = [start], set()
    while waiting:
        name = match(models, waiting.pop())
        if name == end:
            return True
        if name is not None and name not in seen:
            seen.add(name)
            waiting += models[name].get("fallbacks", [])
    return False


def _add_warning(document: Document, path: Path, message: str) -> None:
    document.add_problem(path, "not-carried", message, severity="warning")
