"""Checks of rates whose numbers do not fit together."""

from __future__ import annotations

from .document import Document

__all__ = ["check_rates"]

_COUNTS = ("requests_per_minute", "tokens_per_minute", "burst")


def check_rates(document: Document) -> None:
    """Warn about bursts of keys and providers that are meant for requests and bound tokens too."""
    for position, _ in enumerate(document.items("keys")):
        _check_burst(document, ("keys", position, "rate"))
    for name in document.mapping("providers"):
        _check_burst(document, ("providers", name, "rate"))


def _check_burst(document: Document, path: tuple[str | int, ...]) -> None:
    requests, tokens, burst = (_read_count(document, (*path, name)) for name in _COUNTS)
    if 0 < burst <= requests and burst < tokens:
        message = f"one number for requests and tokens: only {burst} tokens may come at once"
        hint = "leave it out, and set concurrency to bound requests"
        document.add_problem((*path, "burst"), "small-burst", message, hint=hint, severity="warning", at_key=True)


def _read_count(document: Document, path: tuple[str | int, ...]) -> int:
    """The number at a path; 0 if there is none."""
    node = document.find(path)
    text = "" if node is None else str(node.value)
    return int(text) if text.isdecimal() else 0
