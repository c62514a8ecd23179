"""The command line under test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Protocol

import pytest
from typer.testing import CliRunner, Result

from dragoman.proxy.cli.main import app

MAIN = "from dragoman.proxy.cli.main import main; main()"

GOOD = 'providers: {p: {dialect: openai, base_url: "http://127.0.0.1:1/v1"}}\nmodels: {m: {targets: [{provider: p}]}}\n'
"""A valid configuration."""


class Command(Protocol):
    """Runs `dragoman ARGS...` with these variables in the environment."""

    def __call__(self, *args: str, **env: str) -> Result: ...


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, and an environment without variables that dragoman reads."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith(("DRAGOMAN_", "OPENAI_", "DATABRICKS_", "AZURE_")):
            monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def command(empty_folder: Path) -> Command:
    """The command line in this process, in an empty folder."""

    def run(*args: str, **env: str) -> Result:
        return CliRunner().invoke(app, list(args), env=env)

    return run


def run_python(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """A Python process with these arguments, and these variables added to the environment."""
    return subprocess.run(
        [sys.executable, *args], capture_output=True, text=True, timeout=60, env={**os.environ, **env}, check=False
    )
