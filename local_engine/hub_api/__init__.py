"""Requests and replies in hub form: chat, completions and embeddings."""

__all__: list[str] = []
