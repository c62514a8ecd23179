"""Upstreams: HTTP, the local engine, litellm; with credentials, errors and the retry table."""

__all__: list[str] = []
