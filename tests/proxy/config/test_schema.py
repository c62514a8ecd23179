"""The schema for editors: up to date, complete, and consistent with the loader."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from dragoman import schemas
from dragoman.proxy.config.schema import generate_schema, serialize_schema
from dragoman.proxy.config.starter import write_starter
from dragoman.schemas import Schema

ROOT = Path(__file__).parents[3]
SCHEMA = generate_schema()
VALIDATOR = Draft202012Validator(SCHEMA)


def parse(yaml: str) -> object:
    """The values as an editor sees them: dates are texts."""
    value: object = json.loads(json.dumps(YAML(typ="safe", pure=True).load(yaml), default=str))
    return value


def test_the_file_is_up_to_date() -> None:
    assert (ROOT / "schemas/config.json").read_text("utf-8") == serialize_schema(), (
        "python -m dragoman.proxy.config.schema writes it"
    )


def test_the_schema_does_not_depend_on_the_order_of_imports() -> None:
    """The command line imports other types of the same words first."""
    code = "import dragoman.contract.options, dragoman.proxy.config.schema as s; print(s.serialize_schema(), end='')"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert found == serialize_schema()


def test_the_configurations_schema_is_valid_and_not_listed_with_the_dialects() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert not [name for name in schemas.names() if "config" in name]
    assert schemas.load("config") == SCHEMA


def fields(schema: object) -> Iterator[tuple[str, Schema]]:
    """Every property in the schema, at any depth."""
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
    "yaml",
    [
        write_starter([], embedded=True),
        *((ROOT / "examples" / name).read_text() for name in ("dragoman.yaml", "fakes.yaml")),
    ],
)
def test_valid_files_are_valid_in_editors(yaml: str) -> None:
    assert not list(VALIDATOR.iter_errors(parse(yaml)))


@pytest.mark.parametrize(
    "server",
    ["{port: 1}", '{port: "${PORT}"}', "{body_limit: 32MiB, header_timeout: 500ms}", '{header_timeout: "${T:-3s}"}',
     "{profiles: {azure: actual}}", "{default_model: m}", '{profiles: {azure: "${P}"}}'],
)  # fmt: skip
def test_valid_values_are_accepted(server: str) -> None:
    assert VALIDATOR.is_valid(parse(f"server: {server}\nmodels: {{}}"))


@pytest.mark.parametrize(
    "server",
    ["{port: 70000}", '{port: "80"}', "{body_limit: 32}", "{header_timeout: 30x}", "{prot: 1}",
     "{profiles: {azur: actual}}", "{default_model: a b}", "{profiles: {azure: new}}"],
)  # fmt: skip
def test_invalid_values_are_refused(server: str) -> None:
    assert not VALIDATOR.is_valid(parse(f"server: {server}\nmodels: {{}}"))


def test_names_of_models_are_checked() -> None:
    assert not VALIDATOR.is_valid(parse('models: {"a b": {targets: [{provider: p}]}}'))
    assert VALIDATOR.is_valid(parse('models: {"a-*": {targets: [{provider: p}]}}'))
    assert not VALIDATOR.is_valid({"providers": {}}), "models are required"
