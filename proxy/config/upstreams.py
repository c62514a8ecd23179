"""Checks of providers: their values against each other and against their dialect."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from dragoman.adapters.dialect import Dialect
from dragoman.adapters.litellm import LITELLM
from dragoman.adapters.registry import dialects

from .document import Document, did_you_mean
from .keyfile import BadKeyFile, read_key
from .models import Timeouts
from .problems import Severity
from .urls import APPENDED, is_loopback, overlap
from .values import parse_seconds

__all__ = ["judge_providers", "judge_timeouts", "resolve_files"]

_ONLY = {"kind": "databricks", "api_version": "azure", "address": "openai"}
_ELSE = {"api_version": " and the address azure-openai"}
_CREDENTIALS = ("api_key", "api_key_file", "oauth")
_KEY_FILES = (("api_key_file",), ("oauth", "client_secret_file"))
_FILES = (("tls", "ca"), ("tls", "cert"), ("tls", "key"), ("oauth", "ca"), *_KEY_FILES)


def judge_providers(document: Document, insecure: bool) -> None:
    for name in document.mapping("providers"):
        dialect = dialects.get(document.text("providers", name, "dialect") or "")
        if dialect is not None:
            _judge_dialect(document, name, dialect)
            _judge_version(document, name)
            _judge_address(document, name, document.text("providers", name, "address") or dialect.name)
        called = LITELLM if document.text("providers", name, "engine") == "litellm" else dialect
        if called is not None:
            _judge_protocols(document, name, called)
        _judge_credentials(document, name)
        _judge_plain_http(document, name, insecure)
        if document.mapping("providers", name, "tls").keys() & {"cert", "key"} == {"key"}:
            message = "a private key without a certificate"
            document.add(
                ("providers", name, "tls", "key"), "tls-pair", message, hint="add cert: the certificate's file"
            )
        judge_timeouts(document, "providers", name, "timeouts")


def _judge_dialect(document: Document, name: str, dialect: Dialect) -> None:
    versioned = document.text("providers", name, "address") in dialect.addresses
    for key, owner in _ONLY.items():
        if key == "api_version" and versioned:
            continue
        if document.text("providers", name, key) and dialect.name != owner:
            message = f"{key} is for the dialect {owner}{_ELSE.get(key, '')} only; this provider's is {dialect.name}"
            document.add(("providers", name, key), "wrong-dialect", message, hint="remove it", at_key=True)
    for key, known in (("profile", dialect.profiles), ("auth", tuple(dialect.auth))):
        chosen = document.text("providers", name, key)
        if chosen and chosen not in known:
            node = document.find(("providers", name, key))
            message = f"the dialect {dialect.name} has no {key} {node.source_text if node else chosen}"
            hint = did_you_mean(chosen, known)
            document.add(("providers", name, key), f"unknown-{key}", message, expected=_one_of(known), hint=hint)


def _judge_version(document: Document, name: str) -> None:
    path = ("providers", name, "address")
    if document.text(*path) == "azure-openai" and document.find(("providers", name, "api_version")) is None:
        message = '"api_version" is missing: the address azure-openai needs one'
        hint = "as in api_version: 2024-10-21; responses need 2025-03-01-preview or later"
        document.add(path, "missing-key", message, hint=hint)


def _judge_credentials(document: Document, name: str) -> None:
    first, *others = [key for key in document.mapping("providers", name) if key in _CREDENTIALS] or [""]
    for key in others:
        line = document.line_of("providers", name, first)
        message = f"both {key} and {first} (line {line}) are set: a provider has one credential"
        document.add(("providers", name, key), "two-credentials", message, hint="remove one of them", at_key=True)
    oauth = document.mapping("providers", name, "oauth")
    if oauth and not oauth.keys() & {"scope", "audience"}:
        message = f'"scope" is missing in providers.{name}.oauth'
        hint = "all-apis on Databricks; https://cognitiveservices.azure.com/.default for Azure OpenAI"
        document.add(("providers", name, "oauth"), "missing-key", message, hint=hint, at_key=True)
    _judge_client_secret(document, name)
    if oauth and document.text("providers", name, "auth") not in (None, "bearer"):
        message = "access tokens are presented as bearer only"
        document.add(("providers", name, "auth"), "unknown-auth", message, hint="remove it", at_key=True)


def _judge_client_secret(document: Document, name: str) -> None:
    path = ("providers", name, "oauth")
    found = [key for key in ("client_secret", "client_secret_file") if key in document.mapping(*path)]
    if document.mapping(*path) and not found:
        message = f'"client_secret" is missing in {".".join(path)}'
        document.add(path, "missing-key", message, expected="a text", hint="or client_secret_file", at_key=True)
    if len(found) > 1:
        message = "both client_secret_file and client_secret are set: a client has one secret"
        document.add((*path, found[1]), "two-credentials", message, hint="remove one of them", at_key=True)


def _judge_protocols(document: Document, name: str, dialect: Dialect) -> None:
    node = document.find(("providers", name, "protocols"))
    known = tuple(dialect.called)
    for i, item in enumerate(node.value if node is not None and isinstance(node.value, list) else ()):
        if isinstance(item.value, str) and item.value not in known:
            what = f"the engine {dialect.name}" if dialect is LITELLM else f"the dialect {dialect.name}"
            message = f"providers of {what} are not called with {item.source_text}"
            path = ("providers", name, "protocols", i)
            document.add(path, "unknown-protocol", message, expected=_one_of(known))


def _judge_address(document: Document, name: str, form: str) -> None:
    path = ("providers", name, "base_url")
    url = document.text(*path)
    if url is None or form not in APPENDED:
        return
    shorter = overlap(form, url)
    if shorter is not None:
        message = f"the address ends with what {_called(form)} appends itself: {APPENDED[form]}"
        message = "the address ends with /v1 twice" if url.rstrip("/").endswith("/v1/v1") else message
        document.add(path, "bad-url", message, hint=_instead(document, path, shorter))
    elif form == "openai" and url.startswith("http") and url.partition("//")[2].strip("/").count("/") == 0:
        message = f"{APPENDED[form]} is appended to this address; most servers want /v1 before it"
        hint = _instead(document, path, f"{url.rstrip('/')}/v1")
        document.add(path, "no-version", message, hint=hint, severity="warning")


def _called(form: str) -> str:
    return f"the dialect {form}" if form in dialects else f"the address {form}"


def _instead(document: Document, path: tuple[str, ...], url: str) -> str:
    """A hint with the better address, unless a variable or a password is part of it."""
    node = document.find(path)
    return "" if node is None or node.raw is not None or "@" in url else f"write {url}"


def _judge_plain_http(document: Document, name: str, insecure: bool) -> None:
    if any(document.find(("providers", name, key)) is not None for key in _CREDENTIALS):
        _judge_plain(document, ("providers", name, "base_url"), "key", insecure)
    _judge_plain(document, ("providers", name, "oauth", "token_url"), "client's secret", insecure)


def _judge_plain(document: Document, path: tuple[str, ...], what: str, insecure: bool) -> None:
    url = document.text(*path) or ""
    if not url.startswith("http://"):
        return
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return  # the address itself has a problem
    if host and not is_loopback(host):
        message = f"the {what} would travel unencrypted: http to another machine"
        hint = "use https, or start with --insecure if you trust the network between"
        severity: Severity = "warning" if insecure else "error"
        document.add(path, "plain-http", message, hint=hint, severity=severity)


def judge_timeouts(document: Document, *path: str) -> None:
    """Add a problem for each timeout that is longer than `total`, whether `total` is set or a default."""
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


def resolve_files(document: Document, folder: Path) -> None:
    """Make the paths of TLS and key files absolute, and check that they can be read."""
    for path in _file_paths(document):
        text, node = document.text(*path), document.find(path)
        if not text or node is None:
            continue
        file = folder / text
        node.value = str(file.absolute())
        shown = node.source_text if node.raw else str(file)
        try:
            _read_file(file, path)
        except OSError as error:
            document.add(path, "unreadable", f"cannot read {shown}: {error.strerror}")
        except BadKeyFile as error:
            document.add(path, "bad-key-file", f"{shown} contains no key: {error}")


def _read_file(file: Path, path: tuple[str, ...]) -> None:
    """Check that the file can be read. Raises OSError, BadKeyFile."""
    if path[2:] in _KEY_FILES:
        read_key(file)
        return
    with file.open("rb") as stream:
        stream.read(1)


def _file_paths(document: Document) -> Iterator[tuple[str, ...]]:
    for name in document.mapping("providers"):
        for key in _FILES:
            yield ("providers", name, *key)


def _one_of(known: tuple[str, ...]) -> str:
    return f"one of: {', '.join(known)}"
