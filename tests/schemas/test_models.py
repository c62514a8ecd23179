"""What holds for the facts about well-known models: their files are valid, and each fact has a source."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from dragoman.adapters.model_facts import Family, find_facts, load_families
from dragoman.adapters.registry import NAMES
from dragoman.schemas import Schema, load, model_files
from tests.tables import for_each

FILES = {name: load(name) for name in model_files()}
FAMILIES = load_families()
LADDER = load("models")["$defs"]["effort"]["enum"]

every_file = pytest.mark.parametrize("content", FILES.values(), ids=list(FILES))
every_family = for_each("family", FAMILIES)


@every_file
def test_a_file_is_valid(content: Schema) -> None:
    schema = load("models")
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(content, schema, jsonschema.Draft202012Validator)


def test_a_fact_without_a_source_is_invalid() -> None:
    content = json.loads(json.dumps(FILES["models/xai"]))
    del content["families"][0]["facts"][0]["source"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, load("models"), jsonschema.Draft202012Validator)


@every_file
def test_every_source_exists_and_is_used(content: Any) -> None:
    used = {entry["source"] for family in content["families"] for entry in family["facts"]}
    used |= {content["services"]["source"]} if "services" in content else set()
    assert used == content["sources"].keys()


@every_file
def test_levels_of_effort_are_in_order_and_have_the_default(content: Any) -> None:
    for entry in (entry for family in content["families"] for entry in family["facts"]):
        levels = entry.get("efforts", [])
        assert levels == sorted(levels, key=LADDER.index)
        assert not levels or entry.get("default_effort", levels[0]) in levels


def test_dialects_are_those_of_the_registry() -> None:
    assert load("models")["$defs"]["dialect"]["enum"] == list(NAMES)


def test_titles_tell_families_apart() -> None:
    titles = [family.title for family in FAMILIES]
    assert len(titles) == len(set(titles))
    assert len(FILES) == len({family.vendor for family in FAMILIES})


@every_family
def test_a_family_has_its_examples(family: Family) -> None:
    for name in family.examples:
        facts = find_facts(name)
        assert family.title in facts.families, name
        assert facts.vendor == family.vendor


def test_what_is_refused_are_parameters_of_the_hub() -> None:
    protocols = ("chat", "responses", "embeddings")
    known = {name for protocol in protocols for name in load(f"hub/{protocol}.request")["properties"]}
    for family in FAMILIES:
        assert {name for entry in family.facts for name in entry.get("refuses", ())} <= known
