"""Toxics as data: types, attributes and defaults, and the two ways to write one, JSON and `latency(latency=300)`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Self

from dragoman.contract.json_types import JsonObject, JsonValue

__all__ = ["STREAMS", "TYPES", "ChaosError", "Toxic", "ToxicType", "list_toxics", "parse_toxic"]

STREAMS = ("upstream", "downstream")


class ChaosError(ValueError):
    """A wrong proxy or toxic. `status` is the HTTP status that the API answers."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class ToxicType:
    """What a type of toxic does, and its attributes with their defaults, which are whole numbers from 0."""

    description: str
    attributes: Mapping[str, int]


TYPES: Mapping[str, ToxicType] = {
    "latency": ToxicType("delays data by `latency` ± `jitter` milliseconds", {"latency": 0, "jitter": 0}),
    "bandwidth": ToxicType("limits a connection to `rate` kilobytes a second; 0 is no limit", {"rate": 0}),
    "slow_close": ToxicType("delays the end of the data by `delay` milliseconds", {"delay": 0}),
    "timeout": ToxicType(
        "drops all data, and closes the connection after `timeout` milliseconds; 0 waits until the toxic is removed",
        {"timeout": 0},
    ),
    "reset_peer": ToxicType("resets the connection `timeout` milliseconds after its first data", {"timeout": 0}),
    "slicer": ToxicType(
        "cuts data into pieces of `average_size` ± `size_variation` bytes, `delay` microseconds apart",
        {"average_size": 64, "size_variation": 0, "delay": 0},
    ),
    "limit_data": ToxicType("closes the connection after `bytes` bytes", {"bytes": 0}),
    "corrupt_event": ToxicType(
        "breaks the JSON of server-sent event number `event`, counted from 1; 0 breaks every one", {"event": 1}
    ),
    "interim_flood": ToxicType(
        "sends `count` interim responses of `status` before each response; a `count` of 0 never ends",
        {"count": 1000, "status": 100},
    ),
    "half_head": ToxicType(
        "sends the first `bytes` bytes of a response, then nothing; closes after `timeout` milliseconds, 0 never",
        {"bytes": 20, "timeout": 0},
    ),
}


@dataclass(frozen=True, slots=True)
class Toxic:
    """A toxic on one direction of a proxy's connections. `toxicity` is the share of connections that get it, 0 to 1.

    Raises ChaosError for an unknown type, stream or attribute, and for a value out of range.
    """

    type: str
    attributes: Mapping[str, int] = field(default_factory=dict)
    stream: str = "downstream"
    toxicity: float = 1.0
    name: str = ""

    def __post_init__(self) -> None:
        if self.type not in TYPES:
            near = get_close_matches(self.type, TYPES, 3, 0.5)
            raise ChaosError(f"invalid toxic type {self.type!r}; similar: {', '.join(near) or ', '.join(TYPES)}")
        if self.stream not in STREAMS:
            raise ChaosError("stream was invalid, can be either upstream or downstream")
        if not _is_number(self.toxicity) or not 0 <= self.toxicity <= 1:
            raise ChaosError("bad request body: toxicity must be a number from 0 to 1")
        object.__setattr__(self, "name", self.name or f"{self.type}_{self.stream}")
        object.__setattr__(self, "attributes", _complete(self.type, self.attributes))

    def __getitem__(self, attribute: str) -> int:
        return self.attributes[attribute]

    @classmethod
    def from_json(cls, value: JsonValue) -> Self:
        """Read a toxic from the JSON of the API; unknown keys are ignored. Raises ChaosError."""
        given = _expect_object(value)
        texts = {key: given[key] for key in ("type", "stream", "name") if key in given}
        if wrong := [key for key, text in texts.items() if not isinstance(text, str)]:
            raise ChaosError(f"bad request body: {wrong[0]} must be a string")
        attributes = _expect_object(given.get("attributes", {}))
        return cls(**{"type": "", **texts}, attributes=attributes, toxicity=given.get("toxicity", 1.0))

    def update(self, value: JsonValue) -> Self:
        """Return the toxic with the `attributes` and the `toxicity` of a JSON object. Raises ChaosError."""
        given = _expect_object(value)
        attributes = {**self.attributes, **_expect_object(given.get("attributes", {}))}
        return replace(self, attributes=attributes, toxicity=given.get("toxicity", self.toxicity))

    def to_json(self) -> JsonObject:
        return {
            "attributes": dict(self.attributes),
            "name": self.name,
            "type": self.type,
            "stream": self.stream,
            "toxicity": self.toxicity,
        }


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _expect_object(value: JsonValue) -> JsonObject:
    if not isinstance(value, dict):
        raise ChaosError("bad request body: expected an object")
    return value


def _complete(kind: str, given: Mapping[str, JsonValue]) -> dict[str, int]:
    """Add the defaults to the attributes of a toxic, and check them."""
    known = TYPES[kind].attributes
    for key, value in given.items():
        if key not in known:
            raise ChaosError(f"bad request body: {kind} has no attribute {key!r}; it has {', '.join(known)}")
        if not _is_number(value) or value % 1 != 0 or value < 0:
            raise ChaosError(f"bad request body: {key} of {kind} must be a whole number from 0")
    complete = {**known, **{key: int(value) for key, value in given.items()}}
    if kind == "slicer" and complete["size_variation"] >= complete["average_size"]:
        raise ChaosError("bad request body: size_variation of slicer must be smaller than average_size")
    if kind == "interim_flood" and not 100 <= complete["status"] <= 199:
        raise ChaosError("bad request body: status of interim_flood must be from 100 to 199")
    return complete


_CALL = re.compile(r"\s*([a-z_]+)\s*(?:\((.*)\))?\s*", re.DOTALL)


def parse_toxic(text: str) -> Toxic:
    """Parse `type` or `type(attribute=1, stream=upstream, toxicity=0.5)`. Raises ChaosError."""
    matched = _CALL.fullmatch(text)
    if matched is None:
        raise ChaosError(f"write a toxic as latency(latency=300, jitter=100), not {text!r}")
    given: dict[str, str] = {}
    for part in filter(str.strip, (matched[2] or "").split(",")):
        key, sign, value = part.partition("=")
        if not sign:
            raise ChaosError(f"{matched[1]}: write its attributes as name=value, not {part.strip()!r}")
        given[key.strip()] = value.strip()
    texts = {key: given.pop(key) for key in ("stream", "name") if key in given}
    numbers = {key: _parse_number(key, value) for key, value in given.items()}
    return Toxic(matched[1], toxicity=numbers.pop("toxicity", 1.0), attributes=numbers, **texts)  # type: ignore[arg-type]


def _parse_number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ChaosError(f"{key} must be a number, not {text!r}") from None


def list_toxics() -> str:
    """List the types of toxics with their attributes and defaults, one on each line."""
    return "\n".join(_describe(name, kind) for name, kind in TYPES.items())


def _describe(name: str, kind: ToxicType) -> str:
    return f"{name + _join(kind.attributes.items()):<58} {kind.description.replace('`', '')}"


def _join(attributes: Iterable[tuple[str, int]]) -> str:
    return f"({', '.join(f'{key}={value}' for key, value in attributes)})"
