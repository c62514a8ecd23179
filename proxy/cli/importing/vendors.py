"""LiteLLM's vendors: which of them a dialect here speaks to, and what LiteLLM takes from the environment for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["CLOUDS", "Vendor", "placed", "vendor_of", "vendors"]


class Vendor(NamedTuple):
    """A vendor with a dialect here. `base_url` is the address where the file names none; empty: it has to."""

    dialect: str
    base_url: str = ""
    protocols: tuple[str, ...] = ("chat", "embeddings")
    key: str = ""


_SERVER = Vendor("openai")

vendors: Mapping[str, Vendor] = {
    "openai": Vendor("openai", "https://api.openai.com/v1", ("chat", "responses", "embeddings"), "OPENAI_API_KEY"),
    "databricks": Vendor("databricks", "${DATABRICKS_API_BASE}", key="DATABRICKS_API_KEY"),
    "azure_ai": Vendor("azure", "${AZURE_AI_API_BASE}", key="AZURE_AI_API_KEY"),
    "hosted_vllm": _SERVER,
    "openai_like": _SERVER,
    "custom_openai": _SERVER,
    "lm_studio": _SERVER,
    "llamafile": _SERVER,
}

CLOUDS = frozenset({"bedrock", "bedrock_converse", "sagemaker", "sagemaker_chat", "vertex_ai", "ollama", "ollama_chat"})
"""Vendors of litellm's that need no API key."""

_BY_NAME = (
    (re.compile(r"(?:gpt-|chatgpt-|o\d|text-embedding-).*"), "openai"),
    (re.compile(r"claude-.*"), "anthropic"),
)
_TAIL = re.compile(r"(?:/chat/completions|/embeddings|/invocations)?/*(?:\?.*)?$")


def vendor_of(model: str) -> tuple[str, str] | None:
    """The vendor and its own name for the model, or None where LiteLLM would have to look it up in its lists."""
    vendor, slash, name = model.partition("/")
    if slash and name and re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", vendor):
        return vendor, name
    return next(((vendor, model) for pattern, vendor in _BY_NAME if pattern.fullmatch(model)), None)


def placed(dialect: str, address: str) -> str:
    """LiteLLM's address for a vendor, as the base address of its dialect."""
    bare = _TAIL.sub("", address)
    if dialect == "databricks":
        return bare.removesuffix("/serving-endpoints")
    if dialect == "azure" and bare.endswith(".services.ai.azure.com"):
        return f"{bare}/models"
    return bare
