"""The schema for editors: generated, complete, and of one mind with the loader."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from dragoman import schemas
from dragoman.proxy.config.schema import generate, text
from dragoman.proxy.config.starter import STARTER

ROOT = Path(__file__).parents[3]
SCHEMA = generate()
JUDGE = Draft202012Validator(SCHEMA)


def parsed(yaml: str) -> Any:
    return json.loads(json.dumps(YAML(typ="safe", pure=True).load(yaml), default=str))


def test_the_file_is_what_the_models_say() -> None:
    assert (ROOT / "schemas/config.json").read_text("utf-8") == text(), (
        "python -m dragoman.proxy.config.schema writes it"
    )


def test_it_is_a_schema_and_disturbs_no_other() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert not [name for name in schemas.names() if "config" in name]
    assert schemas.load("config") == SCHEMA


def fields(schema: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {}).items()
        for inner in schema.values():
            yield from fields(inner)


def test_every_field_is_described() -> None:
    found = list(fields(SCHEMA))
    assert len(found) > 50
    assert not [name for name, schema in found if not schema.get("description")]
    assert not [name for name, schema in found if "x-unit" in json.dumps(schema)]


@pytest.mark.parametrize(
    "yaml", [STARTER, *((ROOT / "examples" / name).read_text() for name in ("dragoman.yaml", "fakes.yaml"))]
)
def test_good_files_are_good_for_editors(yaml: str) -> None:
    assert not list(JUDGE.iter_errors(parsed(yaml)))


@pytest.mark.parametrize(
    "server",
    ["{port: 1}", '{port: "${PORT}"}', "{body_limit: 32MiB, header_timeout: 500ms}", '{header_timeout: "${T:-3s}"}',
     "{profiles: {azure: actual}}", "{default_model: m}", '{profiles: {azure: "${P}"}}'],
)  # fmt: skip
def test_good_values(server: str) -> None:
    assert JUDGE.is_valid(parsed(f"server: {server}\nmodels: {{}}"))


@pytest.mark.parametrize(
    "server",
    ["{port: 70000}", '{port: "80"}', "{body_limit: 32}", "{header_timeout: 30x}", "{prot: 1}",
     "{profiles: {azur: actual}}", "{default_model: a b}", "{profiles: {azure: new}}"],
)  # fmt: skip
def test_bad_values(server: str) -> None:
    assert not JUDGE.is_valid(parsed(f"server: {server}\nmodels: {{}}"))


def test_names_are_judged() -> None:
    assert not JUDGE.is_valid(parsed('models: {"a b": {targets: [{provider: p}]}}'))
    assert JUDGE.is_valid(parsed('models: {"a-*": {targets: [{provider: p}]}}'))
    assert not JUDGE.is_valid({"providers": {}}), "models are required"
