"""Azure OpenAI's addresses: another form of address of the openai dialect. Only the addresses differ from OpenAI's.

A model is a deployment. Chat, completions and embeddings name it in the address, as in
`/openai/deployments/NAME/chat/completions?api-version=2024-10-21`, and ignore the `model` in the body. Responses are at
`/openai/responses?api-version=...` and name the deployment in the body. All of these require an `api-version`. The
addresses below `/openai/v1` require none; they are OpenAI's with another base address.

Source: Azure OpenAI REST API reference, data plane inference, 2024-10-21 and 2025-04-01-preview.
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
from dragoman.adapters.rate_headers import AZURE_RATE_HEADERS

__all__ = ["FORM", "FORMS", "call_azure_addresses", "serve_azure_addresses"]

FORM = "azure-openai"
"""The name of this form, a value of a provider's setting `address`."""

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
        rate_headers=AZURE_RATE_HEADERS,
    )
}

_VERSIONED = re.compile(r"/deployments/(?P<deployment>[^/]+)/.+|/responses")
_BY_BODY = frozenset({"/responses"})


def serve_azure_addresses(verbs: Served) -> Served:
    """Return the verbs, with a `read_request` that also reads calls to Azure OpenAI's addresses."""

    def read_request(call: Call, ctx: Context) -> JsonObject:
        found = _VERSIONED.fullmatch(call.path)
        return verbs.read_request(call if found is None else _read_deployment(call, found, ctx), ctx)

    return replace(verbs, read_request=read_request)


def call_azure_addresses(verbs: Called) -> Called:
    """Return the verbs, with a `write_request` that uses Azure OpenAI's addresses if the target has this form."""

    def write_request(request: JsonObject, ctx: Context) -> Call:
        call = verbs.write_request(request, ctx)
        return call if ctx.target.address is None else _write_address(call, ctx)

    return replace(verbs, write_request=write_request)


def _read_deployment(call: Call, found: re.Match[str], ctx: Context) -> Call:
    """Return the call with the deployment that was found in its address as the `model` of its body.

    Raises Fault if the query has no valid `api-version`, which these addresses require.
    """
    check_api_version(call.query.get("api-version"), "2024-10-21")
    if found["deployment"] is None:
        return call
    model = unquote(found["deployment"])
    if call.body.get("model", model) != model:
        ctx.receipt.record_drop(("model",), "the address names the deployment", "form")
    return call._replace(body={**call.body, "model": model})


def _write_address(call: Call, ctx: Context) -> Call:
    version = ctx.target.api_version
    query = call.query if version is None else {**call.query, "api-version": version}
    place = "" if call.path in _BY_BODY else f"/deployments/{quote(ctx.target.model, safe='')}"
    return call._replace(path=f"/openai{place}{call.path}", query=query)
