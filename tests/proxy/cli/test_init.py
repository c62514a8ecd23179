"""`dragoman init`: what it finds, what it asks, and the file that it writes."""

from __future__ import annotations

import asyncio
import stat
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dragoman.contract.fakes import FakeProvider
from dragoman.local_engine import embedded
from dragoman.proxy.cli.main import app
from dragoman.proxy.config.envfile import read_env, write_variable
from dragoman.proxy.config.load import check
from dragoman.proxy.config.starter import MOST_NAMES, StarterProvider, write_starter

from .conftest import Command


def run(*args: str, typed: str = "", **env: str) -> Result:
    return CliRunner().invoke(app, ["init", *args], input=typed, env=env)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["dragoman.proxy.cli.init"], "_has_terminal", lambda: True)


def test_without_a_provider_the_file_has_the_small_model_and_passes_check(empty_folder: Path, command: Command) -> None:
    result = command("init")
    assert result.exit_code == 0, result.stderr
    assert "models: dragoman-mini" in result.stdout
    checked = command("check")
    assert (checked.exit_code, checked.stderr) == (0, "")


def test_a_file_is_overwritten_only_with_force(empty_folder: Path, command: Command) -> None:
    assert command("init").exit_code == 0
    written = (empty_folder / "dragoman.yaml").read_text("utf-8")
    (empty_folder / "dragoman.yaml").write_text("mine")
    again = command("init")
    assert (again.exit_code, again.stdout) == (2, "")
    assert "--force" in again.stderr
    assert (empty_folder / "dragoman.yaml").read_text("utf-8") == "mine"
    assert command("init", "--force").exit_code == 0
    assert (empty_folder / "dragoman.yaml").read_text("utf-8") == written


def test_it_says_why_it_cannot_write(empty_folder: Path, command: Command) -> None:
    result = command("init", "no/such/folder.yaml")
    assert result.exit_code == 2
    assert "cannot write no/such/folder.yaml: No such file or directory" in result.stderr


def test_without_a_model_nothing_is_written(
    empty_folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "missing_libraries", lambda: ["onnxruntime"])
    result = command("init")
    assert result.exit_code == 2
    assert "nothing to write" in result.stderr and "OPENAI_API_KEY" in result.stderr
    assert not list(empty_folder.iterdir())


async def test_the_models_of_a_provider_of_the_environment_are_listed(empty_folder: Path) -> None:
    async with FakeProvider("openai", api_key="sk-fake") as fake:
        env = {"OPENAI_BASE_URL": fake.base_url, "OPENAI_API_KEY": "sk-fake"}
        result = await asyncio.to_thread(lambda: run(**env))
    assert result.exit_code == 0, result.stderr
    assert "openai: 1 model" in result.stderr
    config = check(empty_folder / "dragoman.yaml", env).config
    assert list(config.models) == ["fake-model", "dragoman-mini"]
    assert config.server.default_model == "fake-model"
    assert "sk-fake" not in (empty_folder / "dragoman.yaml").read_text("utf-8")
    assert not (empty_folder / ".env").exists()


async def test_a_wrong_key_is_a_sentence_and_the_file_has_patterns(empty_folder: Path) -> None:
    async with FakeProvider("openai", api_key="sk-fake") as fake:
        env = {"OPENAI_BASE_URL": fake.base_url, "OPENAI_API_KEY": "sk-wrong"}
        result = await asyncio.to_thread(lambda: run(**env))
    assert result.exit_code == 0
    assert "openai: the list of models was answered with status 401; the file has patterns" in result.stderr
    assert list(check(empty_folder / "dragoman.yaml", env).config.models) == ["*", "dragoman-mini"]


async def test_an_address_without_v1_is_explained(empty_folder: Path) -> None:
    async with FakeProvider("openai", api_key="sk-fake") as fake:
        env = {"OPENAI_BASE_URL": f"{fake.origin}/other", "OPENAI_API_KEY": "sk-fake"}
        result = await asyncio.to_thread(lambda: run(**env))
    assert "status 404; is its base_url right? With OpenAI's API it usually ends with /v1" in result.stderr


def test_two_providers_that_do_not_answer_keep_their_names_apart(empty_folder: Path) -> None:
    env = {
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "OPENAI_API_KEY": "a",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        "ANTHROPIC_API_KEY": "b",
    }
    result = run("--yes", **env)
    assert result.exit_code == 0
    checked = check(empty_folder / "dragoman.yaml", env)
    assert not checked.warnings
    assert {"openai/*", "anthropic/*", "claude-*", "gpt-*", "dragoman-mini"} <= set(checked.config.models)


def test_a_variable_of_an_address_that_is_none_is_explained(empty_folder: Path) -> None:
    result = run(OPENAI_BASE_URL="nonsense", OPENAI_API_KEY="a")
    assert result.exit_code == 2
    assert "error[bad-url]" in result.stderr
    assert not list(empty_folder.iterdir())


