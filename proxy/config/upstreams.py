"""Providers: do the values of each fit together, and its dialect?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from dragoman.adapters.dialect import Dialect
from dragoman.adapters.litellm import LITELLM
from dragoman.adapters.registry import dialects

from .document import Document, did_you_mean
from .models import Timeouts
from .problems import Severity
from .urls import APPENDED, is_loopback, overlap
from .values import parse_seconds

__all__ = ["judge_providers", "judge_timeouts", "place_files"]

_ONLY = {"kind": "databricks", "api_version": "azure"}


def judge_providers(document: Document, insecure: bool) -> None:
    for name in document.mapping("providers"):
        dialect = dialects.get(document.text("providers", name, "dialect") or "")
        if dialect is not None:
            _judge_dialect(document, name, dialect)
            _judge_address(document, name, dialect.name)
        called = LITELLM if document.text("providers", name, "engine") == "litellm" else dialect
        if called is not None:
            _judge_protocols(document, name, called)
        _judge_plain_http(document, name, insecure)
        if document.mapping("providers", name, "tls").keys() & {"cert", "key"} == {"key"}:
            message = "a private key without a certificate"
            document.add(
                ("providers", name, "tls", "key"), "tls-pair", message, hint="add cert: the certificate's file"
            )
        judge_timeouts(document, "providers", name, "timeouts")


def _judge_dialect(document: Document, name: str, dialect: Dialect) -> None:
    for key, owner in _ONLY.items():
        if document.text("providers", name, key) and dialect.name != owner:
            message = f"{key} is for the dialect {owner} only; this provider's is {dialect.name}"
            document.add(("providers", name, key), "wrong-dialect", message, hint="remove it", at_key=True)
    for key, known in (("profile", dialect.profiles), ("auth", tuple(dialect.auth))):
        chosen = document.text("providers", name, key)
        if chosen and chosen not in known:
            node = document.find(("providers", name, key))
            message = f"the dialect {dialect.name} has no {key} {node.shown if node else chosen}"
            hint = did_you_mean(chosen, known)
            document.add(("providers", name, key), f"unknown-{key}", message, expected=_one_of(known), hint=hint)


def _judge_protocols(document: Document, name: str, dialect: Dialect) -> None:
    node = document.find(("providers", name, "protocols"))
    known = tuple(dialect.called)
    for i, item in enumerate(node.value if node is not None and isinstance(node.value, list) else ()):
        if isinstance(item.value, str) and item.value not in known:
            what = f"the engine {dialect.name}" if dialect is LITELLM else f"the dialect {dialect.name}"
            message = f"providers of {what} are not called with {item.shown}"
            path = ("providers", name, "protocols", i)
            document.add(path, "unknown-protocol", message, expected=_one_of(known))


def _judge_address(document: Document, name: str, dialect: str) -> None:
    path = ("providers", name, "base_url")
    url = document.text(*path)
    if url is None:
        return
    shorter = overlap(dialect, url)
    if shorter is not None:
        message = f"the address ends with what the dialect {dialect} appends itself: {APPENDED[dialect]}"
        message = "the address ends with /v1 twice" if url.rstrip("/").endswith("/v1/v1") else message
        document.add(path, "bad-url", message, hint=_instead(document, path, shorter))
    elif dialect == "openai" and url.startswith("http") and url.partition("//")[2].strip("/").count("/") == 0:
        message = f"{APPENDED[dialect]} is appended to this address as it stands; most servers want /v1 before it"
        hint = _instead(document, path, f"{url.rstrip('/')}/v1")
        document.add(path, "no-version", message, hint=hint, severity="warning")


def _instead(document: Document, path: tuple[str, ...], url: str) -> str:
    """The better address, unless a variable is part of it: its value is not for showing."""
    node = document.find(path)
    return "" if node is None or node.raw is not None or "@" in url else f"write {url}"


def _judge_plain_http(document: Document, name: str, insecure: bool) -> None:
    url = document.text("providers", name, "base_url") or ""
    if not url.startswith("http://") or document.find(("providers", name, "api_key")) is None:
        return
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return  # the address itself is complained about
    if host and not is_loopback(host):
        message = "the key would travel unencrypted: http to another machine"
        hint = "use https, or start with --insecure where the network between is trusted"
        severity: Severity = "warning" if insecure else "error"
        document.add(("providers", name, "base_url"), "plain-http", message, hint=hint, severity=severity)


def judge_timeouts(document: Document, *path: str) -> None:
    """A wait that is set has to fit into the total, set or not."""
    total = _seconds(document, "total", *path)
    for name in document.mapping(*path).keys() & Timeouts.model_fields.keys():
        value = _seconds(document, name, *path)
        if total is not None and value is not None and value > total:
            message = f"{name} ({value:g}s) is longer than total ({total:g}s)"
            hint = f"raise total, or lower {name}"
            document.add((*path, name), "conflicting-timeouts", message, hint=hint)


def _seconds(document: Document, name: str, *path: str) -> float | None:
    if document.find((*path, name)) is None:
        return float(Timeouts.model_fields[name].default)
    text = document.text(*path, name)
    return None if text is None else parse_seconds(text)


def place_files(document: Document, folder: Path) -> None:
    """Make the paths of TLS files absolute, and see that they can be read."""
    for path in _tls_paths(document):
        text, node = document.text(*path), document.find(path)
        if not text or node is None:
            continue
        file = folder / text
        node.value = str(file.absolute())
        try:
            with file.open("rb") as stream:
                stream.read(1)
        except OSError as error:
            shown = node.shown if node.raw else str(file)
            document.add(path, "unreadable", f"cannot read {shown}: {error.strerror}")


def _tls_paths(document: Document) -> Iterator[tuple[str, ...]]:
    for name in document.mapping("providers"):
        for key in ("ca", "cert", "key"):
            yield ("providers", name, "tls", key)


def _one_of(known: tuple[str, ...]) -> str:
    return f"one of: {', '.join(known)}"
