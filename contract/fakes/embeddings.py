"""The embeddings of each dialect, and edits that make them faulty.

A vector depends only on its input, so that a test can compute the expected vector.
"""

from __future__ import annotations

import json
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from hashlib import shake_256
from typing import TypeAlias

from dragoman.contract.dialects import DIALECTS, load_dialect
from dragoman.contract.json_types import JsonObject, JsonValue

from .answers import Answer, ModelRequest

__all__ = [
    "EMBEDDING_DIALECTS",
    "EMBEDDING_EDITS",
    "EmbeddingEdit",
    "build_embedding_documents",
    "make_vector",
    "read_inputs",
]

EmbeddingEdit: TypeAlias = Callable[[list[JsonObject], ModelRequest], list[JsonObject]]
DIMENSIONS = 8
EMBEDDING_DIALECTS = tuple(name for name in DIALECTS if "embeddings" in load_dialect(name).paths)
"""The dialects with embeddings."""


def make_vector(given: JsonValue, dimensions: int = DIMENSIONS) -> list[float]:
    """Make the vector of one input, of numbers that 32-bit floats represent exactly."""
    text = given if isinstance(given, str) else json.dumps(given)
    return [(byte - 127.5) / 128 for byte in shake_256(text.encode()).digest(dimensions)]


def read_inputs(body: Mapping[str, JsonValue]) -> list[JsonValue]:
    """Read the inputs, one or several: texts, or lists of tokens."""
    given = body.get("input")
    several = isinstance(given, list) and not all(isinstance(token, int) for token in given)
    return list(given) if isinstance(given, list) and several else [given]


def build_embedding_documents(_answer: Answer, request: ModelRequest) -> list[JsonObject]:
    """Build the one JSON document of the reply. The caller may alter it."""
    inputs = read_inputs(request.body)
    wanted = request.body.get("dimensions")
    dimensions = wanted if isinstance(wanted, int) else DIMENSIONS
    vectors: list[JsonValue] = [make_vector(given, dimensions) for given in inputs]
    if request.body.get("encoding_format") == "base64":
        vectors = list(map(_encode_base64, vectors))
    read = sum(len(str(given).split()) for given in inputs)
    whole: JsonObject = {
        "id": f"emb-fake{request.number:06d}",
        "object": "list",
        "data": [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)],
        "model": request.model,
        "usage": {"prompt_tokens": read, "total_tokens": read},
    }
    keys: list[str] = load_dialect(request.dialect).reply_form("embeddings", request.profile)["keys"]
    return [{key: whole[key] for key in keys}]


def _encode_base64(vector: list[float]) -> str:
    return b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _decode_vector(vector: list[JsonValue] | str) -> list[JsonValue]:
    if not isinstance(vector, str):
        return vector
    raw = b64decode(vector)
    return list(struct.unpack(f"<{len(raw) // 4}f", raw))


def _edit_data(change: Callable[[list[JsonObject]], list[JsonObject]]) -> EmbeddingEdit:
    """Make an edit of the list of embeddings."""

    def edit(documents: list[JsonObject], _request: ModelRequest) -> list[JsonObject]:
        return [{**document, "data": change(document["data"])} for document in documents]

    return edit


def _edit_last_vector(change: Callable[[list[JsonValue]], list[JsonValue]]) -> EmbeddingEdit:
    """Make an edit of the last vector, which keeps its format."""

    def edit_last(data: list[JsonObject]) -> list[JsonObject]:
        item, vector = data[-1], change(_decode_vector(data[-1]["embedding"]))
        return [
            *data[:-1],
            {**item, "embedding": _encode_base64(vector) if isinstance(item["embedding"], str) else vector},
        ]

    return _edit_data(edit_last)


def _put_nan(vector: list[JsonValue]) -> list[JsonValue]:
    return [*vector[:-1], float("nan")]


def _edit_format(write: Callable[[list[JsonValue]], JsonValue]) -> EmbeddingEdit:
    return _edit_data(lambda data: [{**item, "embedding": write(_decode_vector(item["embedding"]))} for item in data])


def _put_null(documents: list[JsonObject], request: ModelRequest) -> list[JsonObject]:
    """Put null in the last vector, as many servers do for NaN, which JSON does not have."""
    plain = _edit_format(lambda vector: vector)(documents, request)
    return _edit_last_vector(lambda vector: [*vector[:-1], None])(plain, request)


def _unwrap_first(documents: list[JsonObject], _request: ModelRequest) -> list[JsonObject]:
    return [{**document, "data": document["data"][0]} for document in documents]


def _drop_usage(documents: list[JsonObject], _request: ModelRequest) -> list[JsonObject]:
    return [{key: value for key, value in document.items() if key != "usage"} for document in documents]


EMBEDDING_EDITS: Mapping[str, tuple[str, EmbeddingEdit]] = {
    "vectors-shuffled": ("embeddings in another order than the inputs", _edit_data(lambda data: data[::-1])),
    "vectors-missing": ("one embedding too few", _edit_data(lambda data: data[:-1])),
    "vectors-too-many": (
        "one embedding too many",
        _edit_data(lambda data: [*data, {**data[-1], "index": len(data)}]),
    ),
    "vectors-doubled-index": (
        "two embeddings with the same index",
        _edit_data(lambda data: [*data[:-1], {**data[-1], "index": 0}]),
    ),
    "vectors-without-index": (
        "embeddings without index",
        _edit_data(lambda data: [{key: value for key, value in item.items() if key != "index"} for item in data]),
    ),
    "vectors-short": ("the last vector shorter than the others", _edit_last_vector(lambda vector: vector[:-1])),
    "vectors-empty": ("the last vector empty", _edit_last_vector(lambda vector: [])),
    "vectors-null": ("a null in the last vector", _put_null),
    "vectors-nan": (
        "NaN in the last vector, in base64 or as a literal that JSON does not have",
        _edit_last_vector(_put_nan),
    ),
    "vectors-as-floats": ("numbers, whatever format is requested", _edit_format(lambda vector: vector)),
    "vectors-as-base64": ("base64, whatever format is requested", _edit_format(_encode_base64)),
    "vectors-not-base64": ("text instead of vectors", _edit_format(lambda vector: "no base64!")),
    "vectors-single": ("the first embedding instead of the list", _unwrap_first),
    "vectors-without-usage": ("embeddings without usage", _drop_usage),
}
