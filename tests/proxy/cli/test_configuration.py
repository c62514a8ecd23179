"""`dragoman init` and `dragoman check`."""

from __future__ import annotations

from pathlib import Path

from dragoman.proxy.config.starter import STARTER

from .conftest import GOOD, Command


def test_init_overwrites_a_file_only_with_force(empty_folder: Path, command: Command) -> None:
    assert command("init").exit_code == 0
    assert (empty_folder / "dragoman.yaml").read_text("utf-8") == STARTER
    (empty_folder / "dragoman.yaml").write_text("mine")
    again = command("init")
    assert (again.exit_code, again.stdout) == (2, "")
    assert "--force" in again.stderr
    assert (empty_folder / "dragoman.yaml").read_text("utf-8") == "mine"
    assert command("init", "--force").exit_code == 0
    assert (empty_folder / "dragoman.yaml").read_text("utf-8") == STARTER


def test_init_says_why_it_cannot_write(empty_folder: Path, command: Command) -> None:
    result = command("init", "no/such/folder.yaml")
    assert result.exit_code == 2
    assert "cannot write no/such/folder.yaml: No such file or directory" in result.stderr


def test_the_file_of_init_passes_check(command: Command) -> None:
    command("init")
    assert command("check", OPENAI_API_KEY="sk-x").exit_code == 0
    without = command("check")
    assert without.exit_code == 2
    assert "the variable OPENAI_API_KEY is not set" in without.stderr


def test_check_reads_its_options_from_the_environment(empty_folder: Path, command: Command) -> None:
    (empty_folder / "other.yaml").write_text(GOOD + 'keys: [{name: a, key: "${KEY}"}]\n')
    (empty_folder / "vars").write_text("KEY=from-file\n")
    assert command("check", DRAGOMAN_CONFIG="other.yaml").exit_code == 2
    result = command("check", DRAGOMAN_CONFIG="other.yaml", DRAGOMAN_ENV_FILE="vars")
    assert (result.exit_code, result.stdout) == (0, "other.yaml: 1 provider, 1 model, no errors\n")


def test_check_reports_a_bad_env_file(empty_folder: Path, command: Command) -> None:
    (empty_folder / "vars").write_text("what is this\n")
    result = command("check", "--env-file", "vars")
    assert result.exit_code == 2
    assert "vars:1:1: error[bad-line]" in result.stderr
