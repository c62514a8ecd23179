"""The log, the secrets that it masks, and the record of an exchange."""

__all__: list[str] = []
