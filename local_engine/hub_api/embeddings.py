"""Embeddings in hub form."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault

from .request_parameters import check_request

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dragoman.local_engine.embedder import Embedder

__all__ = ["answer_embeddings"]

SUPPORTED_FIELDS = frozenset({"input", "encoding_format", "dimensions"})
MAX_TEXTS = 2048


def answer_embeddings(embedder: Embedder, request: JsonObject, model: str) -> JsonObject:
    """Answer an embeddings request. Blocks. Raises Fault with the path of the invalid field."""
    check_request(request, "hub/embeddings.request", SUPPORTED_FIELDS)
    encoding = request.get("encoding_format") or "float"
    if encoding not in ("float", "base64"):
        message = f"encoding_format must be float or base64, not {encoding}"
        raise Fault("unsupported_parameter", message, ("encoding_format",), encoding)
    if request.get("dimensions") not in (None, embedder.width):
        message = f"the model's vectors have {embedder.width} dimensions and cannot be shortened"
        raise Fault("unsupported_parameter", message, ("dimensions",), request["dimensions"])
    texts = _list_texts(request["input"])
    tokens = [embedder.tokenize(text) if isinstance(text, str) else text for text in texts]
    invalid = _find_invalid_text(tokens, embedder.tokenizer.get_vocab_size())
    if invalid is not None:
        raise Fault("invalid_request", "a token is not in the model's vocabulary", ("input", invalid))
    vectors = embedder.embed(tokens)
    data = [
        {"object": "embedding", "index": index, "embedding": _encode_vector(vector, encoding)}
        for index, vector in enumerate(vectors)
    ]
    count = sum(map(len, tokens))
    return {"object": "list", "data": data, "model": model, "usage": {"prompt_tokens": count, "total_tokens": count}}


def _list_texts(given: Any) -> list[Any]:
    if isinstance(given, str) or isinstance(given[0], int):
        return [given]
    if len(given) > MAX_TEXTS:
        raise Fault("invalid_request", f"{len(given)} texts; the limit is {MAX_TEXTS}", ("input",))
    return list(given)


def _find_invalid_text(texts: list[list[int]], vocab: int) -> int | None:
    return next((index for index, text in enumerate(texts) if text and max(text) >= vocab), None)


def _encode_vector(vector: NDArray[np.float32], encoding: str) -> list[float] | str:
    if encoding == "float":
        return [float(value) for value in vector]
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()
