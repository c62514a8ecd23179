"""Checks of the server's address, its origins and profiles, and the client keys."""

from __future__ import annotations

from dragoman.adapters.registry import dialects

from .document import Document
from .urls import is_loopback

__all__ = ["check_access"]


def check_access(document: Document, insecure: bool) -> None:
    """Add the problems of `server` and `keys`. `insecure` allows an open address without keys."""
    _check_host(document, insecure)
    _check_origins(document)
    _check_keys(document)
    _check_budgets(document)
    for name in document.mapping("server", "profiles"):
        profile, dialect = document.text("server", "profiles", name), dialects.get(name)
        if dialect is not None and profile is not None and profile not in dialect.profiles:
            message = f"the dialect {name} has no such profile"
            expected = f"one of: {', '.join(dialect.profiles)}"
            document.add_problem(("server", "profiles", name), "unknown-profile", message, expected=expected)


def _check_host(document: Document, insecure: bool) -> None:
    host = document.text("server", "host")
    if host is None or is_loopback(host) or document.items("keys") or document.is_broken("keys") or insecure:
        return
    message = "without keys, anyone who can reach this address can use the providers"
    hint = "add keys, listen on 127.0.0.1, or start with --insecure"
    document.add_problem(("server", "host"), "open-host", message, hint=hint)


def _check_origins(document: Document) -> None:
    if document.items("keys") or document.is_broken("keys"):
        return
    for position, _ in enumerate(document.items("server", "allowed_origins")):
        if document.text("server", "allowed_origins", position) == "*":
            message = "without keys, every page in a browser on this machine could use the providers"
            hint = "add keys, or name the origins of the pages"
            document.add_problem(("server", "allowed_origins", position), "open-origin", message, hint=hint)


def _check_keys(document: Document) -> None:
    for field in ("name", "key", "key_hash"):
        first: dict[str, int] = {}
        for position, _ in enumerate(document.items("keys")):
            value = document.text("keys", position, field)
            if value is None:
                continue
            if value in first:
                line = document.line_of("keys", first[value], field)
                message = f"keys[{position}] has the same {field} as keys[{first[value]}] on line {line}"
                document.add_problem(("keys", position, field), "duplicate-key", message)
            first.setdefault(value, position)


def _check_budgets(document: Document) -> None:
    """Warn about budgets that count nothing, or that a restart forgets."""
    targets = [target for name in document.mapping("models") for target in document.items("models", name, "targets")]
    has_prices = any(isinstance(target.value, dict) and "price" in target.value for target in targets)
    lacks_prices = bool(targets) and not has_prices  # a broken section is empty
    for position, _ in enumerate(document.items("keys")):
        budget = document.mapping("keys", position, "budget")
        path = ("keys", position, "budget")
        if lacks_prices and (name := next((one for one in budget if one.startswith("cost_")), None)):
            message, hint = "no target has a price, so nothing counts for this budget", "set price of the targets"
            document.add_problem((*path, name), "no-price", message, hint=hint, severity="warning", at_key=True)
        if budget and (kind := document.text("store", "kind")) in ("memory", "none"):
            message = f"the store of the kind {kind} forgets at a restart what the key has used"
            hint = "set store.kind to sqlite"
            document.add_problem(path, "forgotten-budget", message, hint=hint, severity="warning", at_key=True)
