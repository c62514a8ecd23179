"""The folders of the tests are those of the source tree, so that the tests of a module are easy to find."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from source_tree import ROOT

TESTS = ROOT / "tests"
OTHER_FOLDERS: Mapping[str, str] = {
    "resilience": "the whole product under faults: hostile bytes, broken networks, vanishing clients",
    "e2e": "the whole product, asked by clients",
    "layout": "the source tree itself: names, layers, documents",
}
"""Folders of tests that belong to no folder of the source tree."""


def mirrors_the_source(folder: Path) -> bool:
    return folder.parts[0] in OTHER_FOLDERS or (ROOT / folder).is_dir()


def test_folders_of_tests_mirror_the_source_tree() -> None:
    folders = {file.parent.relative_to(TESTS) for file in TESTS.rglob("test_*.py")}
    assert folders
    assert sorted(str(folder) for folder in folders if not mirrors_the_source(folder)) == []
