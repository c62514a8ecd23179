"""The README is short, and what it and the pages of docs/ refer to exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dragoman.contract.case_files import read_case_file
from tests.tables import for_each

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
MATRIX = ROOT / "docs" / "contract-matrix.md"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("bench/*.md"), *(ROOT / "docs").rglob("*.md")])
MOST_WORDS = 700

FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FILE = re.compile(r"`((?:adapters|contract|examples|local_engine|proxy|schemas|tools)/[\w./-]*)`")


def prose_of(page: Path) -> str:
    """The text without fenced blocks, where nothing is a link or a heading."""
    return FENCE.sub("", page.read_text("utf-8"))


def links_in(page: Path) -> Iterator[str]:
    text = CODE.sub("code", prose_of(page))
    return (link for link in LINK.findall(text) if "://" not in link)


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(prose_of(page)))
    return {word.strip().replace(" ", "-") for word in words}


def broken(page: Path) -> list[str]:
    """The links of a page that lead out of the tree, to no file, or to no heading."""
    found = []
    for link in links_in(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        is_inside = target.is_relative_to(ROOT) and target.exists()
        if not is_inside or (anchor and anchor not in anchors_of(target)):
            found.append(link)
    return found


def test_readme_is_short() -> None:
    seen = re.sub(r"<!--.*?-->", "", README.read_text("utf-8"))
    assert len(seen.split()) < MOST_WORDS


@for_each("page", PAGES)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


@pytest.mark.parametrize("link", ["gone.md", "README.md#gone", "#gone", "../../outside.md"])
def test_broken_links_are_found(link: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    (tmp_path / "outside.md").touch()
    page = folder / "README.md"
    page.write_text(
        f"# A heading\n\n[itself](#a-heading), [as a file](README.md#a-heading), [other]({link})\n", "utf-8"
    )
    monkeypatch.setattr(f"{__name__}.ROOT", folder)
    assert broken(page) == [link]


def test_picture_is_well_formed() -> None:
    [picture] = re.findall(r"!\[[^]]+\]\((docs/[\w.-]+\.svg)\)", README.read_text("utf-8"))
    root = ElementTree.parse(ROOT / picture).getroot()
    assert root.tag.endswith("svg") and root.find("{*}title") is not None
    assert "prefers-color-scheme: dark" in (ROOT / picture).read_text("utf-8")


def test_every_page_is_in_the_index() -> None:
    docs = ROOT / "docs"
    listed = {(docs / link).resolve() for link in links_in(docs / "README.md")}
    assert {page for page in docs.rglob("*.md") if page.name != "README.md"} - listed == set()


def test_promises_are_contract_cases() -> None:
    promises = re.findall(r"\[`([\w/-]+)`\]\((contract/cases/[\w/.-]+)\)", README.read_text("utf-8"))
    assert len(promises) == 5
    assert not [case for case, file in promises if case not in {known.id for known in read_case_file(ROOT / file)}]


def test_comparison_has_the_numbers_of_the_matrix() -> None:
    sums = MATRIX.read_text("utf-8").partition("## In sums")[2].partition("## What it finds most")[0]
    rows = re.findall(r"^\| (\w[\w-]*) > (\w+) \|.*\| ([0-9]+ of [0-9]+) \| [0-9]+ \| [0-9]+ \|$", sums, re.MULTILINE)
    measured = {(gateway, provider): passed for gateway, provider, passed in rows}
    shown = re.findall(r"^\| (\w+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", README.read_text("utf-8"), re.MULTILINE)
    for provider, *cells in (row for row in shown if row[0] != "Provider"):
        expected = [measured.get((gateway, provider), "–") for gateway in ("dragoman", "LiteLLM", "llm-rosetta")]
        assert cells == expected
    assert {row[0] for row in shown} >= {provider for _, provider in measured}


@for_each("page", PAGES)
def test_files_that_are_named_exist(page: Path) -> None:
    missing = [name for name in FILE.findall(prose_of(page)) if not (ROOT / name).exists()]
    assert missing == []


_FROM_INDEX = re.compile(r"(?:pip install|uvx|uv tool install|pipx install)(?: -\S+)* ['\"]?dragoman(?![\w./-])")


def from_index(text: str) -> list[str]:
    return _FROM_INDEX.findall(text)


def test_no_page_and_no_hint_installs_dragoman_by_its_name() -> None:
    """The name is not published: whoever takes it could run code on a reader's machine."""
    for line in ("pip install dragoman", "uv pip install 'dragoman[local]'", "uvx dragoman demo"):
        assert from_index(line)
    folders = ("adapters", "contract", "local_engine", "proxy", "tools")
    sources = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    assert not [file for file in (*PAGES, *sources) if from_index(file.read_text("utf-8"))]
