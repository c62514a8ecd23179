"""Embeddings requests: checks for every dialect, and rewrites that several dialects need."""

from __future__ import annotations

from typing import NoReturn

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.steering_keys import refuse_steering
from dragoman.adapters.validation import Validator

__all__ = ["HUB_EMBEDDINGS", "check_request", "drop_encoding_format", "refuse_stream"]

HUB_EMBEDDINGS = "hub/embeddings.request"

_CONVERTED_FORMATS = ("float", "base64")


def check_request(body: JsonObject, validator: Validator) -> None:
    """Validate a client's request by its own dialect. Raises Fault, with the path as the client wrote it."""
    refuse_steering(body)
    validator.check(body)


def drop_encoding_format(body: JsonObject, ctx: Context) -> None:
    """Drop `encoding_format` if dragoman converts to that format itself."""
    if body.get("encoding_format") in _CONVERTED_FORMATS:
        del body["encoding_format"]
        ctx.receipt.record_drop(("encoding_format",), "dragoman converts the vectors to this format itself", "form")


def refuse_stream(_ctx: Context) -> NoReturn:
    """Refuse to stream, in place of `read_stream`, which embeddings do not have. Raises Fault, always."""
    raise Fault("unsupported_parameter", "embeddings are not streamed", ("stream",), code="unsupported_parameter")
