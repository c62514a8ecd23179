"""Conversations over Responses: what a request continues, and the stores that keep responses."""

__all__: list[str] = []
