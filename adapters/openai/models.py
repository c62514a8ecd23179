"""OpenAI's lists of models. Clients of Azure OpenAI use the last address."""

from __future__ import annotations

from dragoman.adapters.dialect import prefix
from dragoman.adapters.listing import list_as_openai

__all__ = ["INFORMATION"]

INFORMATION = list_as_openai("dragoman", *prefix("openai", "/v1/models"), "/openai/models")
