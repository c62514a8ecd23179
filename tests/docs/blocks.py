"""The code blocks of the pages, with the remarks that stand before them.

A remark is an HTML comment on the lines right before a block, which no reader of the page sees:

    <!-- not run: REASON -->       nothing runs it
    <!-- file: NAME -->            the block is the file NAME, for the blocks that follow on the page
    <!-- running: HOUSE -->        the servers of HOUSE (sandbox.py) run from here to the end of the page
    <!-- status: NUMBER -->        the exit status of the block's last command; default 0
    <!-- env: NAME=value ... -->   variables of the environment
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["PAGES", "REMARKS", "ROOT", "Block", "find_unfenced", "list_blocks", "read_blocks"]

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("bench/*.md"), *ROOT.glob("deploy/*.md"), *(ROOT / "docs").rglob("*.md")]
)
REMARKS = ("not run", "file", "running", "status", "env")

_FENCE = re.compile(r"^((?:<!--.*?-->\n)*)( *)(`{3,}|~{3,})([^\n]*)\n(.*?)^\2\3 *$", re.MULTILINE | re.DOTALL)
_REMARK = re.compile(r"<!-- ([a-z ]+): (.*?) -->")
_INDENTED = re.compile(r"^(?: *(?:[-*]|\d+\.) [^\n]*\n(?:\n? +[^\n]*\n)*)|^\n((?: {4}[^\n]*\n)+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A block. `page` is relative to the repository, `line` the one of its fence, `section` the last heading."""

    page: str
    line: int
    language: str
    text: str
    section: str = ""
    remarks: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"


def list_blocks() -> list[Block]:
    """All blocks of all pages."""
    return [block for page in PAGES for block in read_blocks(page.read_text("utf-8"), str(page.relative_to(ROOT)))]


def read_blocks(text: str, page: str) -> list[Block]:
    """The blocks of a page, in its order."""
    found = []
    for match in _FENCE.finditer(text):
        before = text[: match.end(1)]
        headings = re.findall(r"^#+ (.+)$", before, re.MULTILINE)
        remarks = dict(_REMARK.findall(match[1]))
        line = before.count("\n") + 1
        found.append(Block(page, line, match[4].strip(), match[5], headings[-1] if headings else "", remarks))
    return found


def find_unfenced(text: str) -> list[str]:
    """Blocks that only their indentation marks: they have no language. What belongs to an item of a list is none."""
    return [found for found in _INDENTED.findall(_FENCE.sub("", text)) if found]
