"""Where each dialect serves each protocol, how a key is shown there, and in which profile an endpoint is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import quote

__all__ = ["ADDRESSES", "Address", "path_of"]


@dataclass(frozen=True, slots=True)
class Address:
    """`paths` are relative to the base address that the dialect's own clients take, with `{model}` in them where the
    model is a part of it; `key` is header -> form of the credential."""

    paths: Mapping[str, str]
    key: Mapping[str, str] = field(default_factory=lambda: {"Authorization": "Bearer {key}"})
    query: Mapping[str, str] = field(default_factory=dict)
    profile: str = "actual"


ADDRESSES: Mapping[str, Address] = MappingProxyType(
    {
        "openai": Address(
            {
                "chat": "/chat/completions",
                "responses": "/responses",
                "completions": "/completions",
                "embeddings": "/embeddings",
                "models": "/models",
            },
            profile="documented",
        ),
        "databricks": Address(
            {
                "chat": "/serving-endpoints/{model}/invocations",
                "responses": "/serving-endpoints/responses",
                "completions": "/serving-endpoints/{model}/invocations",
                "embeddings": "/serving-endpoints/{model}/invocations",
            }
        ),
        "azure": Address(
            {"chat": "/chat/completions", "embeddings": "/embeddings", "models": "/info"},
            {"api-key": "{key}"},
            {"api-version": "2024-05-01-preview"},
        ),
        "mindie": Address({"chat": "/v1/chat/completions", "models": "/v1/models"}),
    }
)


def path_of(dialect: str, protocol: str, model: str) -> str:
    """Raises KeyError where the dialect has no such protocol."""
    return ADDRESSES[dialect].paths[protocol].replace("{model}", quote(model, safe=""))
