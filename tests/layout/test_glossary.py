"""docs/glossary.md explains every word that the code takes from it."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import get_args

from dragoman.adapters.call import Policy
from dragoman.adapters.changes import Action, Weight
from dragoman.adapters.faults import Owner
from dragoman.adapters.registry import dialects
from tests.tables import for_each

DOCS = Path(__file__).resolve().parents[2] / "docs"
GLOSSARY = (DOCS / "glossary.md").read_text("utf-8")
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in GLOSSARY.splitlines() if line[:1] == "|"
]
TERMS = [row for row in ROWS if row[0] not in ("Term", "---")]
WORDS = {
    *dialects,
    *(profile for dialect in dialects.values() for profile in dialect.profiles),
    *(protocol for dialect in dialects.values() for protocol in dialect.served),
    *(field.name for field in fields(Policy)),
    *get_args(Action),
    *get_args(Weight),
    *get_args(Owner),
}


@for_each("word", sorted(WORDS))
def test_words_of_the_code_are_explained(word: str) -> None:
    assert f"`{word}`" in GLOSSARY


def test_every_term_has_a_meaning_and_an_example() -> None:
    assert len(TERMS) > 40
    assert [row for row in TERMS if len(row) != 3 or not all(row)] == []


def test_terms_are_explained_once() -> None:
    names = [name for row in TERMS for name in row[0].split(", ")]
    assert len(names) == len(set(names))


def test_the_architecture_page_has_no_term_of_its_own() -> None:
    page = (DOCS / "architecture.md").read_text("utf-8")
    assert "(glossary.md)" in page
    table = page.partition("## Vocabulary")[2].partition("## ")[0]
    terms = re.findall(r"^\| ([a-z ]+) \|", table, re.MULTILINE)
    explained = {word for row in TERMS for word in re.split(r",? ", row[0])}
    assert [term for term in terms if term not in explained | {"word"}] == []
