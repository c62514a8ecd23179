"""Ways to reach a provider: HTTP, a local engine, litellm; their credentials and errors."""

__all__: list[str] = []