async def test_the_env_file_next_to_it_is_read(empty_folder: Path) -> None:
    async with FakeProvider("openai", api_key="sk-fake") as fake:
        (empty_folder / ".env").write_text(f"OPENAI_BASE_URL={fake.base_url}\nOPENAI_API_KEY=sk-fake\n")
        result = await asyncio.to_thread(run)
    assert result.exit_code == 0 and "fake-model" in result.stdout


@pytest.mark.parametrize("choice", ["1", "OpenAI"])
async def test_on_a_terminal_it_asks_for_a_provider_and_keeps_the_key_in_a_file(
    empty_folder: Path, terminal: None, choice: str
) -> None:
    async with FakeProvider("openai", api_key="sk-fake") as fake:
        result = await asyncio.to_thread(lambda: run(typed=f"9\n{choice}\n{fake.base_url}\nsk-fake\n"))
    assert result.exit_code == 0, result.stderr
    assert "a number from 0 to" in result.output, "9 is no choice"
    file = empty_folder / ".env"
    assert read_env(file) == {"OPENAI_BASE_URL": fake.base_url, "OPENAI_API_KEY": "sk-fake"}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(check(empty_folder / "dragoman.yaml", read_env(file)).config.models) == ["fake-model", "dragoman-mini"]
    assert "sk-fake" not in result.output + (empty_folder / "dragoman.yaml").read_text("utf-8")


@pytest.mark.parametrize("choice", ["0", "none"])
def test_no_provider_may_be_chosen(empty_folder: Path, terminal: None, choice: str) -> None:
    result = run(typed=f"{choice}\n")
    assert result.exit_code == 0
    assert list(check(empty_folder / "dragoman.yaml", {}).config.models) == ["dragoman-mini"]


def test_what_is_found_may_be_declined(empty_folder: Path, terminal: None) -> None:
    result = run(typed="n\n0\n", OPENAI_API_KEY="sk-x")
    assert result.exit_code == 0 and "Use openai (OPENAI_API_KEY)?" in result.output
    assert list(check(empty_folder / "dragoman.yaml", {}).config.models) == ["dragoman-mini"]


@pytest.mark.parametrize("ends", [(), ("--yes",)])
def test_without_a_terminal_or_with_yes_nothing_is_asked(
    empty_folder: Path, ends: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["dragoman.proxy.cli.init"], "_has_terminal", lambda: bool(ends))
    result = run(*ends)
    assert result.exit_code == 0 and "?" not in result.output


def test_many_models_become_patterns_and_equal_names_get_a_prefix(tmp_path: Path) -> None:
    settings = {"dialect": "openai", "base_url": "http://127.0.0.1:1/v1"}

    def names(*providers: StarterProvider) -> list[str]:
        (tmp_path / "a.yaml").write_text(write_starter(providers, embedded=False))
        checked = check(tmp_path / "a.yaml", {})
        assert not checked.warnings
        return list(checked.config.models)

    many = [f"m{number}" for number in range(MOST_NAMES + 1)]
    assert names(StarterProvider("a", settings, models=many)) == ["*"]
    one, other = (StarterProvider(name, settings, models=["x", "y:1"]) for name in "ab")
    assert names(one, other) == ["x", "y:1", "b/x", "b/y:1"]
    assert names(StarterProvider("a", settings, models=["dragoman-mini", "null"])) == ["a/dragoman-mini", "null"]


def test_models_whose_names_are_paths_get_public_names(tmp_path: Path) -> None:
    settings = {"dialect": "openai", "base_url": "http://127.0.0.1:1/v1"}
    own = ["/models/qwen 3.gguf", "models/qwen-3.gguf", "m 1", "m+1", "m(1", "é👋"]
    (tmp_path / "a.yaml").write_text(
        write_starter([StarterProvider("a", settings, models=own)], embedded=False), "utf-8"
    )
    checked = check(tmp_path / "a.yaml", {})
    assert not checked.warnings
    found = {name: model.targets[0].model for name, model in checked.config.models.items()}
    assert found == {
        "models/qwen-3.gguf": "/models/qwen 3.gguf",
        "a/models/qwen-3.gguf": "models/qwen-3.gguf",
        "m-1": "m 1",
        "a/m-1": "m+1",
        "a": "é👋",
    }


@pytest.mark.parametrize("value", ["plain", "with space # and sign", 'a"b', "a'b", "", "ü=x"])
def test_a_variable_is_read_as_it_was_written(value: str, tmp_path: Path) -> None:
    (tmp_path / "vars").write_text(write_variable("A", value), "utf-8")
    assert read_env(tmp_path / "vars") == {"A": value}


@pytest.mark.parametrize("value", ["a\nb", "a'b\"c"])
def test_a_value_that_no_line_can_hold_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="quotation marks or line breaks"):
        write_variable("A", value)
