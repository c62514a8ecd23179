"""Providers that litellm answers for."""

from __future__ import annotations

import re

from .document import Document

__all__ = ["INSTALL", "NEWEST", "OLDEST", "judge_litellm", "judge_targets"]

OLDEST, NEWEST = (1, 106, 2), (1, 109)
"""The versions of litellm that this was tested with: from the first, up to all that begin with the second. Among those
before it are 1.82.7 and 1.82.8, which steal credentials."""

INSTALL = "uv pip install 'dragoman[litellm]', in a checkout uv run --no-default-groups --extra litellm dragoman serve"


def judge_litellm(document: Document, name: str) -> None:
    from importlib.metadata import PackageNotFoundError, version

    if _is_used(document, name):
        path = ("providers", name, "engine")
        try:
            found = version("litellm")
        except PackageNotFoundError:
            document.add(path, "missing-extra", "litellm is not installed", hint=INSTALL)
            return
        if not _is_tested(found):
            expected = f"{_dotted(OLDEST)} to {_dotted(NEWEST)}.x"
            message = f"litellm {found} is installed, which this version of dragoman was not tested with"
            document.add(path, "untested-version", message, expected=expected, hint=INSTALL)


def judge_targets(document: Document) -> None:
    for model in document.mapping("models"):
        for position, _ in enumerate(document.items("models", model, "targets")):
            _judge_target(document, ("models", model, "targets", position))


def _judge_target(document: Document, path: tuple[str | int, ...]) -> None:
    """Without a vendor, a client that chose the model's name would choose the provider too."""
    provider = document.text(*path, "provider") or ""
    engine = document.text("providers", provider, "engine")
    if engine != "litellm" or document.text("providers", provider, "vendor"):
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
