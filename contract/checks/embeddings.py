"""Checks of embeddings and of model lists."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Mapping

from dragoman.contract.json_path import find_value
from dragoman.contract.json_types import JsonValue
from dragoman.contract.outcome import Outcome

from .rule import Problems, Rule, shorten

__all__ = ["EMBEDDING_CHECKS"]

_COUNT = {"type": "integer", "minimum": 1}


def _read_data(outcome: Outcome) -> list[JsonValue]:
    data = find_value(outcome.body, "data")
    return data if isinstance(data, list) else []


def _read_vector(entry: JsonValue) -> tuple[float, ...] | None:
    """Read the numbers of one embedding. Return None if they cannot be read."""
    value = entry.get("embedding") if isinstance(entry, dict) else None
    if isinstance(value, str):
        try:
            raw = base64.b64decode(value, validate=True)
            return struct.unpack(f"<{len(raw) // 4}f", raw)
        except (ValueError, struct.error):
            return None
    if isinstance(value, list) and all(isinstance(number, int | float) for number in value):
        return tuple(value)
    return None


def _check_vectors(outcome: Outcome, number: int) -> Problems:
    data = _read_data(outcome)
    if len(data) != number:
        return [f"{len(data)} embeddings, expected {number}"]
    indexes = [entry.get("index") if isinstance(entry, dict) else None for entry in data]
    problems = [] if indexes == list(range(number)) else [f"the indexes are {shorten(indexes)}"]
    vectors = [_read_vector(entry) for entry in data]
    for position, vector in enumerate(vectors):
        if not vector or not all(math.isfinite(value) for value in vector):
            problems.append(f"embedding {position} is not a list of finite numbers")
    lengths = {len(vector) for vector in vectors if vector}
    return problems + ([f"the lengths differ: {sorted(lengths)}"] if len(lengths) > 1 else [])


def _check_dimensions(outcome: Outcome, number: int) -> Problems:
    lengths = sorted({len(_read_vector(entry) or ()) for entry in _read_data(outcome)})
    return [] if lengths == [number] else [f"the lengths are {lengths}, expected {number}"]


def _check_encoding(outcome: Outcome, name: str) -> Problems:
    wanted: type = str if name == "base64" else list
    wrong = [
        entry
        for entry in _read_data(outcome)
        if not isinstance(entry, dict) or not isinstance(entry.get("embedding"), wanted)
    ]
    return [f"{len(wrong)} embeddings are not in {name}"] if wrong else []


def _check_same_vector(outcome: Outcome, name: str) -> Problems:
    """The first embedding equals a saved one."""
    before, now = (
        _read_vector({"embedding": outcome.saved.get(name)}),
        _read_vector(next(iter(_read_data(outcome)), None)),
    )
    if before is None or now is None or len(before) != len(now):
        return ["the two embeddings cannot be compared"]
    far = max(abs(first - second) for first, second in zip(before, now, strict=True))
    return [] if far < 1e-3 else [f"they differ by up to {far:.2g}"]


def _check_lists_model(outcome: Outcome, _: JsonValue) -> Problems:
    ids = [entry.get("id") for entry in _read_data(outcome) if isinstance(entry, dict)]
    return [] if outcome.model in ids else [f"{outcome.model} is not among {shorten(ids)}"]


EMBEDDING_CHECKS: Mapping[str, Rule] = {
    "vectors": Rule(
        "there are that many embeddings of finite numbers, of the same length, in order", _check_vectors, _COUNT
    ),
    "dimensions": Rule("every embedding has that many dimensions", _check_dimensions, _COUNT),
    "encoding": Rule("the embeddings are float lists, or base64", _check_encoding, {"enum": ["float", "base64"]}),
    "same_vector": Rule("the first embedding equals the saved one", _check_same_vector, {"type": "string"}),
    "lists_model": Rule("the list contains the model under test", _check_lists_model),
}
