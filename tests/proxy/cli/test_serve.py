"""`dragoman serve`: the configuration that it starts the server with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from dragoman.local_engine import embedded
from dragoman.proxy.cli import server_process
from dragoman.proxy.config.checked_config import CheckedConfig
from dragoman.proxy.config.models import Config
from dragoman.proxy.config.problems import ConfigErrors

from .conftest import GOOD, Command


class Start(NamedTuple):
    """The arguments that the server was started with. `source` reads the configuration again, if there is a file."""

    config: Config
    options: dict[str, object]
    source: Callable[[], CheckedConfig] | None
    files: Sequence[Path]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Start]:
    """Each start of the server, which ends at once with status 0."""
    starts: list[Start] = []

    def run(
        config: Config, source: Callable[[], CheckedConfig] | None, files: Sequence[Path], **options: object
    ) -> int:
        starts.append(Start(config, options, source, files))
        return 0

    monkeypatch.setattr(server_process, "run", run)
    return starts


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra for the local engine seems not to be installed."""
    monkeypatch.setattr(embedded, "can_answer", lambda: False)


def test_serve_reads_the_file_in_the_working_folder(empty_folder: Path, started: list[Start], command: Command) -> None:
    (empty_folder / "dragoman.yaml").write_text("server: {port: 1234}\n" + GOOD)
    assert command("serve").exit_code == 0
    [(config, options, *_)] = started
    assert config.server.port == 1234
    assert options.pop("text").file == "dragoman.yaml"
    assert options == {"insecure": False, "log_format": "json", "log_level": "info"}


def test_options_of_serve_override_the_file(empty_folder: Path, started: list[Start], command: Command) -> None:
    (empty_folder / "a.yaml").write_text("server: {port: 1234, host: 127.0.0.2}\n" + GOOD)
    args = ("--config", "a.yaml", "--host", "::1", "--port", "0", "--insecure", "--log-format", "console")
    assert command("serve", *args, DRAGOMAN_LOG_LEVEL="debug").exit_code == 0
    [(config, options, *_)] = started
    assert (config.server.host, config.server.port) == ("::1", 0)
    assert options.pop("text").file == "a.yaml"
    assert options == {"insecure": True, "log_format": "console", "log_level": "debug"}


def test_serve_reads_its_options_from_the_environment(
    empty_folder: Path, started: list[Start], command: Command
) -> None:
    (empty_folder / "a.yaml").write_text("server: {host: 0.0.0.0}\n" + GOOD)
    env = {
        "DRAGOMAN_CONFIG": "a.yaml",
        "DRAGOMAN_INSECURE": "1",
        "DRAGOMAN_PORT": "99",
        "DRAGOMAN_LOG_FORMAT": "console",
    }
    assert command("serve", **env).exit_code == 0
    [(config, options, *_)] = started
    assert (config.server.port, options["insecure"]) == (99, True)


@pytest.mark.usefixtures("no_engine")
def test_serve_without_a_file_reads_providers_from_the_environment(started: list[Start], command: Command) -> None:
    result = command("serve", OPENAI_API_KEY="sk-x", DATABRICKS_HOST="h")
    assert result.exit_code == 0
    assert "from the environment: openai" in result.stderr
    assert "DATABRICKS_HOST is set, but DATABRICKS_TOKEN is not" in result.stderr
    assert list(started[0][0].models) == ["*"]


@pytest.mark.usefixtures("no_engine")
def test_serve_without_file_and_providers_explains_what_to_do(started: list[Start], command: Command) -> None:
    result = command("serve")
    assert (result.exit_code, result.stdout, started) == (2, "", [])
    for words in ("dragoman init", "--config", "OPENAI_API_KEY", "DATABRICKS_TOKEN", "AZURE_INFERENCE_CREDENTIAL"):
        assert words in result.stderr


def test_serve_refuses_a_bad_file(empty_folder: Path, started: list[Start], command: Command) -> None:
    (empty_folder / "dragoman.yaml").write_text("server: {host: 0.0.0.0}\n" + GOOD)
    result = command("serve")
    assert (result.exit_code, started) == (2, [])
    assert "error[open-host]" in result.stderr
    assert command("serve", "--config", "none.yaml").exit_code == 2


def test_serve_prints_warnings_and_starts(empty_folder: Path, started: list[Start], command: Command) -> None:
    (empty_folder / "dragoman.yaml").write_text(GOOD.replace("/v1", ""))
    result = command("serve")
    assert (result.exit_code, len(started)) == (0, 1)
    assert "warning[no-version]" in result.stderr


def test_serve_exits_with_the_status_of_the_server(
    empty_folder: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    (empty_folder / "dragoman.yaml").write_text(GOOD)
    monkeypatch.setattr(server_process, "run", lambda config, **options: 2)
    assert command("serve").exit_code == 2


def test_the_file_is_read_again_with_the_same_options(
    empty_folder: Path, started: list[Start], command: Command
) -> None:
    (empty_folder / ".env").write_text("PORT=1\n")
    (empty_folder / "dragoman.yaml").write_text(GOOD.replace(":1/", ":${PORT}/"))
    assert command("serve", "--host", "::1", "--env-file", ".env").exit_code == 0
    [(config, _, source, files)] = started
    assert [file.name for file in files] == ["dragoman.yaml", ".env"]
    (empty_folder / ".env").write_text("PORT=2\n")
    assert source is not None
    again = source()
    assert (config.server.host, again.config.server.host) == ("::1", "::1")
    assert again.config.providers["p"].base_url == "http://127.0.0.1:2/v1"


def test_problems_of_the_env_file_are_printed_at_the_start_and_reported_later(
    empty_folder: Path, started: list[Start], command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    """While the proxy runs, its log is the place for them, in the log's format."""
    (empty_folder / ".env").write_text("what is this\n")
    (empty_folder / "dragoman.yaml").write_text(GOOD)
    assert "warning[bad-line]" in command("serve").stderr
    source = started[0].source
    assert source is not None
    assert [problem.code for problem in source().warnings] == ["bad-line"]
    (empty_folder / "dragoman.yaml").write_text(GOOD.replace("providers", "provider"))
    with pytest.raises(ConfigErrors) as caught:
        source()
    assert [problem.severity for problem in caught.value.problems].count("warning") == 1
    assert capsys.readouterr().err == ""


def test_without_a_file_nothing_is_read_again(started: list[Start], command: Command) -> None:
    assert command("serve", OPENAI_API_KEY="sk-test-0123456789").exit_code == 0
    assert started[0].source is None
