"""What a provider may send by the published schemas, and a hub schema for replies does not take, has a reason.

The hub's schemas say what dragoman emits, so they may be narrower than the published ones. But whatever they refuse is
a defect of a reply that had to be repaired: each key with a narrower rule says so in its `x-source`, in an entry that
begins with `narrower:` and says what becomes of the other values.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import pytest

from dragoman.schemas import Schema, load

MARK = "narrower:"

PUBLISHED: dict[str, tuple[tuple[str, str], ...]] = {
    "hub/chat.reply": (("openai_chat", "CreateChatCompletionResponse"),),
    "hub/chat.event": (("openai_chat", "CreateChatCompletionStreamResponse"),),
    "hub/completions.reply": (("openai_chat", "CreateCompletionResponse"),),
    "hub/embeddings.reply": (("openai_chat", "CreateEmbeddingResponse"),),
    "hub/responses.reply": (("openai_chat", "Response"), ("openresponses", "ResponseResource")),
    "hub/responses.event": (("openai_chat", "ResponseStreamEvent"), ("openresponses", "*StreamingEvent")),
}
"""Hub schema -> the published ones. What it emits has to satisfy each, so it may refuse what one of them refuses."""


class Narrower(NamedTuple):
    """A value that the published schema takes and the hub does not: the key, and what is refused there."""

    path: str
    refused: str
    has_reason: bool


@cache
def spec(name: str) -> Schema:
    found: Schema = json.loads(files("llm_comply.specs").joinpath(f"{name}.json").read_text("utf-8"))
    return found


def published(name: str, schema: str) -> Schema:
    schemas = spec(name)["components"]["schemas"]
    if schema.startswith("*"):
        return {"oneOf": [rule for key, rule in schemas.items() if key.endswith(schema[1:])]}
    found: Schema = schemas[schema]
    return found


def resolve(rule: Schema, root: Schema) -> Schema:
    while "$ref" in rule:
        found: Any = root
        for part in rule["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        rule = {**found, **{key: value for key, value in rule.items() if key != "$ref"}}
    return rule


def alternatives(rule: Schema, root: Schema) -> list[Schema]:
    """The rule as plain rules, of which a value has to satisfy one: unions and `allOf` are resolved, and so is the
    `if` of the hub's schemas, which chooses by a type."""
    rule = resolve(rule, root)
    plain = {key: value for key, value in rule.items() if key not in ("anyOf", "oneOf", "allOf")}
    made = [plain]
    for union in (rule.get("anyOf"), rule.get("oneOf")):
        if union:
            made = [merge(one, part) for one in made for other in union for part in alternatives(other, root)]
    branches = [part for part in rule.get("allOf") or () if "if" in part]
    for part in rule.get("allOf") or ():
        if "if" not in part:
            made = [merge(one, other) for one in made for other in alternatives(part, root)]
    chosen = [
        merge(merge(one, condition(part["if"], root)), other)
        for part in branches
        for one in made
        for other in alternatives(part["then"], root)
    ]
    return chosen + made


def condition(rule: Schema, root: Schema) -> Schema:
    return {key: value for key, value in rule.items() if key != "required"}


def merge(one: Schema, other: Schema) -> Schema:
    properties = {**one.get("properties", {}), **other.get("properties", {})}
    for key in one.get("properties", {}).keys() & other.get("properties", {}).keys():
        properties[key] = {**one["properties"][key], **other["properties"][key]}
    required = [*one.get("required", ()), *other.get("required", ())]
    merged = {**one, **other, "required": required}
    if properties:
        merged["properties"] = properties
    return merged


def types(rule: Schema) -> set[str]:
    given = rule.get("type")
    if isinstance(given, str):
        return {given}
    if given:
        return set(given)
    values = words(rule)
    if values is not None:
        return {"null" if value is None else "string" if isinstance(value, str) else "number" for value in values}
    return {"object"} if "properties" in rule else {"any"}


def words(rule: Schema) -> list[Any] | None:
    return [rule["const"]] if "const" in rule else rule.get("enum")


def label(rule: Schema) -> set[Any]:
    """The values of the key that tells the objects of a union apart."""
    properties = rule.get("properties", {})
    return set(words(properties.get("type", {})) or ())


