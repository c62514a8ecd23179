"""Checks of a provider's keys against its kind: the address of a dialect, or an engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from .document import Document
from .litellm import check_litellm, check_litellm_targets
from .local import check_local
from .validation import describe_schema, schema_at

__all__ = ["check_engines"]


class _Engine(NamedTuple):
    """`own_keys` are allowed for this engine only, `address_keys` for providers with an address only."""

    own_keys: tuple[str, ...]
    address_keys: tuple[str, ...]
    judge: Callable[[Document, str], None]


_ADDRESS_KEYS = ("address", "api_key_file", "oauth", "proxy")
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
            *_ADDRESS_KEYS,
        ),
        check_local,
    ),
    "litellm": _Engine(
        ("vendor", "parameters"),
        ("dialect", "profile", "auth", "kind", "api_version", "tls", "pool", *_ADDRESS_KEYS),
        check_litellm,
    ),
}


def check_engines(document: Document) -> None:
    """Add the problems of keys that a provider needs, or cannot have, because of its `engine`."""
    for name in document.mapping("providers"):
        engine = document.find(("providers", name, "engine"))
        if engine is None:
            _check_addressed(document, name)
        for other, rules in _ENGINES.items():
            if engine is None or engine.value in _ENGINES.keys() - {other}:
                _reject_keys(document, name, rules.own_keys, f"{{}} is for the engine {other} only")
        chosen = None if engine is None else _ENGINES.get(str(engine.value))
        if chosen is not None:
            _reject_keys(document, name, chosen.address_keys, "{} is for providers with an address, not for engines")
            chosen.judge(document, name)
    check_litellm_targets(document)


def _check_addressed(document: Document, name: str) -> None:
    node = document.find(("providers", name))
    if node is None or not isinstance(node.value, dict):
        return
    for key in ("dialect", "base_url"):
        if key not in node.value:
            expected = describe_schema(schema_at(("providers", name, key)))
            message = f'"{key}" is missing in providers.{name}'
            document.add_problem(("providers", name), "missing-key", message, expected=expected, at_key=True)


def _reject_keys(document: Document, name: str, keys: tuple[str, ...], message: str) -> None:
    for key in keys:
        if key in document.mapping("providers", name):
            document.add_problem(
                ("providers", name, key), "wrong-engine", message.format(key), hint="remove it", at_key=True
            )
