"""OpenAI's lists of models. The last address is that of clients of Azure OpenAI."""

from __future__ import annotations

from dragoman.adapters.dialect import prefix
from dragoman.adapters.listing import list_as_openai

__all__ = ["INFORMATION"]

INFORMATION = list_as_openai("dragoman", *prefix("openai", "/v1/models"), "/openai/models")
