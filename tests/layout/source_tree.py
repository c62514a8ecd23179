"""Reads the Python files of the source tree for the rules of names and sentences."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

__all__ = ["ROOT", "Function", "Module", "is_public", "list_functions", "read_modules"]

ROOT = Path(__file__).resolve().parents[2]

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Module:
    file: Path
    text: str
    tree: ast.Module

    def place(self, line: int, what: str) -> str:
        return f"{self.file.relative_to(ROOT)}:{line} {what}"


@cache
def read_modules(folder: str) -> tuple[Module, ...]:
    files = sorted((ROOT / folder).rglob("*.py"))
    texts = [file.read_text("utf-8") for file in files]
    return tuple(Module(file, text, ast.parse(text)) for file, text in zip(files, texts, strict=True))


def list_functions(tree: ast.AST) -> Iterator[Function]:
    """Functions and methods, without those inside functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from list_functions(node)


def is_public(node: Function) -> bool:
    return not node.name.startswith("_")
