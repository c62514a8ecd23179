"""Azure OpenAI's addresses: a form of address of this dialect, which is otherwise OpenAI's own.

A model is a deployment, and where a protocol is older than Azure's `/openai/v1` its name stands in the address, as in
`/openai/deployments/NAME/chat/completions?api-version=2024-10-21`; what the body says of a model counts for nothing.
Responses are at `/openai/responses?api-version=...`, the deployment in the body. All of these want an `api-version`
(Azure OpenAI REST API reference, data plane inference, 2024-10-21 and 2025-04-01-preview). The addresses under
`/openai/v1` want none, and are OpenAI's with another beginning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import quote, unquote

from dragoman.adapters.api_version import check_api_version
from dragoman.adapters.call import Call, Context, JsonObject
from dragoman.adapters.dialect import Called, Served
from dragoman.adapters.providers import AddressForm, BaseAddress

__all__ = ["FORM", "FORMS", "called", "served"]

FORM = "azure-openai"
"""What this form is called in a provider's `address`."""

FORMS: Mapping[str, AddressForm] = {
    FORM: AddressForm(
        "Azure OpenAI",
        BaseAddress("/openai/deployments/<model>/chat/completions", re.compile(r"/openai(/.*)?$")),
        auth="api-key",
        settings={"api_version": "as in api_version: 2024-10-21; responses need 2025-03-01-preview or later"},
        paths={
            "chat": ("/openai/deployments/{name}/chat/completions",),
            "completions": ("/openai/deployments/{name}/completions",),
            "embeddings": ("/openai/deployments/{name}/embeddings",),
            "responses": ("/openai/responses",),
        },
    )
}

_VERSIONED = re.compile(r"/deployments/(?P<deployment>[^/]+)/.+|/responses")
_BY_BODY = frozenset({"/responses"})


def served(verbs: Served) -> Served:
    """The verbs, where the request may also have come to one of these addresses."""

    def read_request(call: Call, ctx: Context) -> JsonObject:
        return verbs.read_request(_received(call, ctx), ctx)

    return replace(verbs, read_request=read_request)


def called(verbs: Called) -> Called:
    """The verbs, where the provider may also be called at these addresses."""

    def write_request(request: JsonObject, ctx: Context) -> Call:
        call = verbs.write_request(request, ctx)
        return call if ctx.target.address is None else _addressed(call, ctx)

    return replace(verbs, write_request=write_request)


def _received(call: Call, ctx: Context) -> Call:
    """The call with the deployment as its body's model. Raises Fault."""
    found = _VERSIONED.fullmatch(call.path)
    if found is None:
        return call
    check_api_version(call.query.get("api-version"), "2024-10-21")
    if found["deployment"] is None:
        return call
    model = unquote(found["deployment"])
    if call.body.get("model", model) != model:
        ctx.receipt.record_drop(("model",), "the address names the deployment", "form")
    return call._replace(body={**call.body, "model": model})


def _addressed(call: Call, ctx: Context) -> Call:
    version = ctx.target.api_version
    query = call.query if version is None else {**call.query, "api-version": version}
    place = "" if call.path in _BY_BODY else f"/deployments/{quote(ctx.target.model, safe='')}"
    return call._replace(path=f"/openai{place}{call.path}", query=query)
