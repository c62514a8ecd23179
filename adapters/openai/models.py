"""OpenAI's lists of models."""

from __future__ import annotations

from dragoman.adapters.listing import lists_as_openai

__all__ = ["INFORMATION"]

INFORMATION = lists_as_openai("dragoman")
