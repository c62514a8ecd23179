"""Checks of providers that the library litellm calls."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from .document import Document

__all__ = ["INSTALL", "NEWEST", "OLDEST", "check_litellm", "check_litellm_targets", "refuse_litellm_file"]

OLDEST, NEWEST = (1, 106, 2), (1, 109)
"""The tested versions of litellm: from OLDEST up to every release that begins with NEWEST. The older 1.82.7 and 1.82.8
steal credentials."""

_COMPROMISED = (1, 107, 0)
"""A release between them that an attacker published; PyPI has withdrawn it, mirrors and caches may have it."""

INSTALL = (
    "run in the checkout: uv run --no-default-groups --extra litellm dragoman serve,"
    " or for another environment: uv pip install '.[litellm]'"
)
"""How to get the extra `litellm`. dragoman is not on PyPI."""


def refuse_litellm_file(document: Document) -> None:
    """Raise ConfigErrors, with the command that converts it, for a configuration of the LiteLLM proxy."""
    if document.items("model_list") and not document.mapping("models"):
        output = "dragoman.yaml" if Path(document.file).name != "dragoman.yaml" else "converted.yaml"
        hint = f"convert it: dragoman import litellm {shlex.quote(document.file)} --output {output}"
        document.problems.clear()  # they are about dragoman's own configuration
        span = document.find(("model_list",))
        message = "this is a configuration of the LiteLLM proxy"
        raise document.fatal_error(span.key if span else None, "litellm-file", message, hint=hint)


def check_litellm(document: Document, name: str) -> None:
    """If a model uses the provider: add a problem unless a tested version of litellm is installed."""
    from importlib.metadata import PackageNotFoundError, version

    if _is_used(document, name):
        path = ("providers", name, "engine")
        try:
            installed = version("litellm")
        except PackageNotFoundError:
            document.add_problem(path, "missing-extra", "litellm is not installed", hint=INSTALL)
            return
        if not _is_tested(installed):
            expected = f"{_dotted(OLDEST)} to {_dotted(NEWEST)}.x, without {_dotted(_COMPROMISED)}"
            message = f"litellm {installed} is installed; this version of dragoman was not tested with it"
            document.add_problem(path, "untested-version", message, expected=expected, hint=INSTALL)


def check_litellm_targets(document: Document) -> None:
    """Add a problem for each target over litellm without a vendor."""
    for model in document.mapping("models"):
        for position, _ in enumerate(document.items("models", model, "targets")):
            _check_target(document, ("models", model, "targets", position))


def _check_target(document: Document, path: tuple[str | int, ...]) -> None:
    """A target needs a vendor: otherwise a client that chooses the model's name would choose the provider too."""
    provider = document.text(*path, "provider") or ""
    engine = document.text("providers", provider, "engine")
    if engine != "litellm" or document.text("providers", provider, "vendor"):
        return
    vendor, _, name = (document.text(*path, "model") or "").partition("/")
    if not name or "*" in vendor:
        message = f"the target needs a vendor, because the provider {provider} has none"
        hint = f"write model: anthropic/claude-sonnet-4-5, or set vendor in providers.{provider}"
        document.add_problem((*path, "model"), "no-vendor", message, expected="VENDOR/MODEL", hint=hint)


def _is_used(document: Document, provider: str) -> bool:
    return any(
        document.text("models", model, "targets", position, "provider") == provider
        for model in document.mapping("models")
        for position, _ in enumerate(document.items("models", model, "targets"))
    )


def _is_tested(installed: str) -> bool:
    release = tuple(int(part) for part in re.findall(r"\d+", installed)[:3])
    return release >= OLDEST and release[: len(NEWEST)] <= NEWEST and release != _COMPROMISED


def _dotted(release: tuple[int, ...]) -> str:
    return ".".join(map(str, release))
