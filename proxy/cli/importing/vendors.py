"""LiteLLM's vendors: the dialect that calls each of them, and the environment variables that LiteLLM reads for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["KEYLESS_VENDORS", "NATIVE_VENDORS", "Vendor", "convert_base_url", "parse_vendor"]


class Vendor(NamedTuple):
    """A vendor that a dialect can call. `base_url` is the default address; if it is empty, the file has to name
    one. `key` is the environment variable with the default API key."""

    dialect: str
    base_url: str = ""
    protocols: tuple[str, ...] = ("chat", "embeddings")
    key: str = ""


_SERVER = Vendor("openai")

NATIVE_VENDORS: Mapping[str, Vendor] = {
    "openai": Vendor("openai", "https://api.openai.com/v1", ("chat", "responses", "embeddings"), "OPENAI_API_KEY"),
    "databricks": Vendor("databricks", "${DATABRICKS_API_BASE}", key="DATABRICKS_API_KEY"),
    "azure_ai": Vendor("azure", "${AZURE_AI_API_BASE}", key="AZURE_AI_API_KEY"),
    "hosted_vllm": _SERVER,
    "openai_like": _SERVER,
    "custom_openai": _SERVER,
    "lm_studio": _SERVER,
    "llamafile": _SERVER,
}

KEYLESS_VENDORS = frozenset(
    {"bedrock", "bedrock_converse", "sagemaker", "sagemaker_chat", "vertex_ai", "ollama", "ollama_chat"}
)
"""Vendors that LiteLLM calls without an API key."""

_BY_NAME = (
    (re.compile(r"(?:gpt-|chatgpt-|o\d|text-embedding-).*"), "openai"),
    (re.compile(r"claude-.*"), "anthropic"),
)
_TAIL = re.compile(r"(?:/chat/completions|/embeddings|/invocations)?/*(?:\?.*)?$")


def parse_vendor(model: str) -> tuple[str, str] | None:
    """The vendor, and its own name for the model; None if only LiteLLM's list of models says the vendor."""
    vendor, slash, name = model.partition("/")
    if slash and name and re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", vendor):
        return vendor, name
    return next(((vendor, model) for pattern, vendor in _BY_NAME if pattern.fullmatch(model)), None)


def convert_base_url(dialect: str, address: str) -> str:
    """The base address of the dialect, from the address that LiteLLM calls."""
    bare = _TAIL.sub("", address)
    if dialect == "databricks":
        return bare.removesuffix("/serving-endpoints")
    if dialect == "azure" and bare.endswith(".services.ai.azure.com"):
        return f"{bare}/models"
    return bare
