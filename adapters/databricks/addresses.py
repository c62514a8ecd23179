"""Databricks' addresses: serving endpoints, and the AI Gateway as another form of address.

An endpoint's address names the model: `/serving-endpoints/NAME/invocations`. At the other addresses the body does:
`/serving-endpoints/responses` passes requests on to OpenAI, `/serving-endpoints/open-responses` serves the models of
other vendors. The AI Gateway has the same two APIs below `/ai-gateway/openai/v1` and `/ai-gateway/mlflow/v1`; the
latter has chat and embeddings too. Both have Anthropic's Messages, below `/serving-endpoints/anthropic` and
`/ai-gateway/anthropic`.

Source: Databricks, Query with the OpenAI Responses API; Query a model with the Open Responses API; Query AI Gateway
endpoints; Query with the Anthropic Messages API.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dragoman.adapters.call import Target
from dragoman.adapters.dialect import prefix
from dragoman.adapters.providers import AddressForm, BaseAddress

__all__ = ["FORMS", "PATHS", "messages_path", "names_model_in_body", "responses_path", "unified_path"]

_GATEWAY = "ai-gateway"
"""The name of the other form, a value of a provider's setting `address`."""

_MESSAGES = "/anthropic/v1/messages"
_UNIFIED, _NATIVE = "/ai-gateway/mlflow/v1", "/ai-gateway/openai/v1"

PATHS: Mapping[str, tuple[str, ...]] = {
    "chat": prefix("databricks", "/serving-endpoints/chat/completions", "/serving-endpoints/{name}/invocations"),
    "responses": prefix("databricks", "/serving-endpoints/responses", "/serving-endpoints/open-responses"),
    "completions": prefix("databricks", "/serving-endpoints/completions"),
    "embeddings": prefix("databricks", "/serving-endpoints/embeddings"),
    "messages": prefix("databricks", f"/serving-endpoints{_MESSAGES}"),
    "count_tokens": prefix("databricks", f"/serving-endpoints{_MESSAGES}/count_tokens"),
}

FORMS: Mapping[str, AddressForm] = {
    _GATEWAY: AddressForm(
        "Databricks AI Gateway",
        BaseAddress(f"{_UNIFIED}/chat/completions", re.compile(r"/(ai-gateway|serving-endpoints)(/.*)?$")),
        auth="bearer",
        own=re.compile(r"/ai-gateway(/.*)?$"),
        paths={
            "chat": prefix("databricks", f"{_UNIFIED}/chat/completions"),
            "responses": prefix("databricks", f"{_UNIFIED}/responses", f"{_NATIVE}/responses"),
            "embeddings": prefix("databricks", f"{_UNIFIED}/embeddings"),
            "messages": prefix("databricks", f"/ai-gateway{_MESSAGES}"),
            "count_tokens": prefix("databricks", f"/ai-gateway{_MESSAGES}/count_tokens"),
        },
    )
}


def names_model_in_body(target: Target) -> bool:
    """Whether requests to the target name its model in the body, because the address does not."""
    return target.address == _GATEWAY


def unified_path(protocol_path: str) -> str:
    """Return the AI Gateway's path of a protocol that all vendors' models share, as `/chat/completions`."""
    return _UNIFIED + protocol_path


def responses_path(target: Target) -> str:
    """Return the path of Responses for the target's model; a model of which nothing is known may be one of OpenAI."""
    facts = target.facts
    is_other = facts.vendor is not None and "responses" not in facts.protocols
    if target.address == _GATEWAY:
        return f"{_UNIFIED if is_other else _NATIVE}/responses"
    return f"/serving-endpoints/{'open-responses' if is_other else 'responses'}"


def messages_path(target: Target) -> str:
    """Return the path of Messages."""
    return f"/{_GATEWAY if target.address == _GATEWAY else 'serving-endpoints'}{_MESSAGES}"
