"""`dragoman check`."""

from __future__ import annotations

from pathlib import Path

from .conftest import GOOD, Command


def test_check_reads_its_options_from_the_environment(empty_folder: Path, command: Command) -> None:
    (empty_folder / "other.yaml").write_text(GOOD + 'keys: [{name: a, key: "${KEY}"}]\n')
    (empty_folder / "vars").write_text("KEY=from-file\n")
    assert command("check", DRAGOMAN_CONFIG="other.yaml").exit_code == 2
    result = command("check", DRAGOMAN_CONFIG="other.yaml", DRAGOMAN_ENV_FILE="vars")
    assert (result.exit_code, result.stdout) == (0, "other.yaml: 1 provider, 1 model, no errors\n")


def test_check_reads_the_env_file_next_to_the_configuration(empty_folder: Path, command: Command) -> None:
    folder = empty_folder / "a"
    folder.mkdir()
    (folder / "dragoman.yaml").write_text(GOOD + 'keys: [{name: a, key: "${KEY}"}]\nserver: {port: "${PORT}"}\n')
    (folder / ".env").write_text("KEY=from-file\nPORT=1\n")
    assert command("check", "a/dragoman.yaml").exit_code == 0
    assert "${PORT}" in command("check", "a/dragoman.yaml", PORT="none").stderr, "the environment comes first"
    (empty_folder / "b").write_text("PORT=1\n")
    assert "the variable KEY is not set" in command("check", "a/dragoman.yaml", "--env-file", "b").stderr


def test_no_other_env_file_is_read_unasked(empty_folder: Path, command: Command) -> None:
    (empty_folder / "a").mkdir()
    (empty_folder / "a" / "dragoman.yaml").write_text(GOOD + 'keys: [{name: a, key: "${KEY}"}]\n')
    (empty_folder / ".env").write_text("KEY=from-file\nOPENAI_BASE_URL=http://127.0.0.1:1/v1\nOPENAI_API_KEY=x\n")
    assert "the variable KEY is not set" in command("check", "a/dragoman.yaml").stderr
    result = command("explain", "--model", "gpt-5", "--message", "Hi")
    assert "openai" not in result.stderr.splitlines()[0]


def test_a_line_of_the_env_file_that_is_no_variable_is_a_warning(empty_folder: Path, command: Command) -> None:
    (empty_folder / "dragoman.yaml").write_text(GOOD)
    (empty_folder / ".env").write_text("what is this\n")
    result = command("check")
    assert (result.exit_code, "warning[bad-line]" in result.stderr) == (0, True)
    assert "what" not in result.stderr


def test_check_reports_a_bad_env_file(empty_folder: Path, command: Command) -> None:
    (empty_folder / "vars").write_text("what is this\n")
    result = command("check", "--env-file", "vars")
    assert result.exit_code == 2
    assert "vars:1:1: error[bad-line]" in result.stderr
