"""What docs/commands.md shows is what the commands print."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "commands.md").read_text("utf-8")
SHOWN = re.findall(r"```console\n\$ dragoman ([^\n]*)\n(.*?)```", PAGE, re.DOTALL)
VERSION = re.compile(r"dragoman/[0-9.]+")


@pytest.fixture
def folder(elsewhere: Path, fixtures: Path) -> Path:
    """The files that the page speaks of."""
    shutil.copytree(fixtures / "docs", elsewhere, dirs_exist_ok=True)
    shutil.copytree(ROOT / "examples", elsewhere / "examples")
    [request] = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    (elsewhere / "request.json").write_text(request, "utf-8")
    return elsewhere


def test_every_command_is_shown() -> None:
    assert {command.split()[0] for command, _ in SHOWN} == {"translate", "validate", "explain", "call"}


@pytest.mark.parametrize(("command", "output"), [one for one in SHOWN if not one[0].startswith("call ")])
@pytest.mark.usefixtures("folder")
def test_output(command: str, output: str, run: Callable[..., Result]) -> None:
    result = run(*shlex.split(command))
    assert VERSION.sub("", result.output).rstrip() == VERSION.sub("", output).rstrip()
