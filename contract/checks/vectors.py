"""Checks of embeddings and of lists of models."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Mapping
from typing import Any

from dragoman.contract.outcome import Outcome
from dragoman.contract.paths import at

from .rule import Problems, Rule, short

__all__ = ["VECTORS"]

_NUMBER = {"type": "integer", "minimum": 1}


def _data(outcome: Outcome) -> list[Any]:
    data = at(outcome.body, "data")
    return data if isinstance(data, list) else []


def _vector(entry: Any) -> tuple[float, ...] | None:
    """The numbers of one embedding, None where they cannot be read."""
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


def _vectors(outcome: Outcome, number: int) -> Problems:
    data = _data(outcome)
    if len(data) != number:
        return [f"{len(data)} embeddings, expected {number}"]
    indexes = [entry.get("index") if isinstance(entry, dict) else None for entry in data]
    problems = [] if indexes == list(range(number)) else [f"the indexes are {short(indexes)}"]
    vectors = [_vector(entry) for entry in data]
    for place, vector in enumerate(vectors):
        if not vector or not all(math.isfinite(value) for value in vector):
            problems.append(f"embedding {place} is no list of finite numbers")
    lengths = {len(vector) for vector in vectors if vector}
    return problems + ([f"the lengths differ: {sorted(lengths)}"] if len(lengths) > 1 else [])


def _dimensions(outcome: Outcome, number: int) -> Problems:
    lengths = sorted({len(_vector(entry) or ()) for entry in _data(outcome)})
    return [] if lengths == [number] else [f"the lengths are {lengths}, expected {number}"]


def _encoding(outcome: Outcome, name: str) -> Problems:
    wanted: type = str if name == "base64" else list
    wrong = [
        entry
        for entry in _data(outcome)
        if not isinstance(entry, dict) or not isinstance(entry.get("embedding"), wanted)
    ]
    return [f"{len(wrong)} embeddings are not in {name}"] if wrong else []


def _same_as_saved(outcome: Outcome, name: str) -> Problems:
    """The first embedding has the same numbers as one kept before."""
    before, now = _vector({"embedding": outcome.saved.get(name)}), _vector(next(iter(_data(outcome)), None))
    if before is None or now is None or len(before) != len(now):
        return ["the two cannot be compared"]
    far = max(abs(first - second) for first, second in zip(before, now, strict=True))
    return [] if far < 1e-3 else [f"they differ by up to {far:.2g}"]


def _lists_model(outcome: Outcome, _: Any) -> Problems:
    ids = [entry.get("id") for entry in _data(outcome) if isinstance(entry, dict)]
    return [] if outcome.model in ids else [f"{outcome.model} is not among {short(ids)}"]


VECTORS: Mapping[str, Rule] = {
    "vectors": Rule("that many embeddings of finite numbers, all of one length, in order", _vectors, _NUMBER),
    "dimensions": Rule("every embedding has that many numbers", _dimensions, _NUMBER),
    "encoding": Rule("the embeddings come as float lists, or as base64", _encoding, {"enum": ["float", "base64"]}),
    "same_vector": Rule("the first embedding equals the saved one", _same_as_saved, {"type": "string"}),
    "lists_model": Rule("the list has the model under test", _lists_model),
}
