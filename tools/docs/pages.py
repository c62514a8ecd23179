"""Makes all generated pages, writes them, and finds the stale ones on disk."""

from __future__ import annotations

from pathlib import Path

from dragoman.adapters.registry import dialects

from .dialect_page import dialect_page
from .losses_page import losses_page

__all__ = ["find_stale", "make_pages", "write_pages"]


def make_pages() -> dict[str, str]:
    """Return the path of each page, relative to docs/, and its text."""
    made = {f"dialects/{dialect.name}.md": dialect_page(dialect) for dialect in dialects.values()}
    return {**made, "losses.md": losses_page(dialects)}


def find_stale(folder: Path) -> list[str]:
    """Return the pages that are missing or outdated, and those of dialects that no longer exist."""
    wanted = make_pages()
    there = {f"dialects/{file.name}" for file in folder.glob("dialects/*.md")}
    return sorted({name for name, text in wanted.items() if _read(folder / name) != text} | (there - wanted.keys()))


def write_pages(folder: Path) -> None:
    for name, text in make_pages().items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def _read(file: Path) -> str | None:
    return file.read_text("utf-8") if file.is_file() else None
