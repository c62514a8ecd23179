"""The log, the secrets that it hides, and what it says about an exchange."""

__all__: list[str] = []
