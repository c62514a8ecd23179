"""Prompts: chat messages to the text that a model reads."""

__all__: list[str] = []
