"""Emulates inputs and prompts that are arrays of tokens, for providers that take only text: the tokens are decoded.

Which encoding a model has is a fact about it (`schemas/models`). For other models `cl100k_base` is a guess, which is a
loss: LangChain and other clients use it then. The tables come with the package `bpe-openai` of the extra `tokens`;
nothing is downloaded.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Output

from .interface import Emulation
from .tokenizers import INSTALL, find_encoding, has_tables, load_encoding

__all__ = ["make_token_arrays"]

_DEFAULT = "cl100k_base"


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
    if not has_tables():
        return f"with the extra tokens dragoman sends the text of the tokens instead: {INSTALL}"
    return None


def _has_tokens(given: Any) -> bool:
    return isinstance(given, list) and bool(given) and (_is_array(given) or any(map(_is_array, given)))


def _is_array(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(token) is int and token >= 0 for token in value)


def _split(ctx: Context, field: str) -> list[Context]:
    name = find_encoding(ctx.request) or _DEFAULT
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


def _is_encoding_known(request: JsonObject) -> bool:
    return find_encoding(request) is not None


def _decode(tokens: list[int], name: str, path: tuple[str | int, ...], ctx: Context) -> str:
    try:
        raw: bytes = load_encoding(name).decode_bytes(tokens)
    except (KeyError, OverflowError, ValueError):
        text = f"a token is not one of {name}, and the provider takes only text"
        raise Fault("unsupported_parameter", text, path, code="invalid_value") from None
    text = raw.decode("utf-8", "replace")
    if text.encode() != raw:
        ctx.receipt.record_conversion(path, "the tokens begin or end inside a character, which becomes U+FFFD", "loss")
    return text


def _return_reply(replies: list[JsonObject], ctx: Context) -> JsonObject:
    return replies[0]


class _UnchangedStream:
    """A StreamMerger of one part, which changes nothing."""

    def __init__(self, ctx: Context, parts: int) -> None:
        """There is nothing to keep."""

    def feed(self, part: int, outputs: list[Output]) -> list[Output]:
        """Return the outputs."""
        return outputs
