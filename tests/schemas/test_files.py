"""What holds for every schema file in every profile."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import jsonschema

from dragoman.adapters.dialect_check import SIDES
from dragoman.schemas import Schema, lineage, load, names, profiles
from tests.dialects import called, served
from tests.tables import for_each

from .conftest import Compile, FindProperties, is_patch

PAIRS = [(name, profile) for name in names() for profile in profiles(name)]
REQUESTS = [(name, profile) for name, profile in PAIRS if name.endswith(".request")]
BASES: dict[str, Schema] = {
    "chat": {"model": "m", "messages": [{"role": "user", "content": "x"}]},
    "responses": {"model": "m", "input": "x"},
    "embeddings": {"model": "m", "input": ["x"]},
    "completions": {"model": "m", "prompt": "x"},
    "messages": {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}]},
    "count_tokens": {"model": "m", "messages": [{"role": "user", "content": "x"}]},
}
KNOWN_NOTES = {
    "x-source", "x-neutral", "x-advisory", "x-extension", "x-message", "x-nearest", "x-refused", "x-max-characters",
    "x-recursive", "x-dialect", "x-max-bytes", "x-max-nodes", "x-max-depth", "x-batch", "x-requires",
    "x-extra-parameter", "x-versions",
}  # fmt: skip
EXTENSIONS = {
    "top_k", "min_p", "repetition_penalty", "stop_token_ids", "ignore_eos", "skip_special_tokens",
    "include_stop_str_in_output", "best_of", "use_beam_search", "chat_template_kwargs", "thinking", "cache_control",
    "reasoning_content", "reasoning_details", "reasoning_signature", "native_finish_reason", "extra_fields",
    "citations", "file", "stop_sequence", "context", "extra_content", "provider_specific_fields", "thinking_blocks",
    "client_request_id", "usage_context", "extra_params", "user_security_context",
}  # fmt: skip
RESPONSES_EXTENSIONS = {
    "extra_content", "provider_specific_fields",
    "presence_penalty", "frequency_penalty", "include_usage", "encrypted_content", "client_metadata",
    "client_request_id", "usage_context", "extra_params", "native_code",
}  # fmt: skip
COMPLETIONS_EXTENSIONS = {
    "top_k", "min_p", "repetition_penalty", "stop_token_ids", "ignore_eos", "skip_special_tokens",
    "include_stop_str_in_output", "error_behavior", "use_raw_prompt", "native_finish_reason",
    "client_request_id", "usage_context", "extra_params",
}  # fmt: skip

EMBEDDINGS_EXTENSIONS = {
    "instruction", "input_type", "id", "client_request_id", "usage_context", "extra_params",
}  # fmt: skip
CLOSED = {
    "chat": EXTENSIONS,
    "responses": RESPONSES_EXTENSIONS,
    "completions": COMPLETIONS_EXTENSIONS,
    "embeddings": EMBEDDINGS_EXTENSIONS,
    "messages": set(),
}

every_schema = for_each(("name", "profile"), PAIRS)
every_request = for_each(("name", "profile"), REQUESTS)


def nodes(value: object) -> Iterator[Schema]:
    """Every object in a schema file, whatever it stands for."""
    if isinstance(value, dict):
        yield value
        for child in value.values():
            yield from nodes(child)
    elif isinstance(value, list):
        for child in value:
            yield from nodes(child)


def test_every_dialect_has_every_side() -> None:
    wanted = {
        f"{dialect}/{protocol}.{side}"
        for protocol, sides in SIDES.items()
        for dialect in {*served(protocol), *called(protocol)}
        for side in sides
    }
    wanted |= {f"hub/{protocol}.{side}" for protocol, sides in SIDES.items() for side in sides if side != "error"}
    assert wanted <= set(names())
    assert profiles("mindie/chat.request") == ("documented", "actual", "native")
    assert profiles("databricks/chat.request") == ("documented", "actual")
    for protocol in ("responses", "completions"):
        assert profiles(f"databricks/{protocol}.request") == ("documented", "actual")
    assert profiles("hub/chat.request") == profiles("hub/responses.request") == ("documented",)


@every_schema
def test_a_schema_is_valid_draft_2020_12(name: str, profile: str) -> None:
    schema = load(name, profile)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema)


@every_schema
def test_a_schema_compiles_without_fetching_references(name: str, profile: str, compiled: Compile) -> None:
    assert not compiled(name, profile).is_valid([])


@every_schema
def test_references_lead_to_definitions_of_the_same_file(name: str, profile: str) -> None:
    schema = load(name, profile)
    used = {node["$ref"] for node in nodes(schema) if isinstance(node.get("$ref"), str)}
    assert {ref.removeprefix("#/$defs/") for ref in used} == set(schema.get("$defs", {}))


@every_schema
def test_a_schema_has_no_alternatives(name: str, profile: str) -> None:
    """Discriminated shapes are told apart by if and then, so that errors carry the culprit's own path."""
    assert not [node for node in nodes(load(name, profile)) if {"oneOf", "anyOf"} & node.keys()]


@every_schema
def test_every_property_has_a_source(name: str, profile: str, declared: FindProperties) -> None:
    bad = [place for place, rule in declared(load(name, profile)) if not _is_source(rule.get("x-source"))]
    assert not bad


