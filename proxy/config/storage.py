"""Checks of the store of responses."""

from __future__ import annotations

from pathlib import Path

from .document import Document
from .models import Store
from .values import format_bytes, parse_bytes

__all__ = ["check_store", "resolve_store_path"]


def resolve_store_path(document: Document, folder: Path) -> None:
    """Make the path of the store's file absolute."""
    path, node = document.text("store", "path"), document.find(("store", "path"))
    if not path or node is None:
        return
    try:
        node.value = str((folder / Path(path).expanduser()).absolute())
    except RuntimeError:
        hint = "write the whole path"
        document.add_problem(
            ("store", "path"), "unknown-home", "the home folder at the beginning of this path is unknown", hint=hint
        )


def check_store(document: Document) -> None:
    """Add the problems of `store`: a path that its kind does not use, sizes that contradict each other."""
    kind = document.text("store", "kind") or Store.kind
    if kind in ("memory", "none") and document.find(("store", "path")) is not None:
        message = f"path is for the kind sqlite only; this store has the kind {kind}"
        document.add_problem(
            ("store", "path"), "wrong-store", message, hint="remove it, or write kind: sqlite", at_key=True
        )
    size, most = _read_size(document, "max_response"), _read_size(document, "max_size")
    if size is not None and most is not None and size > most:
        message = f"max_response ({format_bytes(size)}) is larger than max_size ({format_bytes(most)})"
        hint = "raise max_size, or lower max_response"
        document.add_problem(("store", "max_response"), "conflicting-sizes", message, hint=hint)


def _read_size(document: Document, name: str) -> int | None:
    text = document.text("store", name)
    if text is not None:
        return parse_bytes(text)
    return Store.max_size if name == "max_size" else None
