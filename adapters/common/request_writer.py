"""Makes a dialect's `write_request` from data."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypedDict, Unpack

from dragoman.adapters.call import Call, Context, JsonObject
from dragoman.adapters.extras import Extras
from dragoman.adapters.fit import drop_lacking, fit
from dragoman.adapters.request_properties import EFFORTS, HUB_CHAT
from dragoman.adapters.validation import Validator, load_validator

from .parameters import copy_request
from .token_limits import TokenLimitRule, keeps_token_limit, rename_token_limit

__all__ = ["RequestOptions", "Rewrite", "request_writer"]

Rewrite: TypeAlias = Callable[[JsonObject, Context], None]
"""Alters the writer's own copy of a request's body. Raises Fault if the target cannot serve the request."""


class RequestOptions(TypedDict, total=False):
    """How a dialect's requests differ from the hub's. All keys are optional.

    `path` is appended to the provider's base address. `token_limit` decides the name of a chat request's limit on
    tokens. `rewrite` alters the body before it is fitted to the dialect's schema. `extras` decides what happens to
    extra parameters, for all requests or for each. If `takes_effort`, a model that is documented to have levels of
    reasoning effort gets the level, although the dialect's schema does not have it. `names_model` is false if the
    address names the target's model, so that the body keeps the model of the hub request. `make_call` makes the call
    from the fitted body, the context, and whether the body has extra parameters; without it, the call is a POST of the
    body to `path`. `leaves` says whether `rewrite` leaves a request of the dialect as it is, for dialects that are the
    hub's form.
    """

    path: str
    token_limit: TokenLimitRule
    rewrite: Rewrite
    extras: Extras | Callable[[Context], Extras]
    takes_effort: bool
    names_model: bool
    make_call: Callable[[JsonObject, Context, bool], Call]
    leaves: Callable[[JsonObject], bool]


def request_writer(schema: str, hub: str, **options: Unpack[RequestOptions]) -> Callable[[JsonObject, Context], Call]:
    """Make the `write_request` of a dialect; `schema` and `hub` name the dialect's and the hub's request schemas."""
    path, rewrite, extras = options.get("path", ""), options.get("rewrite"), options.get("extras", "keep")
    names_model, make_call = options.get("names_model", True), options.get("make_call")
    token_limit, takes_effort = options.get("token_limit"), options.get("takes_effort", False)
    leaves = options.get("leaves")

    def write_request(request: JsonObject, ctx: Context) -> Call:
        validator = load_validator(schema, ctx.profile)
        if leaves is not None and _needs_no_change(request, ctx, validator, token_limit) and leaves(request):
            return Call("POST", path, {**request, "model": ctx.target.model})
        body = copy_request(request, ctx, hub)
        if names_model:
            body["model"] = ctx.target.model
        limit = None if token_limit is None else rename_token_limit(body, ctx, token_limit)
        if rewrite is not None:
            rewrite(body, ctx)
        drop_lacking(body, ctx, hub)
        choice = extras(ctx) if callable(extras) else extras
        named = () if limit is None else (limit,)
        if takes_effort and ctx.target.facts.efforts:
            named = (*named, *EFFORTS[HUB_CHAT])
        has_extras = fit(body, validator, ctx, choice, hub, named)
        return Call("POST", path, body) if make_call is None else make_call(body, ctx, has_extras)

    return write_request


def _needs_no_change(
    request: JsonObject, ctx: Context, validator: Validator, token_limit: TokenLimitRule | None
) -> bool:
    """Whether the target takes a client's request as it is but for the model, as far as its parameters are concerned:
    the client's body was accepted by the same schema, and the target has no rule about any of its fields."""
    target = ctx.target
    return (
        request is ctx.call.body
        and ctx.accepted_by is validator
        and not target.alters_requests
        and target.policy.extra_parameters == "pass-through"
        and request.keys() <= validator.defined
        and (token_limit is None or keeps_token_limit(request, ctx, token_limit))
        and validator.accepts_model(target.model)
    )
