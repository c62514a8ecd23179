"""The commands that README.md and docs/ show exist, with the options that they are given."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
import typer.main

from dragoman.proxy.cli.main import app

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CONSOLE = re.compile(r"```(?:console|sh)\n(.*?)```", re.DOTALL)
LINE = re.compile(r"(?:^|\| )(?:\$ )?(?:[A-Z_]+=\S+ )*(?:uv run (?:-\S+ (?:\w+ )?)*)?dragoman (.+)")


def commands() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        for block in CONSOLE.findall(page.read_text("utf-8")):
            lines = block.replace("\\\n", " ").splitlines()
            found += [(page.name, line[1]) for text in lines if text.startswith("$") and (line := LINE.search(text))]
    return found


def leaf(words: list[str]) -> click.Command:
    """The command that the words begin with. Raises KeyError where there is none."""
    command: click.Command = typer.main.get_command(app)
    for word in words:
        if not hasattr(command, "commands"):
            break
        command = command.commands[word]
    return command


def test_pages_show_commands() -> None:
    assert {name for name, _ in commands()} >= {
        "README.md",
        "configuration.md",
        "fakes.md",
        "commands.md",
        "contract.md",
    }


@pytest.mark.parametrize(("page", "command"), commands())
def test_command_exists(page: str, command: str) -> None:
    words = [word for word in shlex.split(command, comments=True) if word != "&"]
    known = {option for parameter in leaf(words).params for option in parameter.opts}
    options = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert options <= known, f"{page}: dragoman {command}"
