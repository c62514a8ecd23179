"""Makes all generated pages, writes them, and finds the stale ones on disk."""

from __future__ import annotations

from pathlib import Path

from dragoman.adapters.model_facts import load_families
from dragoman.adapters.pipeline.transitions import TRANSITIONS
from dragoman.adapters.registry import dialects
from dragoman.contract.quirk_files import load_quirks
from dragoman.schemas import load

from .command_page import command_page
from .dialect_page import dialect_page
from .losses_page import losses_page
from .manual_page import manual_page
from .models_page import models_page
from .quirks_page import quirks_page
from .settings_page import settings_page
from .state_diagram import replace_block, state_diagram

__all__ = ["BLOCKS", "draw_attempt", "find_stale", "make_pages", "write_pages"]


def make_pages() -> dict[str, str]:
    """Return the path of each page, relative to docs/, and its text."""
    made = {f"dialects/{dialect.name}.md": dialect_page(dialect) for dialect in dialects.values()}
    return {
        **made,
        "command-line.md": command_page(),
        "dragoman.1": manual_page(),
        "losses.md": losses_page(dialects),
        "model-facts.md": models_page(load_families()),
        "quirks.md": quirks_page(load_quirks().values()),
        "settings.md": settings_page(load("config")),
    }


def draw_attempt() -> str:
    """Draw the states of an attempt. Inputs that are ignored after the end are left out."""
    return state_diagram({given: change for given, change in TRANSITIONS.items() if change[1] != "ignore"})


BLOCKS = {"pipeline.md": {"attempt states": draw_attempt}}
"""Handwritten pages, with the generated blocks of each."""


def find_stale(folder: Path) -> list[str]:
    """Return the pages that are missing or outdated, and those of dialects that no longer exist."""
    wanted = {**make_pages(), **_fill_blocks(folder)}
    there = {f"dialects/{file.name}" for file in folder.glob("dialects/*.md")}
    return sorted({name for name, text in wanted.items() if _read(folder / name) != text} | (there - wanted.keys()))


def write_pages(folder: Path) -> None:
    """Write every page into the folder."""
    for name, text in {**make_pages(), **_fill_blocks(folder)}.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def _fill_blocks(folder: Path) -> dict[str, str]:
    """The handwritten pages that the folder has, with their blocks as they have to be."""
    pages: dict[str, str] = {}
    for name, blocks in BLOCKS.items():
        text = _read(folder / name)
        if text is not None:
            for block, draw in blocks.items():
                text = replace_block(text, block, draw())
            pages[name] = text
    return pages


def _read(file: Path) -> str | None:
    return file.read_text("utf-8") if file.is_file() else None
