"""LiteLLM's vendors: the dialect that calls each of them, and the environment variables that LiteLLM reads for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from dragoman.adapters.dialect import Dialect
from dragoman.adapters.providers import Vendor
from dragoman.adapters.registry import dialects

__all__ = [
    "KEYLESS_VENDORS",
    "NATIVE_VENDORS",
    "RESPONSES",
    "convert_base_url",
    "find_native_vendor",
    "name_key_variable",
    "parse_vendor",
]

NATIVE_VENDORS: Mapping[str, tuple[Dialect, Vendor]] = {
    name: (dialect, vendor) for dialect in dialects.values() for name, vendor in dialect.vendors.items()
}
"""Maps LiteLLM's name for a vendor to the dialect that calls the vendor, and to its default address and key."""

_CLAUDE_AT_AZURE = Vendor("${AZURE_AI_API_BASE}", ("messages",), "AZURE_AI_API_KEY", settings={"address": "anthropic"})
RESPONSES = "responses/"
"""How the name of a model of OpenAI or Azure OpenAI begins that LiteLLM calls with Responses."""

KEYLESS_VENDORS = frozenset({"bedrock", "bedrock_converse", "sagemaker", "sagemaker_chat", "vertex_ai"})
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


def find_native_vendor(name: str, model: str) -> tuple[Dialect, Vendor] | None:
    """The dialect and the vendor that LiteLLM calls for this model; None if no dialect is the vendor's."""
    found = NATIVE_VENDORS.get(name)
    if found is not None and name == "azure_ai" and model.startswith("claude"):
        return found[0], _CLAUDE_AT_AZURE
    if found is not None and model.startswith(RESPONSES):
        return found[0], replace(found[1], protocols=("responses",))
    return found


def name_key_variable(vendor: str) -> str:
    """The variable that has the vendor's key if a deployment has none; empty if the vendor needs no key."""
    if vendor in NATIVE_VENDORS:
        return NATIVE_VENDORS[vendor][1].key
    return "" if vendor in KEYLESS_VENDORS else f"{vendor.replace('-', '_').upper()}_API_KEY"


def convert_base_url(dialect: Dialect, vendor: Vendor, address: str) -> str:
    """The base address of the dialect, from the address that LiteLLM calls."""
    bare = _TAIL.sub("", address)
    form = dialect.address_forms.get(vendor.settings.get("address", ""))
    base = dialect.base_address if form is None else form.base_address
    if base is None:
        return bare
    short = base.complete(base.shorten(bare) or bare)
    return short if short.endswith(vendor.appended) else short + vendor.appended
