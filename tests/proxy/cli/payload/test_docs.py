"""What docs/commands.md and README.md show is what the commands print."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

ROOT = Path(__file__).resolve().parents[4]
PAGE = (ROOT / "docs" / "commands.md").read_text("utf-8")
SHOWN = re.findall(r"```console\n\$ dragoman ([^\n]*)\n(.*?)```", PAGE, re.DOTALL)
VERSION = re.compile(r"dragoman/[0-9.]+")


@pytest.fixture
def folder(elsewhere: Path, fixtures: Path) -> Path:
    """The files that the page speaks of."""
    shutil.copytree(fixtures / "docs", elsewhere, dirs_exist_ok=True)
    shutil.copytree(ROOT / "examples", elsewhere / "examples")
    for kind, name in (("json", "request.json"), ("yaml", "litellm.yaml")):
        [text] = re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
        (elsewhere / name).write_text(text, "utf-8")
    return elsewhere


def test_every_command_is_shown() -> None:
    assert {command.split()[0] for command, _ in SHOWN} == {"translate", "validate", "explain", "call", "import"}


@pytest.mark.parametrize(("command", "output"), [one for one in SHOWN if not one[0].startswith(("call ", "import "))])
@pytest.mark.usefixtures("folder")
def test_output(command: str, output: str, run: Callable[..., Result]) -> None:
    result = run(*shlex.split(command))
    assert VERSION.sub("", result.output).rstrip() == VERSION.sub("", output).rstrip()


@pytest.mark.usefixtures("folder")
def test_output_of_import(run: Callable[..., Result]) -> None:
    """What is not carried over is said before the text is printed."""
    [(command, output)] = [one for one in SHOWN if one[0].startswith("import ")]
    result = run(*shlex.split(command))
    assert result.stderr + result.stdout == output


def test_receipt_of_the_readme(elsewhere: Path, run: Callable[..., Result]) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    [request] = re.findall(r"```json\n(.*?)```", readme, re.DOTALL)
    [(command, output)] = re.findall(r"```console\n\$ uv run dragoman (translate [^\n]*)\n(.*?)```", readme, re.DOTALL)
    (elsewhere / "request.json").write_text(request, "utf-8")
    assert run(*shlex.split(command)).output == output
