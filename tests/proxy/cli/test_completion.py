"""Completion in the shell: the script that bash gets, and the values that it offers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.adapters.registry import NAMES
from dragoman.contract.fakes.selection import BEHAVIOURS
from dragoman.proxy.cli.completion import (
    complete_behaviour,
    complete_client_format,
    complete_dialect,
    complete_format,
    complete_payload_type,
    complete_schema,
)

from .conftest import MAIN, Command, run_python

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash on this machine")

# What bash does when the tab key is pressed after the words, and what it then offers.
PRESS_TAB = """
source completion.bash
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_dragoman_completion dragoman
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def shell_folder(empty_folder: Path) -> Path:
    """A folder with the command `dragoman`, and with its script for bash."""
    program = empty_folder / "bin" / "dragoman"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{MAIN}" "$@"\n')
    program.chmod(0o755)
    script = run_python("-c", MAIN, "--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    (empty_folder / "completion.bash").write_text(script.stdout)
    return empty_folder


@needs_bash
def test_bash_offers_what_the_command_completes(shell_folder: Path) -> None:
    path = f"{shell_folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    command = ["bash", "--norc", "-c", PRESS_TAB, "bash", "dragoman", "schema", "azure/chat.re"]
    run = subprocess.run(command, cwd=shell_folder, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert (run.stdout.splitlines(), run.stderr) == (["azure/chat.reply", "azure/chat.request"], "")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["ser"], ["serve"]),
        (["schema", "azure/chat.re"], ["azure/chat.reply", "azure/chat.request"]),
        (["fake", "an"], ["anthropic"]),
        (["fake", "openai", "--behaviour", "cut-b"], ["cut-before", "cut-body"]),
        (["translate", "--from", "mindie/"], ["mindie/chat"]),
        (["serve", "--log-f"], ["--log-format"]),
        (["schema", "nothing-begins-so"], [""]),
    ],
)
def test_the_command_completes(words: list[str], offered: list[str], command: Command) -> None:
    typed = " ".join(["dragoman", *words])
    run = command(_DRAGOMAN_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=str(len(words)))
    assert (run.stdout.splitlines(), run.stderr) == (offered, "")


@needs_bash
def test_installing_it_for_bash_changes_only_the_home_folder(tmp_path: Path) -> None:
    disabled = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    run = run_python("-c", MAIN, "--install-completion", "bash", HOME=str(tmp_path), **disabled)
    assert (run.returncode, run.stderr) == (0, "")
    files = {str(file.relative_to(tmp_path)): file.read_text() for file in tmp_path.rglob("*") if file.is_file()}
    assert {*files} == {".bashrc", ".bash_completions/dragoman.sh"}
    assert "dragoman.sh" in files[".bashrc"]


def test_values_begin_with_what_is_typed() -> None:
    assert complete_dialect("") == [*NAMES]
    assert complete_dialect("az") == ["azure"]
    assert "databricks/responses" in complete_format("databricks/")
    assert {*complete_client_format("")} <= {*complete_format("")}
    assert complete_behaviour("") == [*BEHAVIOURS]
    assert {"mindie/chat/request", "mindie/chat/stream"} <= {*complete_payload_type("mindie/chat/")}


def test_every_schema_is_offered(command: Command) -> None:
    assert complete_schema("") == command("schema", "--list").stdout.splitlines()
