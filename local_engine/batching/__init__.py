"""Continuous batching: the scheduler, its slots, and the caches that hold keys and values."""

__all__: list[str] = []
