"""All the pages, and whether those on disk are still true."""

from __future__ import annotations

from pathlib import Path

from dragoman.adapters.registry import dialects

from .dialect_page import dialect_page
from .losses_page import losses_page

__all__ = ["pages", "stale", "write"]


def pages() -> dict[str, str]:
    """Path below the folder of documents -> text."""
    made = {f"dialects/{dialect.name}.md": dialect_page(dialect) for dialect in dialects.values()}
    return {**made, "losses.md": losses_page(dialects)}


def stale(folder: Path) -> list[str]:
    """The pages that are missing, or not what would be written now, and those that no dialect has any more."""
    wanted = pages()
    there = {f"dialects/{file.name}" for file in folder.glob("dialects/*.md")}
    return sorted({name for name, text in wanted.items() if _read(folder / name) != text} | (there - wanted.keys()))


def write(folder: Path) -> None:
    for name, text in pages().items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def _read(file: Path) -> str | None:
    return file.read_text("utf-8") if file.is_file() else None
