"""Lists the fields of a schema of this project as places.

A place is a path whose steps may be bound to a kind of object: `messages[role=user].content[type=text].text` is the
text of a text part of a user's message, `tool_choice(type=function).function` a key of a tool choice of this type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from dragoman.schemas import Schema

__all__ = [
    "Field",
    "Place",
    "Remark",
    "Shape",
    "Step",
    "When",
    "drop_kinds",
    "format_place",
    "join_places",
    "merge_all_of",
    "merge_places",
    "names",
    "read_shape",
    "resolve",
    "sort_places",
]


@dataclass(frozen=True, slots=True)
class When:
    """The condition that a key has one of the values. `of` lists all possible values, and is empty if they are open."""

    key: str
    values: tuple[str, ...]
    of: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    many: bool = False
    when: When | None = None


Place: TypeAlias = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Field:
    place: Place
    rule: Schema
    required: bool


@dataclass(frozen=True, slots=True)
class Remark:
    """A rule outside the schema of any single field."""

    place: Place
    text: str


@dataclass(slots=True)
class Shape:
    """The fields and remarks of a schema. `closed` are the places of objects that accept only the listed keys. While it
    is read, `entered` maps the references that are followed to the places where they were met."""

    root: Schema
    fields: dict[Place, Field] = field(default_factory=dict)
    remarks: list[Remark] = field(default_factory=list)
    closed: list[Place] = field(default_factory=list)
    entered: dict[str, Place] = field(default_factory=dict)


def read_shape(root: Schema) -> Shape:
    """Read the fields of a schema. Raises ValueError for a construct that this module cannot describe."""
    found = Shape(root)
    _visit(found, root, ())
    return found


def resolve(root: Schema, rule: Schema) -> Schema:
    """Follow the reference of a rule; keys next to the reference win."""
    while "$ref" in rule:
        target: Any = root
        for part in rule["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        rule = {**target, **{key: value for key, value in rule.items() if key != "$ref"}}
    return rule


def format_place(place: Place) -> str:
    return ".".join(map(_format_step, place))


def drop_kinds(place: Place) -> Place:
    """Remove the kinds of object from a place."""
    return tuple(replace(step, when=None) for step in place)


def merge_places(places: Iterable[Place]) -> list[Place]:
    """Merge places that differ in only one kind of object."""
    found = list(dict.fromkeys(places))
    for position in range(max(map(len, found), default=0) - 1, -1, -1):
        groups: dict[tuple[Any, ...], list[Place]] = {}
        for place in found:
            groups.setdefault(_group_key(place, position), []).append(place)
        found = [join_places(group) for group in groups.values()]
    return found


def sort_places(places: Iterable[Place]) -> list[Place]:
    """Sort places so that each key precedes its own keys, in the order of first occurrence."""
    places = list(places)
    first: dict[tuple[str, ...], int] = {}
    for place in places:
        for end in range(len(place)):
            first.setdefault(names(place)[: end + 1], len(first))
    return sorted(places, key=lambda place: [first[names(place)[: end + 1]] for end in range(len(place))])


def names(place: Place) -> tuple[str, ...]:
    return tuple(step.name for step in place)


def merge_all_of(rule: Schema) -> Schema:
    """Merge the plain members of `allOf` into the rule: those without a condition or a reference."""
    plain = [branch for branch in rule.get("allOf", ()) if not {"if", "$ref", "properties"} & branch.keys()]
    for branch in plain:
        rule = {**rule, **branch}
    return rule


def _format_step(step: Step) -> str:
    when = step.when
    bound = "" if when is None or set(when.values) == set(when.of) else f"{when.key}={','.join(when.values)}"
    if step.many:
        return f"{step.name}[{bound}]"
    return f"{step.name}({bound})" if bound else step.name


def _group_key(place: Place, position: int) -> tuple[Any, ...]:
    """The part that places have in common if they differ only in the kind of object at the position."""
    return tuple(
        (step.name, step.many, step.when and (step.when.key, () if i == position else step.when.values))
        for i, step in enumerate(place)
    )


def join_places(group: list[Place]) -> Place:
    """Merge places with the same steps into one place for all their kinds of object."""
    by_step = zip(*group, strict=True)
    return tuple(replace(steps[0], when=_join_when([step.when for step in steps])) for steps in by_step)


def _join_when(whens: list[When | None]) -> When | None:
    known = [when for when in whens if when is not None]
    if not known:
        return None
    values = tuple(dict.fromkeys(value for when in known for value in when.values))
    return When(known[0].key, values, tuple(dict.fromkeys(value for when in known for value in when.of)))


def _visit(found: Shape, rule: Schema, place: Place) -> None:
    """Read a rule and those inside it, except one that contains itself."""
    reference = rule.get("$ref")
    if reference is None:
        _visit_resolved(found, rule, place)
    elif (known := found.entered.get(reference)) is not None:
        found.remarks.append(Remark(place, f"as `{format_place(known)}`"))
    else:
        found.entered[reference] = place
        _visit_resolved(found, rule, place)
        del found.entered[reference]


def _visit_resolved(found: Shape, rule: Schema, place: Place) -> None:
    rule = resolve(found.root, rule)
    if "x-recursive" in rule:
        found.remarks.append(Remark(place, rule["x-recursive"]))
        return
    properties = rule.get("properties", {})
    required = rule.get("required", ())
    if rule.get("additionalProperties") is False:
        found.closed.append(place)
    for name, child in properties.items():
        _property(found, place, name, child, name in required)
    for name in required:
        if name not in properties and place and place[-1].when:
            found.remarks.append(Remark((*place, Step(name)), "required"))
    if "items" in rule:
        _visit(found, rule["items"], (*place[:-1], replace(place[-1], many=True)))
    for branch in (*rule.get("allOf", ()), *rule.get("dependentSchemas", {}).values()):
        _visit(found, branch, place)
    if "if" in rule:
        _conditional(found, rule, place)


def _property(found: Shape, place: Place, name: str, child: Schema, required: bool) -> None:
    here = (*place, Step(name))
    if "x-source" not in child:
        found.remarks.append(Remark(here, child["x-message"]))
        return
    if place and place[-1].when and place[-1].when.key == name:
        return  # the place itself says so
    found.fields[here] = Field(here, child, required)
    _visit(found, child, here)


def _conditional(found: Shape, rule: Schema, place: Place) -> None:
    condition = rule["if"]
    when = _kind_of_object(found, condition, place)
    if when is not None:
        _visit(found, rule["then"], (*place[:-1], replace(place[-1], when=when)))
    elif "contains" in condition:
        found.remarks.append(Remark(place, rule["then"]["items"]["x-message"]))
    elif condition == {"type": "object"}:
        _visit(found, rule["then"], place)
    elif condition != {"type": "string"} and "prefixItems" not in condition:  # the type of the items says so
        _add_narrowed_fields(found, rule.get("then", {}), place, f"required if {_words(condition)}")
        _add_narrowed_fields(found, rule.get("else", {}), place, f"required unless {_words(condition)}")


def _add_narrowed_fields(found: Shape, branch: Schema, place: Place, need: str) -> None:
    properties = branch.get("properties", {})
    for name, child in properties.items():
        found.remarks.append(Remark((*place, Step(name)), child["x-message"]))
    for name in branch.get("required", ()):
        if name not in properties:
            found.remarks.append(Remark((*place, Step(name)), need))


def _kind_of_object(found: Shape, condition: Schema, place: Place) -> When | None:
    properties = condition.get("properties", {})
    if len(properties) != 1 or not place:
        return None
    ((key, rule),) = properties.items()
    values = [rule["const"]] if "const" in rule else rule.get("enum")
    if key not in ("role", "type") or values is None:
        return None
    owner = found.fields.get((*_without_kind(place), Step(key)))
    allowed = owner.rule.get("enum", ()) if owner else ()
    named = [value for value in values if value is not None]
    return When(key, tuple(named), tuple(value for value in allowed if value is not None))


def _without_kind(place: Place) -> Place:
    return (*place[:-1], replace(place[-1], when=None))


def _words(condition: Schema) -> str:
    return " and ".join(_condition_words(condition))


def _condition_words(condition: Schema) -> Iterator[str]:
    for name, rule in condition.get("properties", {}).items():
        if "const" in rule:
            yield f"`{name}` is {_format_value(rule['const'])}"
        elif "enum" in rule.get("not", {}):
            yield f"`{name}` is none of {', '.join(map(_format_value, rule['not']['enum']))}"
        elif rule.get("minItems") == 1:
            yield f"`{name}` is not empty"
        elif "enum" in rule:
            yield f"`{name}` is one of {', '.join(map(_format_value, rule['enum']))}"
        elif "minimum" in rule:
            yield f"`{name}` is at least {rule['minimum']}"
        elif "type" in rule:
            yield f"`{name}` is of type {rule['type']}"
        else:
            raise ValueError(f"cannot describe the condition {rule}")
    if "properties" not in condition:
        for name in condition["required"]:
            yield f"`{name}` is given"


def _format_value(value: Any) -> str:
    return "null" if value is None else f"`{value}`"
