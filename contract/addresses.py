"""The addresses of each dialect: a path for each protocol, the headers of the key, the profile of the schemas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import quote

__all__ = ["ADDRESSES", "Address", "build_path"]


@dataclass(frozen=True, slots=True)
class Address:
    """`paths` are relative to the base URL that the dialect's own clients take; `{model}` is the model if it is part of
    the path. `key` maps a header to the form of the credential."""

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


def build_path(dialect: str, protocol: str, model: str) -> str:
    """Build the path of a protocol. Raises KeyError if the dialect does not have the protocol."""
    return ADDRESSES[dialect].paths[protocol].replace("{model}", quote(model, safe=""))
