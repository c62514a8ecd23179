"""Every rule of the threat model names the tests that show it, and they exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "threat-model.md").read_text("utf-8")
NAME = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def list_rules() -> list[str]:
    """The rows of the table, without its head."""
    rows = PAGE.partition("| Rule | Shown by |")[2].partition("\n\n")[0].strip().splitlines()
    return rows[1:]


def test_every_rule_names_a_test() -> None:
    rules = list_rules()
    assert len(rules) > 20
    assert [rule for rule in rules if not NAME.search(rule)] == []


def test_every_named_test_exists() -> None:
    names = NAME.findall(PAGE)
    missing = [(file, name) for file, name in names if name not in list_functions(ROOT / file)]
    assert missing == []
    assert len(names) == len({*names})


def list_functions(path: Path) -> set[str]:
    if not path.exists():
        return set()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, kinds)}
