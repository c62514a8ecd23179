"""The page of all settings: a table for each object of the configuration file, from `schemas/config.json`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from dragoman.schemas import Schema

from .markdown import HEAD, code, lines, table

__all__ = ["settings_page"]

_TITLES = ("Key", "Value", "Default", "Meaning")
_REF = "#/$defs/"
_PATTERNS = {"(ms|s|m|h|d)": "duration, as `30s`", "[KMG]iB": "size, as `32MiB`"}


def settings_page(schema: Schema) -> str:
    """The page of the schema of the configuration file."""
    places = _find_places(schema)
    body = [
        HEAD,
        "",
        *lines(
            "# Settings",
            "Every key of `dragoman.yaml`. [Configuration](configuration.md) explains them by examples; `dragoman "
            "check` reports what does not fit together; `dragoman schema config` prints the schema, for editors that "
            "complete and check YAML.",
            "`NAME` is a name that you choose. Any value can be `${VARIABLE}`, which the environment or `.env` "
            "sets, or `${file:/path}`.",
            "## The file",
        ),
        *_list_keys(schema, places),
    ]
    for name, place in sorted(places.items(), key=lambda item: item[1][0]):
        rule = schema["$defs"][name]
        also = [code(one) for one in place[1:]]
        body += lines(f"## {place[0]}", *([f"The same keys: {', '.join(also)}."] if also else []))
        body += _list_keys(rule, places)
    return "\n".join(body).rstrip("\n") + "\n"


def _find_places(schema: Schema) -> dict[str, list[str]]:
    """Where each object of `$defs` that has keys can stand, the shortest place first."""
    places: dict[str, list[str]] = {}
    waiting = [("", schema)]
    while waiting:
        path, rule = waiting.pop(0)
        for key, child in rule.get("properties", {}).items():
            for step, name in _find_references(child):
                place = f"{path}.{key}{step}".lstrip(".")
                if "properties" not in schema["$defs"][name]:
                    continue
                if name not in places:
                    waiting.append((place, schema["$defs"][name]))
                places.setdefault(name, []).append(place)
    return places


def _find_references(rule: Schema) -> Iterator[tuple[str, str]]:
    """The names of `$defs` that the rule leads to, each with the step to it: into a list, or below a name."""
    if "$ref" in rule:
        yield "", rule["$ref"].removeprefix(_REF)
    for branch in rule.get("anyOf", ()):
        yield from _find_references(branch)
    for word, step in (("items", "[]"), ("additionalProperties", ".NAME")):
        if isinstance(rule.get(word), dict):
            yield from ((f"{step}{inner}", name) for inner, name in _find_references(rule[word]))


def _list_keys(rule: Schema, places: Mapping[str, list[str]]) -> list[str]:
    required = {*rule.get("required", ())}
    rows = [
        (
            code(key),
            _describe_type(child, places),
            "required" if key in required else _describe_default(child),
            " ".join(child.get("description", "").split()),
        )
        for key, child in rule["properties"].items()
    ]
    return table(_TITLES, rows)


def _describe_default(rule: Schema) -> str:
    default = rule.get("default")
    if default is None or default in ({}, []):
        return ""
    return code(default if isinstance(default, str) else json.dumps(default))


def _describe_type(rule: Schema, places: Mapping[str, list[str]]) -> str:
    return " or ".join(dict.fromkeys(_list_types(rule, places)))


def _list_types(rule: Schema, places: Mapping[str, list[str]]) -> Iterator[str]:
    """The kinds of values, without null and variables, which any value can be."""
    if "$ref" in rule:
        name = rule["$ref"].removeprefix(_REF)
        if name in places:
            yield f"[{places[name][0]}](#{_make_anchor(places[name][0])})"
        return
    for branch in rule.get("anyOf", ()):
        yield from _list_types(branch, places)
    if "enum" in rule:
        yield ", ".join(code(value if isinstance(value, str) else json.dumps(value)) for value in rule["enum"])
    elif "const" in rule:
        yield code(json.dumps(rule["const"]))
    elif rule.get("type") == "array":
        yield f"list of {_describe_type(rule.get('items', {}), places) or 'values'}"
    elif rule.get("type") == "object":
        values = rule.get("additionalProperties")
        yield f"names with {(_describe_type(values, places) if isinstance(values, dict) else '') or 'values'}"
    elif rule.get("type") == "string":
        yield next((text for part, text in _PATTERNS.items() if part in rule.get("pattern", "")), "text")
    elif rule.get("type") in ("integer", "number"):
        yield _describe_number(rule)
    elif rule.get("type") == "boolean":
        yield "true, false"


def _describe_number(rule: Schema) -> str:
    low = f"at least {rule['minimum']}" if "minimum" in rule else ""
    low = f"above {rule['exclusiveMinimum']}" if "exclusiveMinimum" in rule else low
    high = f"at most {rule['maximum']}" if "maximum" in rule else ""
    if "minimum" in rule and "maximum" in rule:
        low, high = f"{rule['minimum']} to {rule['maximum']}", ""
    return ", ".join(filter(None, (rule["type"], low, high)))


def _make_anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
