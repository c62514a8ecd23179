"""Providers that an engine answers for instead of an address: what they need, and what they cannot have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from .document import Document
from .litellm import judge_litellm, judge_targets
from .local import judge_local
from .shape import described, fragment

__all__ = ["judge_engines"]


class _Engine(NamedTuple):
    """`own` are the keys that no other provider has, `without` those that this one cannot have."""

    own: tuple[str, ...]
    without: tuple[str, ...]
    judge: Callable[[Document, str], None]


_OF_ADDRESSES = ("address", "api_key_file", "oauth", "proxy")
_ENGINES: Mapping[str, _Engine] = {
    "local": _Engine(
        ("model_dir", "device", "device_index", "threads", "slots", "queue", "context", "step_timeout"),
        (
            "dialect",
            "base_url",
            "api_key",
            "auth",
            "profile",
            "kind",
            "api_version",
            "headers",
            "tls",
            "pool",
            *_OF_ADDRESSES,
        ),
        judge_local,
    ),
    "litellm": _Engine(
        ("vendor", "parameters"),
        ("dialect", "profile", "auth", "kind", "api_version", "tls", "pool", *_OF_ADDRESSES),
        judge_litellm,
    ),
}


def judge_engines(document: Document) -> None:
    for name in document.mapping("providers"):
        word = document.find(("providers", name, "engine"))
        if word is None:
            _judge_addressed(document, name)
        for known, engine in _ENGINES.items():
            if word is None or word.value in _ENGINES.keys() - {known}:
                _refuse(document, name, engine.own, f"{{}} is for the engine {known} only")
        chosen = None if word is None else _ENGINES.get(str(word.value))
        if chosen is not None:
            _refuse(document, name, chosen.without, "{} is for addresses, which an engine has not")
            chosen.judge(document, name)
    judge_targets(document)


def _judge_addressed(document: Document, name: str) -> None:
    node = document.find(("providers", name))
    if node is None or not isinstance(node.value, dict):
        return
    for key in ("dialect", "base_url"):
        if key not in node.value:
            expected = described(fragment(("providers", name, key)))
            message = f'"{key}" is missing in providers.{name}'
            document.add(("providers", name), "missing-key", message, expected=expected, at_key=True)


def _refuse(document: Document, name: str, keys: tuple[str, ...], message: str) -> None:
    for key in keys:
        if key in document.mapping("providers", name):
            document.add(("providers", name, key), "wrong-engine", message.format(key), hint="remove it", at_key=True)
