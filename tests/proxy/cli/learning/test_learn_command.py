"""`dragoman learn`: the entry of each fake passes `dragoman check`, and files are never spoiled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.contract.dialects import DIALECTS, load_dialect
from dragoman.contract.servers import FakeServers
from dragoman.proxy.cli.learning.learn_command import name_provider
from dragoman.proxy.config.load import check
from tests.proxy.cli.conftest import Command
from tests.tables import sample_rows

FAKES = [(name, profile) for name in DIALECTS for profile in load_dialect(name).profiles]
KEY = "sk-canary-0123456789"


@pytest.fixture
def start() -> Iterator[FakeServers]:
    with FakeServers() as servers:
        yield servers


@pytest.mark.parametrize(("dialect", "profile"), sample_rows(FAKES, 4))
def test_the_entry_of_each_fake_passes_the_check(
    dialect: str, profile: str, start: FakeServers, command: Command, empty_folder: Path
) -> None:
    fake = start(dialect, profile=profile, api_key=KEY)
    env = {"LEARN_KEY": KEY}
    args = ("learn", fake.origin, "--model", "fake-model", "--api-key-env", "LEARN_KEY", "--yes", "--json", "r.json")
    result = command(*args, **env)
    assert result.exit_code == 0, result.output
    checked = check(empty_folder / "local.yaml", env)
    assert checked.warnings == ()
    provider = checked.config.providers["local"]
    assert (provider.dialect, provider.base_url) == (dialect, fake.base_url)
    assert KEY not in (empty_folder / "local.yaml").read_text("utf-8") + (empty_folder / "r.json").read_text("utf-8")
    for known in ("local.yaml", "r.json"):
        again = command("drift", known, "--yes", "--api-key-env", "LEARN_KEY", **env)
        assert again.exit_code == 0, again.output
        assert again.stdout == ""


def test_drift_shows_what_has_changed_as_a_diff(start: FakeServers, command: Command) -> None:
    fake = start("openai")
    assert command("learn", fake.origin, "--yes", "--json", "r.json").exit_code == 0
    fake.behaviour = "refuses(param=seed)"
    for known, line in (("r.json", "+fields.chat.seed: refused"), ("local.yaml", "+lacks.seed: true")):
        changed = command("drift", known, "--yes", "--json", "new.json", "--force")
        assert changed.exit_code == 1, changed.output
        assert line in changed.stdout.splitlines()
        differences = json.loads(Path("new.json").read_text("utf-8"))["differences"]
        assert any("seed" in one["name"] for one in differences)


def test_the_cost_is_shown_and_nothing_is_sent_without_consent(start: FakeServers, command: Command) -> None:
    fake = start("openai")
    refused = command("learn", fake.origin)
    assert refused.exit_code == 2
    assert "requests with" in refused.stderr
    assert "--yes" in refused.stderr
    assert command("learn", fake.origin, "--dry-run").exit_code == 0
    assert fake.requests == []


def test_a_file_is_overwritten_only_with_force(start: FakeServers, command: Command, empty_folder: Path) -> None:
    fake = start("mindie")
    file = empty_folder / "local.yaml"
    file.write_text("mine", "utf-8")
    assert command("learn", fake.origin, "--yes").exit_code == 2
    assert file.read_text("utf-8") == "mine"
    assert fake.requests == []
    assert command("learn", fake.origin, "--yes", "--force").exit_code == 0
    assert "dialect: mindie" in file.read_text("utf-8")
    assert sorted(one.name for one in empty_folder.iterdir()) == ["local.yaml"]


def test_the_entry_can_go_to_standard_output(start: FakeServers, command: Command, empty_folder: Path) -> None:
    result = command("learn", start("mindie").origin, "--yes", "-o", "-")
    assert result.exit_code == 0
    assert "dialect: mindie" in result.stdout
    assert list(empty_folder.iterdir()) == []


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("ftp://x",), "no address"),
        (("http://me:secret@x/v1",), "password"),
        (("http://x", "--api-key-env", "NOT_SET_HERE"), "not set"),
        (("http://x", "--header", "nonsense"), "name: value"),
        (("http://x", "--header", "Authorization: sk-secret"), "${NAME}"),
        (("http://x", "-o", "no/such/folder/x.yaml"), "no folder"),
    ],
)
def test_wrong_usage_is_explained(args: tuple[str, ...], why: str, command: Command) -> None:
    result = command("learn", *args, "--yes")
    assert result.exit_code == 2
    assert why in result.stderr
    assert "secret" not in result.stderr.replace("write the secret", "")


def test_an_endpoint_that_cannot_be_reached_is_status_3(command: Command, empty_folder: Path) -> None:
    result = command("learn", "http://127.0.0.1:9", "--yes")
    assert result.exit_code == 3
    assert "nothing answers" in result.stderr
    assert list(empty_folder.iterdir()) == []


def test_a_header_with_a_variable_is_sent_and_not_written(start: FakeServers, command: Command) -> None:
    fake = start("openai")
    result = command("learn", fake.origin, "--yes", "-o", "-", "--header", "x-team: ${TEAM}", TEAM="secret-team")
    assert result.exit_code == 0
    assert fake.requests[-1].headers["x-team"] == "secret-team"
    assert "secret-team" not in result.output
    assert "${TEAM}" in result.stdout


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://api.groq.com/openai/v1", "groq"),
        ("http://127.0.0.1:8000", "local"),
        ("http://localhost:1", "local"),
        ("http://10.0.0.8:1025", "learned"),
        ("https://adb-1.azuredatabricks.net", "adb-1"),
        ("https://api.openai.com/v1", "learned"),
    ],
)
def test_the_provider_is_named_after_its_address(url: str, name: str) -> None:
    assert name_provider(url) == name


@pytest.mark.parametrize("text", ["", "{", "providers: [", '{"learned": 2}', "[]"])
def test_drift_explains_a_file_that_it_cannot_read(text: str, command: Command, empty_folder: Path) -> None:
    (empty_folder / "x").write_text(text, "utf-8")
    assert command("drift", "x", "--yes").exit_code == 2


def test_a_key_that_no_header_can_hold_is_explained_and_not_shown(command: Command) -> None:
    arguments = ("learn", "http://127.0.0.1:9", "--api-key-env", "LEARN_KEY", "--yes")
    result = command(*arguments, LEARN_KEY="sk-canary\n1234")
    assert result.exit_code == 2
    assert "character 10 of LEARN_KEY is not allowed in an HTTP header" in result.stderr
    assert "canary" not in result.output
