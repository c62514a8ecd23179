"""The process that imports litellm. It reads no configuration: every call brings what it needs."""

__all__: list[str] = []
