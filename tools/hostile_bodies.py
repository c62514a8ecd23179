"""Request bodies that cost a server as much as they can, for each field that the dialects' request schemas know.

Each body is a sample request of a dialect and protocol with one field replaced: by countless values, deep levels, equal
keys, long strings or long numbers. `bench/hostile_bodies.py` sends thousands of them to a running proxy, and
tests/e2e/test_hostile_bodies.py some smaller ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from dragoman.adapters.registry import dialects
from dragoman.adapters.samples import load_sample
from dragoman.adapters.validation import request_validator
from tools.docs.shape import Place, format_place, read_shape

__all__ = ["Hostile", "draw_bodies", "list_places"]

_HOLE = "the value at this place"

_ITEMS = (
    "{}", "[]", '""', "1", "-1.5e5", "null", "true", '"abcdefgh"', '"\\u0061"', '{"a":1}', '{"a":{"b":[]}}', "[[1]]",
    '{"role":"user","content":"x"}', '{"role":"assistant"}', '{"type":"text","text":"x"}', '{"type":"function"}',
    '{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}', '{"role":"user","content":[{}]}',
    '{"type":"message","role":"user","content":[]}', '{"type":"function_call","call_id":"c","name":"f","arguments":""}',
    '{"role":"user","content":"x","name":"n"}', '{"role":"user","content":"x","z":1}', '{"role":"x"}', '{"type":"x"}',
    '{"a":1,"a":2}', "123456789012345678901234567890", "1e400", "1.0000000000000000000",
)  # fmt: skip
_MEMBERS = ('"k%d":1', '"k%d":{}', '"%d":""', '"a":1', '"k%d":{"type":"string","pattern":"(a+)+$"}')
_LEVELS = (
    ("[", "]"),
    ('{"a":', "}"),
    ('{"$ref":"#","not":', "}"),
    ('{"properties":{"a":', "}}"),
    ('[{"content":', "}]"),
)
_TEXTS = ("A", "é", "\\n", '\\"', "\\\\", "\\u00e9", "{[,", "a, b: c. ", '{\\"a\\": [1, \\"b\\"]}, ')
_DEPTHS = (20, 60, 126, 250, 1_000, 100_000)


@dataclass(frozen=True, slots=True)
class Hostile:
    """One body. `name` says what it is: the place and its value."""

    dialect: str
    protocol: str
    path: str
    name: str
    data: bytes


def list_places(dialect: str, protocol: str) -> list[Place]:
    """The fields of a dialect's requests, and one that no schema has."""
    return list(_read_places(dialect, protocol))


@cache
def _read_places(dialect: str, protocol: str) -> tuple[Place, ...]:
    validator = request_validator(dialect, protocol, dialects[dialect].served_profile)
    assert validator is not None
    return tuple(place for place in read_shape(validator.schema).fields if place[-1].name != "model")


def draw_bodies(random: Random, values: int, size: int, models: tuple[str, ...]) -> Iterator[Hostile]:
    """Draw bodies without end, of about `values` values or `size` bytes; some are smaller, some have more values."""
    routes = [(dialect.name, protocol) for dialect in dialects.values() for protocol in dialect.served]
    while True:
        name, protocol = random.choice(routes)
        place = random.choice(list_places(name, protocol))
        label, filler = _draw_filler(random, values, size)
        head, tail = _build_frame(name, protocol, place, random.choice(models), random.random() < 0.3)
        path = [path for path in dialects[name].served_paths(protocol) if "{" not in path][-1]
        text = f"{format_place(place)} = {label}"
        yield Hostile(name, protocol, path, text, head + filler + tail)


def _build_frame(dialect: str, protocol: str, place: Place, model: str, is_extra: bool) -> tuple[bytes, bytes]:
    """The text before and after the hole in a request; `is_extra`: next to the field, under an unknown key."""
    body = deepcopy(load_sample(dialect, protocol)["request"])
    body["model"] = model
    holder = body
    for step in place[:-1]:
        holder = _descend(holder, step.name, step.many)
        if step.when is not None:
            holder[step.when.key] = step.when.values[0]
    holder["extra" if is_extra else place[-1].name] = _HOLE
    head, _, tail = json.dumps(body, separators=(",", ":")).partition(json.dumps(_HOLE))
    return head.encode(), tail.encode()


def _descend(holder: dict[str, Any], name: str, many: bool) -> dict[str, Any]:
    found = holder.get(name)
    if isinstance(found, list) and found:
        found = found[0]
    if not isinstance(found, dict):
        found = {"content": "x"} if name in ("messages", "input") else {}
    holder[name] = [found] if many else found
    return found


def _draw_filler(random: Random, values: int, size: int) -> tuple[str, bytes]:
    """A value for the hole, and what it is."""
    space = random.choice(("", "", " "))
    kind = random.choice(("items", "items", "members", "levels", "text", "number"))
    if kind == "levels":
        (opening, closing), depth = random.choice(_LEVELS), random.choice(_DEPTHS)
        wide = _count(random, values, size, depth, len(opening + closing) * depth)
        return f"{wide} x {depth} levels {opening}", _join(
            ["1".join((opening * depth, closing * depth))] * wide, "[]", ""
        )
    if kind == "text":
        unit = random.choice(_TEXTS)
        length = random.choice((size // 100, size // 10, size * 9 // 10))
        return f"{length} bytes of {unit}", b'"%b"' % (unit.encode() * (length // len(unit.encode())))
    if kind == "number":
        length = random.choice((25, 5_000, size // 10))
        start = random.choice(("", "0.", "1e", "-"))
        return f"{start} and {length} digits", (start + "1" * length).encode()
    if kind == "items":
        unit = random.choice(_ITEMS)
        number = _count(random, values, size, _weigh(unit), len(unit) + 1)
        return f"{number} items {unit}{space}", _join([unit] * number, "[]", space)
    unit = random.choice(_MEMBERS)
    number = _count(random, values, size, _weigh(unit), len(unit) + 5)
    members = [unit % i for i in range(number)] if "%" in unit else [unit] * number
    return f"{number} members {unit}{space}", _join(members, "{}", space)


def _join(parts: list[str], brackets: str, space: str) -> bytes:
    return f"{brackets[0]}{f',{space}'.join(parts)}{brackets[1]}".encode()


def _weigh(unit: str) -> float:
    return unit.count("{") + unit.count("[") + unit.count('"') / 2 + (unit.count(",") + 1) / 4


def _count(random: Random, values: int, size: int, weight: float, length: int) -> int:
    """How many units: mostly just below the limit on values, or a part of it; sometimes above, up to the size."""
    most = size * 9 // 10 // length
    share = random.choices((0.97, 0.3, 0.05, 1.1, 0), (40, 25, 20, 10, 5))[0]
    return max(1, min(most, int(values * share / weight) if share else most))
