"""Requests of embeddings: the rules that hold whatever the dialect, and the rewrites that several dialects ask for."""

from __future__ import annotations

from typing import NoReturn

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.refused import refuse_steering
from dragoman.adapters.validation import Validator

__all__ = ["HUB_EMBEDDINGS", "check_request", "drop_encoding_format", "refuse_stream"]

HUB_EMBEDDINGS = "hub/embeddings.request"

_CONVERTED_FORMATS = ("float", "base64")


def check_request(body: JsonObject, validator: Validator) -> None:
    """Validate a client's request by its own dialect. Raises Fault, its path as the client wrote it."""
    refuse_steering(body)
    validator.check(body)


def drop_encoding_format(body: JsonObject, ctx: Context) -> None:
    """Take `encoding_format` away if dragoman makes the format itself, from the numbers that are sent unasked."""
    if body.get("encoding_format") in _CONVERTED_FORMATS:
        del body["encoding_format"]
        ctx.receipt.record_drop(("encoding_format",), "dragoman writes the vectors in this format itself", "form")


def refuse_stream(_ctx: Context) -> NoReturn:
    """Takes the place of the verbs of streams, which embeddings do not have. Raises Fault."""
    raise Fault("unsupported_parameter", "embeddings are not streamed", ("stream",), code="unsupported_parameter")
