"""`dragoman schema`."""

from __future__ import annotations

import json

from dragoman import schemas

from .conftest import Command


def test_schema_prints_a_dialects_schema_in_a_profile(command: Command) -> None:
    documented = json.loads(command("schema", "databricks/chat.request").stdout)
    actual = json.loads(command("schema", "databricks/chat.request", "--profile", "actual").stdout)
    assert documented == schemas.load("databricks/chat.request")
    assert actual == schemas.load("databricks/chat.request", "actual")
    assert documented != actual


def test_schema_prints_the_schema_of_the_configuration(command: Command) -> None:
    assert json.loads(command("schema", "config").stdout)["title"] == "dragoman.yaml"


def test_schema_lists_the_names(command: Command) -> None:
    assert command("schema", "--list").stdout.split() == ["config", "models", *schemas.model_files(), *schemas.names()]


def test_an_unknown_schema_is_refused_with_a_suggestion(command: Command) -> None:
    result = command("schema", "mindi/chat.request")
    assert (result.exit_code, result.stdout) == (2, "")
    assert 'did you mean "mindie/chat.request"?' in result.stderr
    assert command("schema").exit_code == 2
    assert command("schema", "config", "--profile", "newest").exit_code == 2
