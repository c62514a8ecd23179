"""Makes a dialect's `write_request` from data."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypedDict, Unpack

from dragoman.adapters.call import Call, Context, JsonObject
from dragoman.adapters.fit import Extras, fit
from dragoman.adapters.validation import load_validator

from .parameters import copy_request

__all__ = ["RequestOptions", "Rewrite", "request_writer"]

Rewrite: TypeAlias = Callable[[JsonObject, Context], None]
"""Alters the writer's own copy of a request's body. Raises Fault if the target cannot serve the request."""


class RequestOptions(TypedDict, total=False):
    """How a dialect's requests differ from the hub's. All keys are optional.

    `path` is appended to the provider's base address. `rewrite` alters the body before it is fitted to the dialect's
    schema. `extras` decides what happens to extra parameters, for all requests or for each. `names_model` is false if
    the address names the target's model, so that the body keeps the model of the hub request. `make_call` makes the
    call from the fitted body; without it, the call is a POST of the body to `path`.
    """

    path: str
    rewrite: Rewrite
    extras: Extras | Callable[[Context], Extras]
    names_model: bool
    make_call: Callable[[JsonObject, Context], Call]


def request_writer(schema: str, hub: str, **options: Unpack[RequestOptions]) -> Callable[[JsonObject, Context], Call]:
    """Make the `write_request` of a dialect; `schema` and `hub` name the dialect's and the hub's request schemas."""
    path, rewrite, extras = options.get("path", ""), options.get("rewrite"), options.get("extras", "keep")
    names_model, make_call = options.get("names_model", True), options.get("make_call")

    def write_request(request: JsonObject, ctx: Context) -> Call:
        body = copy_request(request, ctx, hub)
        if names_model:
            body["model"] = ctx.target.model
        if rewrite is not None:
            rewrite(body, ctx)
        fit(body, load_validator(schema, ctx.profile), ctx, extras(ctx) if callable(extras) else extras, hub)
        return Call("POST", path, body) if make_call is None else make_call(body, ctx)

    return write_request
