"""How a dialect writes embeddings: a vector for each input that depends on nothing but the input, so that whoever gets
one can tell what it is for. And mischief with them: each edit takes the documents (there is one) and gives others.
"""

from __future__ import annotations

import json
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from hashlib import shake_256
from typing import Any, TypeAlias

from dragoman.contract.dialects import DIALECTS, dialect

from .answers import Answer, Ask, Json

__all__ = [
    "EDITS",
    "EMBEDDING",
    "VectorEdit",
    "inputs_of",
    "vector_documents",
    "vector_of",
]

VectorEdit: TypeAlias = Callable[[list[Json], Ask], list[Json]]
DIMENSIONS = 8
EMBEDDING = tuple(name for name in DIALECTS if "embeddings" in dialect(name).paths)
"""The dialects that have embeddings."""


def vector_of(given: Any, dimensions: int = DIMENSIONS) -> list[float]:
    """The vector of one input: numbers that 32-bit floats hold exactly."""
    text = given if isinstance(given, str) else json.dumps(given)
    return [(byte - 127.5) / 128 for byte in shake_256(text.encode()).digest(dimensions)]


def inputs_of(body: Mapping[str, Any]) -> list[Any]:
    """Each input, whether one is given or several: texts, or lists of tokens."""
    given = body.get("input")
    several = isinstance(given, list) and not all(isinstance(token, int) for token in given)
    return list(given) if isinstance(given, list) and several else [given]


def vector_documents(_answer: Answer, ask: Ask) -> list[Json]:
    """The reply's one JSON document. Fresh, so the caller may alter it."""
    inputs = inputs_of(ask.body)
    wanted = ask.body.get("dimensions")
    dimensions = wanted if isinstance(wanted, int) else DIMENSIONS
    vectors: list[Any] = [vector_of(given, dimensions) for given in inputs]
    if ask.body.get("encoding_format") == "base64":
        vectors = list(map(_packed, vectors))
    read = sum(len(str(given).split()) for given in inputs)
    whole: Json = {
        "id": f"emb-fake{ask.number:06d}",
        "object": "list",
        "data": [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)],
        "model": ask.model,
        "usage": {"prompt_tokens": read, "total_tokens": read},
    }
    keys: list[str] = dialect(ask.dialect).reply_form("embeddings", ask.profile)["keys"]
    return [{key: whole[key] for key in keys}]


def _packed(vector: list[float]) -> str:
    return b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _plain(vector: list[Any] | str) -> list[Any]:
    if not isinstance(vector, str):
        return vector
    raw = b64decode(vector)
    return list(struct.unpack(f"<{len(raw) // 4}f", raw))


def _data(change: Callable[[list[Json]], list[Json]]) -> VectorEdit:
    """Alter the list of embeddings."""

    def edit(documents: list[Json], _ask: Ask) -> list[Json]:
        return [{**document, "data": change(document["data"])} for document in documents]

    return edit


def _last(change: Callable[[list[Any]], list[Any]]) -> VectorEdit:
    """Alter the last vector, which keeps its format."""

    def altered(data: list[Json]) -> list[Json]:
        item, vector = data[-1], change(_plain(data[-1]["embedding"]))
        return [*data[:-1], {**item, "embedding": _packed(vector) if isinstance(item["embedding"], str) else vector}]

    return _data(altered)


def _nan(vector: list[Any]) -> list[Any]:
    return [*vector[:-1], float("nan")]


def _in_format(write: Callable[[list[Any]], Any]) -> VectorEdit:
    return _data(lambda data: [{**item, "embedding": write(_plain(item["embedding"]))} for item in data])


def _nulled(documents: list[Json], ask: Ask) -> list[Json]:
    """JSON has no NaN: many servers write null in its place."""
    plain = _in_format(lambda vector: vector)(documents, ask)
    return _last(lambda vector: [*vector[:-1], None])(plain, ask)


def _single(documents: list[Json], _ask: Ask) -> list[Json]:
    return [{**document, "data": document["data"][0]} for document in documents]


def _uncounted(documents: list[Json], _ask: Ask) -> list[Json]:
    return [{key: value for key, value in document.items() if key != "usage"} for document in documents]


EDITS: Mapping[str, tuple[str, VectorEdit]] = {
    "vectors-shuffled": ("embeddings in another order than their inputs", _data(lambda data: data[::-1])),
    "vectors-missing": ("one embedding too few", _data(lambda data: data[:-1])),
    "vectors-too-many": (
        "one embedding too many",
        _data(lambda data: [*data, {**data[-1], "index": len(data)}]),
    ),
    "vectors-doubled-index": (
        "two embeddings with the same index",
        _data(lambda data: [*data[:-1], {**data[-1], "index": 0}]),
    ),
    "vectors-without-index": (
        "embeddings without index",
        _data(lambda data: [{key: value for key, value in item.items() if key != "index"} for item in data]),
    ),
    "vectors-short": ("the last vector shorter than the others", _last(lambda vector: vector[:-1])),
    "vectors-empty": ("the last vector empty", _last(lambda vector: [])),
    "vectors-null": ("a null in the last vector", _nulled),
    "vectors-nan": ("NaN in the last vector, in base64 or as a word that JSON does not have", _last(_nan)),
    "vectors-as-floats": ("numbers, whatever format was asked for", _in_format(lambda vector: vector)),
    "vectors-as-base64": ("base64, whatever format was asked for", _in_format(_packed)),
    "vectors-not-base64": ("text in place of vectors", _in_format(lambda vector: "no base64!")),
    "vectors-single": ("the first embedding in place of the list", _single),
    "vectors-without-usage": ("embeddings without usage", _uncounted),
}
