"""Providers that an engine answers for instead of an address: what they need, and what they cannot have."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version

from .document import Document
from .shape import described, fragment

__all__ = ["NEWEST", "OLDEST", "judge_engines"]

OLDEST, NEWEST = (1, 106, 2), (1, 109)
"""The versions of litellm that this was tested with: from the first, up to all that begin with the second. Among those
before it are 1.82.7 and 1.82.8, which steal credentials."""

_INSTALL = "pip install 'dragoman[litellm]'"
_OF_LITELLM = ("vendor", "parameters")
_OF_ADDRESSES = (
    *("dialect", "profile", "auth", "kind", "address", "api_version"),
    *("api_key_file", "oauth", "proxy", "tls", "pool"),
)


def judge_engines(document: Document) -> None:
    for name in document.mapping("providers"):
        if document.find(("providers", name, "engine")) is None:
            _judge_addressed(document, name)
        else:
            _judge_litellm(document, name)
    for model in document.mapping("models"):
        for position, _ in enumerate(document.items("models", model, "targets")):
            _judge_target(document, ("models", model, "targets", position))


def _judge_addressed(document: Document, name: str) -> None:
    known = document.mapping("providers", name)
    for key in ("dialect", "base_url"):
        if key not in known:
            expected = described(fragment(("providers", name, key)))
            message = f'"{key}" is missing in providers.{name}'
            document.add(("providers", name), "missing-key", message, expected=expected, at_key=True)
    for key in _OF_LITELLM:
        if key in known:
            message = f"{key} is for the engine litellm only"
            document.add(("providers", name, key), "wrong-engine", message, hint="remove it", at_key=True)


def _judge_litellm(document: Document, name: str) -> None:
    for key in _OF_ADDRESSES:
        if key in document.mapping("providers", name):
            message = f"{key} is not for the engine litellm"
            document.add(("providers", name, key), "wrong-engine", message, hint="remove it", at_key=True)
    if _is_used(document, name):
        path = ("providers", name, "engine")
        try:
            found = version("litellm")
        except PackageNotFoundError:
            document.add(path, "missing-extra", "litellm is not installed", hint=_INSTALL)
            return
        if not _is_tested(found):
            expected = f"{_dotted(OLDEST)} to {_dotted(NEWEST)}.x"
            message = f"litellm {found} is installed, which this version of dragoman was not tested with"
            document.add(path, "untested-version", message, expected=expected, hint=_INSTALL)


def _judge_target(document: Document, path: tuple[str | int, ...]) -> None:
    """Without a vendor, a client that chose the model's name would choose the provider too."""
    provider = document.text(*path, "provider") or ""
    engine = document.text("providers", provider, "engine")
    if engine is None or document.text("providers", provider, "vendor"):
        return
    vendor, _, name = (document.text(*path, "model") or "").partition("/")
    if not name or "*" in vendor:
        message = f"the target has to say the vendor: the provider {provider} has none"
        hint = f"write model: anthropic/claude-sonnet-4-5, or set vendor in providers.{provider}"
        document.add((*path, "model"), "no-vendor", message, expected="VENDOR/MODEL", hint=hint)


def _is_used(document: Document, provider: str) -> bool:
    return any(
        document.text("models", model, "targets", position, "provider") == provider
        for model in document.mapping("models")
        for position, _ in enumerate(document.items("models", model, "targets"))
    )


def _is_tested(found: str) -> bool:
    release = tuple(int(part) for part in re.findall(r"\d+", found)[:3])
    return release >= OLDEST and release[: len(NEWEST)] <= NEWEST


def _dotted(release: tuple[int, ...]) -> str:
    return ".".join(map(str, release))
