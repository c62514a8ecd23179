"""Providers of the openai dialect: OpenAI itself, servers that speak its dialect, and resources of Azure OpenAI."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dragoman.adapters.listing import ModelList
from dragoman.adapters.providers import BaseAddress, EnvironmentProvider, Vendor

from .azure_addresses import FORM

__all__ = ["BASE_ADDRESS", "ENVIRONMENT", "MODEL_LIST", "VENDORS"]

_OWN = "https://api.openai.com/v1"
_CHAT, _BOTH = ("chat",), ("chat", "embeddings")
_API_VERSION = "2024-10-21"
"""Azure OpenAI's latest version that is no preview. It has no Responses API, so chat serves responses."""

BASE_ADDRESS = BaseAddress(
    "/chat/completions",
    re.compile(r"(?<=/v1)/v1$|/chat(/completions)?$|/completions$|/embeddings$"),
    version="/v1",
)
ENVIRONMENT = (
    EnvironmentProvider(
        "openai",
        ("OPENAI_API_KEY",),
        f"${{OPENAI_BASE_URL:-{_OWN}}}",
        ("chat", "responses", "completions", "embeddings"),
        patterns=("gpt-*", "chatgpt-*", "o*", "text-embedding-*"),
    ),
    EnvironmentProvider(
        FORM,
        ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY"),
        "${AZURE_OPENAI_ENDPOINT}",
        ("chat", "completions", "embeddings"),
        settings={"address": FORM, "api_version": f"${{OPENAI_API_VERSION:-{_API_VERSION}}}"},
    ),
)
VENDORS: Mapping[str, Vendor] = {
    "openai": Vendor(_OWN, ("chat", "responses", "embeddings"), "OPENAI_API_KEY"),
    "azure": Vendor(
        "${AZURE_API_BASE}",
        ("chat", "completions", "embeddings"),
        "AZURE_API_KEY",
        settings={"address": FORM, "api_version": f"${{AZURE_API_VERSION:-{_API_VERSION}}}"},
    ),
    **dict.fromkeys(
        ("hosted_vllm", "openai_like", "custom_openai", "lm_studio", "llamafile", "litellm_proxy"), Vendor()
    ),
    **dict.fromkeys(("ollama", "ollama_chat"), Vendor("http://localhost:11434/v1", appended="/v1")),
    **{
        name: Vendor(url, protocols, key)
        for name, url, key, protocols in (
            ("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", _CHAT),
            ("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", _BOTH),
            ("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", _BOTH),
            ("together_ai", "https://api.together.ai/v1", "TOGETHERAI_API_KEY", _BOTH),
            ("xai", "https://api.x.ai/v1", "XAI_API_KEY", _CHAT),
            ("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", _CHAT),
            ("cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", _CHAT),
        )
    },
}
"""Source of the addresses and of the protocols: the vendors' API references. litellm 1.109.1 has the same addresses and
the variables, in `litellm_core_utils/get_llm_provider_logic.py` and `llms/`, but calls DeepSeek at /beta."""
MODEL_LIST = ModelList("/models")
"""Source: the OpenAI OpenAPI document 2.3, GET /models."""