def _is_source(source: object) -> bool:
    listed = source if isinstance(source, list) else [source]
    return bool(listed) and all(isinstance(text, str) and len(text) > 8 for text in listed)


@every_schema
def test_annotations_are_spelt_right(name: str, profile: str) -> None:
    used = {key for node in nodes(load(name, profile)) for key in node if key.startswith("x-")}
    assert used <= KNOWN_NOTES


@every_schema
def test_neutral_and_advisory_values_are_valid(name: str, profile: str, declared: FindProperties) -> None:
    schema = load(name, profile)
    for place, rule in declared(schema):
        listed = rule.get("x-advisory", [])
        assert listed is True or isinstance(listed, list), place
        values = [*rule.get("x-neutral", []), *(listed if isinstance(listed, list) else [])]
        validator = jsonschema.Draft202012Validator({**rule, "$defs": schema.get("$defs", {})})
        for value in values:
            assert value is not None, f"{place}: null counts as absent anyway"
            assert validator.is_valid(value), f"{place}: {value!r}"


@every_schema
def test_a_message_is_one_plain_line(name: str, profile: str) -> None:
    for node in nodes(load(name, profile)):
        text = node.get("x-message")
        if isinstance(text, str):
            assert 15 < len(text) < 140 and "\n" not in text and not text.endswith(".")


@every_request
def test_requests_are_open_at_the_top(name: str, profile: str) -> None:
    assert "additionalProperties" not in load(name, profile)


@every_request
def test_optional_top_level_properties_take_null(name: str, profile: str, compiled: Compile) -> None:
    schema = load(name, profile)
    body = BASES[_protocol(name)]
    refusing = {
        key
        for key in schema["properties"].keys() - body.keys()
        if not compiled(name, profile).is_valid({**body, key: None})
    }
    assert refusing == NOT_NULL.get((name, profile), set())


NOT_NULL = {
    ("mindie/chat.request", "actual"): {"chat_template_kwargs"},
    ("mindie/chat.request", "native"): {"chat_template_kwargs"},
    ("databricks/responses.request", "documented"): {"background", "store", "conversation", "service_tier"},
}


def _protocol(name: str) -> str:
    return name.split("/")[1].split(".")[0]


@every_request
def test_nested_objects_are_closed_where_the_servers_refuse_unknown_keys(name: str, profile: str) -> None:
    passed_on = is_patch(name) or (name, profile) == ("databricks/responses.request", "actual")
    closed = name.split("/")[0] in ("databricks", "azure") and not passed_on
    for place, rule in _objects(load(name, profile)):
        branches = "allOf" in rule and "additionalProperties" not in rule
        if branches or place.endswith("/parameters"):
            continue  # a union, whose branches are checked; a user's own schema
        assert (rule.get("additionalProperties") is False) == closed, place


def _objects(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """The objects with properties below the top level."""

    def walk(rule: object, place: str) -> Iterator[tuple[str, Schema]]:
        if isinstance(rule, dict):
            if place and "properties" in rule:
                yield place, rule
            for key in ("properties", "$defs"):
                for child_name, child in rule.get(key, {}).items():
                    yield from walk(child, f"{place}/{child_name}")
            yield from walk(rule.get("items"), f"{place}/items")

    return walk(schema, "")


def test_extensions_are_a_closed_list(declared: FindProperties) -> None:
    for name, profile in PAIRS:
        found = {place.rsplit("/", 1)[1] for place, rule in declared(load(name, profile)) if rule.get("x-extension")}
        assert found == set() if not name.startswith("hub/") else found <= set().union(*CLOSED.values())
    for protocol, wanted in CLOSED.items():
        everywhere = {
            place.rsplit("/", 1)[1]
            for side in ("request", "reply", "event")
            if f"hub/{protocol}.{side}" in names()
            for place, rule in declared(load(f"hub/{protocol}.{side}"))
            if rule.get("x-extension")
        }
        assert everywhere == wanted


def test_the_hub_knows_every_parameter_of_every_dialect() -> None:
    for name, profile in REQUESTS:
        protocol = _protocol(name).replace("count_tokens", "messages")
        hub = load(f"hub/{protocol}.request")["properties"].keys()
        assert load(name, profile)["properties"].keys() <= hub, (name, profile)


def test_refused_words_are_in_no_request_schema() -> None:
    refused = load("hub/chat.request")["x-refused"]
    assert refused == sorted(set(refused))
    assert {
        "api_base",
        "base_url",
        "api_key",
        "custom_host",
        "extra_headers",
        "extra_body",
        "extra_query",
        "model_list",
    } <= set(refused)
    assert {
        "user_config",
        "proxies",
        "fallbacks",
        "litellm_params",
        "custom_llm_provider",
        "chat_template",
        "lora",
        "lora_path",
    } <= set(refused)
    for name, profile in REQUESTS:
        assert not load(name, profile)["properties"].keys() & set(refused)


def test_every_patch_changes_its_schema() -> None:
    root = files("dragoman.schemas")
    patched = [
        file for folder in root.iterdir() if folder.is_dir() for file in folder.iterdir() if file.name.count(".") == 3
    ]
    for file in patched:
        name, profile, _ = f"{Path(str(file)).parent.name}/{file.name}".rsplit(".", 2)
        _, base, *_ = lineage(name.partition("/")[0], profile)
        assert load(name, profile) != load(name, base), file
    assert len(patched) > 30
