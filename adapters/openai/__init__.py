"""The openai dialect: OpenAI's API, which is also the hub's form, and Azure OpenAI's addresses of it."""

from __future__ import annotations

from dragoman.adapters.dialect import Dialect, prefix
from dragoman.adapters.rate_headers import OPENAI_RATE_HEADERS

from . import chat, completions, embeddings, responses
from .azure_addresses import FORMS, call_azure_addresses, serve_azure_addresses
from .models import INFORMATION
from .providers import BASE_ADDRESS, ENVIRONMENT, MODEL_LIST, VENDORS

__all__ = ["DIALECT"]

_PROTOCOLS = {"chat": chat, "responses": responses, "completions": completions, "embeddings": embeddings}

DIALECT = Dialect(
    name="openai",
    auth={"bearer": {"Authorization": "Bearer {}"}, "api-key": {"api-key": "{}"}},
    served={protocol: serve_azure_addresses(verbs.SERVED) for protocol, verbs in _PROTOCOLS.items()},
    called={protocol: call_azure_addresses(verbs.CALLED) for protocol, verbs in _PROTOCOLS.items()},
    default_protocols=("chat", "completions", "embeddings"),
    paths={
        "chat": prefix("openai", "/v1/chat/completions"),
        "responses": prefix("openai", "/v1/responses"),
        "completions": prefix("openai", "/v1/completions"),
        "embeddings": prefix("openai", "/v1/embeddings"),
    },
    stored_protocols=frozenset({"responses"}),
    information=INFORMATION,
    rate_headers=OPENAI_RATE_HEADERS,
    base_address=BASE_ADDRESS,
    address_forms=FORMS,
    settings=frozenset({"address"}),
    environment=ENVIRONMENT,
    vendors=VENDORS,
    model_list=MODEL_LIST,
    keeps_responses=True,
    is_hub_form=True,
)
