"""Embeddings in the hub's form."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault

from . import asking

if TYPE_CHECKING:
    from .embeddings import Embedder

__all__ = ["embed"]

HONOURED = frozenset({"input", "encoding_format", "dimensions"})
MOST_TEXTS = 2048


def embed(embedder: Embedder, request: JsonObject, model: str) -> JsonObject:
    """The reply to an embeddings request. Blocks. Raises Fault, with the path of what is wrong."""
    asking.check(request, "hub/embeddings.request", HONOURED)
    form = request.get("encoding_format") or "float"
    if form not in ("float", "base64"):
        message = f"vectors are given as float or base64, not {form}"
        raise Fault("unsupported_parameter", message, ("encoding_format",), form)
    if request.get("dimensions") not in (None, embedder.width):
        message = f"the model's vectors have {embedder.width} dimensions and cannot be shortened"
        raise Fault("unsupported_parameter", message, ("dimensions",), request["dimensions"])
    texts = _texts(request["input"])
    tokens = [embedder.tokens(text) if isinstance(text, str) else text for text in texts]
    strange = _strange(tokens, embedder.tokenizer.get_vocab_size())
    if strange is not None:
        raise Fault("invalid_request", "a token of it is not in the model's vocabulary", ("input", strange))
    vectors = embedder.embed(tokens)
    data = [
        {"object": "embedding", "index": place, "embedding": _written(vector, form)}
        for place, vector in enumerate(vectors)
    ]
    count = sum(map(len, tokens))
    return {"object": "list", "data": data, "model": model, "usage": {"prompt_tokens": count, "total_tokens": count}}


def _texts(given: Any) -> list[Any]:
    if isinstance(given, str) or isinstance(given[0], int):
        return [given]
    if len(given) > MOST_TEXTS:
        raise Fault("invalid_request", f"{len(given)} texts; up to {MOST_TEXTS} are served", ("input",))
    return list(given)


def _strange(texts: list[list[int]], vocab: int) -> int | None:
    return next((place for place, text in enumerate(texts) if text and max(text) >= vocab), None)


def _written(vector: Any, form: str) -> Any:
    if form == "float":
        return [float(value) for value in vector]
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()
