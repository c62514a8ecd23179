"""The protocol between the proxy and litellm's process."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["FAULT_HEADER", "FUNCTIONS"]

FUNCTIONS: Mapping[str, str] = {"/chat/completions": "acompletion", "/embeddings": "aembedding"}
"""Path of the call -> litellm's function."""

FAULT_HEADER = "x-dragoman-fault"
"""Marks a reply that does not come from a provider: its body contains kind, code, text and cause of a fault."""
