from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from typer.testing import CliRunner, Result

from dragoman.proxy.cli.main import app

Run: TypeAlias = Callable[..., Result]

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, and an environment that says nothing to dragoman."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith(("DRAGOMAN_", "OPENAI_", "DATABRICKS_", "AZURE_")):
            monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def run() -> Run:
    """`dragoman ARGS...`, with `stdin` as its standard input."""

    def invoke(*args: str | Path, stdin: str | bytes = b"") -> Result:
        return CliRunner().invoke(app, [str(arg) for arg in args], input=stdin)

    return invoke


@pytest.fixture
def fixtures() -> Path:
    return FIXTURES
