"""Emulates inputs and prompts that are arrays of tokens, for providers that take only text: the tokens are decoded.

Which encoding a model has is a fact about it (`schemas/models`). For other models `cl100k_base` is a guess, which is a
loss: LangChain and other clients use it then. The tables come with the package `bpe-openai` of the extra `tokens`;
nothing is downloaded.
"""

from __future__ import annotations

import warnings
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.model_facts import find_facts
from dragoman.adapters.streams import Output

from .interface import Emulation

__all__ = ["make_token_arrays"]

_PACKAGE = "bpe_openai"
_DEFAULT = "cl100k_base"
_TABLES = {"o200k_harmony": "o200k_base"}
"""Encodings whose tokens of text are those of another one."""


def make_token_arrays(field: str) -> Emulation:
    """Make the emulation of the field that may hold arrays of tokens."""
    return Emulation(
        partial(_split, field=field),
        _return_reply,
        _UnchangedStream,
        partial(_find_obstacle, field=field),
        _is_encoding_known,
    )


def _find_obstacle(request: JsonObject, field: str) -> str | None:
    if not _has_tokens(request[field]):
        return ""
    if find_spec(_PACKAGE) is None:
        return "with the extra tokens dragoman sends the text of the tokens instead: uv pip install '.[tokens]'"
    return None


def _has_tokens(given: Any) -> bool:
    return isinstance(given, list) and bool(given) and (_is_array(given) or any(map(_is_array, given)))


def _is_array(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(token) is int and token >= 0 for token in value)


def _split(ctx: Context, field: str) -> list[Context]:
    name = _find_encoding(ctx.request) or _DEFAULT
    reason = f"the provider takes only text, so dragoman decodes the tokens: {name}"
    ctx.receipt.record_emulation((field,), reason, (field,))
    if not _is_encoding_known(ctx.request):
        ctx.receipt.record_conversion((field,), f"the model's encoding is not known, and {name} is a guess", "loss")
    given = ctx.request[field]
    texts = (
        _decode(given, name, (field,), ctx)
        if _is_array(given)
        else [_decode(one, name, (field, i), ctx) if _is_array(one) else one for i, one in enumerate(given)]
    )
    return [ctx._replace(request={**ctx.request, field: texts})]


def _find_encoding(request: JsonObject) -> str | None:
    """The encoding of the tokens of the model that the client asks for; None if it is not documented."""
    name = find_facts(str(request.get("model") or "")).tokenizer
    return None if name is None else _TABLES.get(name, name)


def _is_encoding_known(request: JsonObject) -> bool:
    return _find_encoding(request) is not None


def _decode(tokens: list[int], name: str, path: tuple[str | int, ...], ctx: Context) -> str:
    try:
        raw: bytes = _load_encoding(name).decode_bytes(tokens)
    except (KeyError, OverflowError, ValueError):
        text = f"a token is not one of {name}, and the provider takes only text"
        raise Fault("unsupported_parameter", text, path, code="invalid_value") from None
    text = raw.decode("utf-8", "replace")
    if text.encode() != raw:
        ctx.receipt.record_conversion(path, "the tokens begin or end inside a character, which becomes U+FFFD", "loss")
    return text


@cache
def _load_encoding(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the package's own, while it is imported
        return import_module(_PACKAGE).get_encoding(name)


def _return_reply(replies: list[JsonObject], ctx: Context) -> JsonObject:
    return replies[0]


class _UnchangedStream:
    """A StreamMerger of one part, which changes nothing."""

    def __init__(self, ctx: Context, parts: int) -> None:
        """There is nothing to keep."""

    def feed(self, part: int, outputs: list[Output]) -> list[Output]:
        """Return the outputs."""
        return outputs
