"""Providers of the anthropic dialect: Anthropic itself, and servers with its Messages API."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dragoman.adapters.providers import BaseAddress, EnvironmentProvider, Vendor

__all__ = ["BASE_ADDRESS", "ENVIRONMENT", "VENDORS"]

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
