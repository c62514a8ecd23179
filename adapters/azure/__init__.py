"""The azure dialect: Azure AI model inference."""

from __future__ import annotations

import re

from dragoman.adapters.dialect import Dialect, prefix
from dragoman.adapters.providers import BaseAddress, EnvironmentProvider, Vendor
from dragoman.adapters.rate_headers import AZURE_RATE_HEADERS

from . import chat, chat_served, embeddings, messages
from .calls import DEFAULT_API_VERSION, DEPLOYMENT
from .info import INFORMATION

__all__ = ["DIALECT"]

DIALECT = Dialect(
    name="azure",
    telemetry_name="azure.ai.inference",
    auth={
        "both": {"Authorization": "Bearer {}", "api-key": "{}"},
        "bearer": {"Authorization": "Bearer {}"},
        "api-key": {"api-key": "{}"},
        "x-api-key": {"x-api-key": "{}", "api-key": "{}"},
    },
    served={"chat": chat_served.SERVED, "embeddings": embeddings.SERVED, **messages.SERVED},
    called={"chat": chat.CALLED, "embeddings": embeddings.CALLED, **messages.CALLED},
    default_protocols=("chat", "embeddings"),
    paths={
        "chat": prefix("azure", "/chat/completions", "/models/chat/completions"),
        "embeddings": prefix("azure", "/embeddings", "/models/embeddings"),
        **messages.PATHS,
    },
    query={"api-version": DEFAULT_API_VERSION},
    deployment_header=DEPLOYMENT,
    information=INFORMATION,
    forwarded=("x-ms-error-code",),
    rate_headers=AZURE_RATE_HEADERS,
    base_address=BaseAddress(
        "/chat/completions",
        re.compile(r"/chat(/completions)?$|/embeddings$"),
        host_paths={".services.ai.azure.com": "/models"},
    ),
    address_forms=messages.FORMS,
    settings=frozenset({"api_version", "address"}),
    environment=(
        EnvironmentProvider(
            "azure",
            ("AZURE_INFERENCE_ENDPOINT", "AZURE_INFERENCE_CREDENTIAL"),
            "${AZURE_INFERENCE_ENDPOINT}",
            ("chat", "embeddings"),
        ),
    ),
    vendors={"azure_ai": Vendor("${AZURE_AI_API_BASE}", key="AZURE_AI_API_KEY")},
)
