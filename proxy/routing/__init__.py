"""The configuration turned into state: keys, models, providers and their targets."""

__all__: list[str] = []
