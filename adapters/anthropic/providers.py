"""Providers of the anthropic dialect: Anthropic itself, and servers with its Messages API."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dragoman.adapters.listing import ModelList
from dragoman.adapters.messages.headers import VERSION
from dragoman.adapters.messages.versions import VERSIONS
from dragoman.adapters.providers import BaseAddress, EnvironmentProvider, Vendor

__all__ = ["BASE_ADDRESS", "ENVIRONMENT", "MODEL_LIST", "VENDORS"]

_OWN = "https://api.anthropic.com"

BASE_ADDRESS = BaseAddress("/v1/messages", re.compile(r"/v1(/messages)?$"))
ENVIRONMENT = (
    EnvironmentProvider(
        "anthropic",
        ("ANTHROPIC_API_KEY",),
        f"${{ANTHROPIC_BASE_URL:-{_OWN}}}",
        ("messages",),
        patterns=("claude-*",),
    ),
)
VENDORS: Mapping[str, Vendor] = {"anthropic": Vendor(_OWN, ("messages",), "ANTHROPIC_API_KEY")}
MODEL_LIST = ModelList("/v1/models", query={"limit": "1000"}, headers={VERSION: VERSIONS[0]})
"""Source: Anthropic's API reference, List Models."""
