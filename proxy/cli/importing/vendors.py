"""LiteLLM's vendors: which of them a dialect here speaks to, and what LiteLLM takes from the environment for them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dragoman.adapters.dialect import Dialect
from dragoman.adapters.providers import Vendor
from dragoman.adapters.registry import dialects

__all__ = ["CLOUDS", "base_address_of", "vendor_of", "vendors"]


vendors: Mapping[str, tuple[Dialect, Vendor]] = {
    word: (dialect, vendor) for dialect in dialects.values() for word, vendor in dialect.vendors.items()
}
"""LiteLLM's word for a vendor -> the dialect that it speaks, and its address and key."""

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


def base_address_of(dialect: Dialect, address: str) -> str:
    """LiteLLM's address for a vendor, as the base address of its dialect."""
    bare = _TAIL.sub("", address)
    if dialect.base_address is None:
        return bare
    return dialect.base_address.complete(dialect.base_address.shorten(bare) or bare)