def narrower(
    hub: Schema, hub_root: Schema, public: Schema, root: Schema, path: str, seen: frozenset[Any]
) -> Iterator[Narrower]:
    ours, theirs = alternatives(hub, hub_root), alternatives(public, root)
    key = (path.rsplit(".", 1)[-1], json.dumps(theirs, sort_keys=True)[:2000])
    if key in seen:
        return
    seen |= {key}
    reason = has_reason(hub)
    taken = {kind for one in ours for kind in types(one)}
    if "any" in taken:
        return
    given = {kind for one in theirs for kind in types(one)} - {"any"}
    missing = given - taken - ({"integer"} if "number" in taken else set())
    if missing:
        yield Narrower(path, ", ".join(sorted(missing)), reason)
    yield from narrower_words(ours, theirs, path, reason)
    for name in ("minimum", "minLength", "minItems", "pattern", "maximum", "maxLength", "maxItems"):
        limits = {one[name] for one in ours if name in one}
        is_count = (name, limits) == ("minimum", {0})  # published as integers without a bound
        if limits and not is_count and len(ours) == 1 and not any(name in one or words(one) for one in theirs):
            yield Narrower(path, name, reason)
    for one in theirs:
        if "object" in types(one):
            yield from narrower_objects(ours, hub_root, one, root, path, seen)
        if "array" in types(one) and "items" in one:
            for mine in ours:
                if "items" in mine:
                    yield from narrower(mine["items"], hub_root, one["items"], root, f"{path}[]", seen)


def narrower_words(ours: list[Schema], theirs: list[Schema], path: str, reason: bool) -> Iterator[Narrower]:
    mine = [one for one in ours if "string" in types(one)]
    if not mine or any(words(one) is None for one in mine):
        return
    known = {word for one in mine for word in words(one) or ()}
    for one in theirs:
        if "string" not in types(one):
            continue
        listed = words(one)
        missing = (
            ["any text"] if listed is None else [str(word) for word in listed if word not in known and word is not None]
        )
        if missing:
            yield Narrower(path, ", ".join(missing), reason)


def narrower_objects(
    ours: list[Schema], hub_root: Schema, public: Schema, root: Schema, path: str, seen: frozenset[Any]
) -> Iterator[Narrower]:
    objects = [one for one in ours if "object" in types(one)]
    mine = next((one for one in objects if label(one) & label(public)), None)
    if mine is None:
        mine = next((one for one in objects if not label(one)), None)
        if mine is None:
            if objects:
                yield Narrower(
                    path, f"objects of type {', '.join(map(str, label(public)))}", all(map(has_reason, objects))
                )
            return
    where = f"{path}<{next(iter(label(public)))}>" if label(public) and len(objects) > 1 else path
    wanted = set(mine.get("required", ())) - set(public.get("required", ()))
    properties = mine.get("properties", {})
    for key in sorted(wanted):
        yield Narrower(
            f"{where}.{key}",
            "missing",
            has_reason(resolve(properties.get(key, {}), hub_root)) or has_reason(properties.get(key, {})),
        )
    for key, rule in public.get("properties", {}).items():
        if key in properties:
            yield from narrower(properties[key], hub_root, rule, root, f"{where}.{key}", seen)


def has_reason(rule: Schema) -> bool:
    sources = rule.get("x-source", [])
    return any(one.startswith(MARK) for one in ([sources] if isinstance(sources, str) else sources))


@pytest.mark.parametrize("hub", PUBLISHED)
def test_what_the_hub_refuses_and_the_published_schemas_take_has_a_reason(hub: str) -> None:
    root = load(hub)
    found = [
        {
            f"{one.path}: {one.refused}"
            for one in narrower(root, root, published(source, schema), spec(source), "", frozenset())
            if not one.has_reason
        }
        for source, schema in PUBLISHED[hub]
    ]
    assert sorted(set.intersection(*found)) == []


def test_a_narrower_rule_is_found() -> None:
    root = copy.deepcopy(load("hub/responses.reply"))
    root["properties"]["incomplete_details"]["properties"]["reason"]["enum"] = ["max_output_tokens"]
    root["properties"]["model"]["type"] = ["integer"]
    root["properties"]["id"]["x-source"] = "Open Responses"
    rule, source = published("openresponses", "ResponseResource"), spec("openresponses")
    found = {
        f"{one.path}: {one.refused}"
        for one in narrower(root, root, rule, source, "", frozenset())
        if not one.has_reason
    }
    assert found >= {".incomplete_details.reason: any text", ".model: string", ".id: minLength"}
