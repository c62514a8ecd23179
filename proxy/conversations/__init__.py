"""Conversations over Responses: the store of one key, and the stores of responses."""

__all__: list[str] = []
