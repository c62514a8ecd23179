"""`dragoman learn` and `dragoman drift`: what a provider is, found out by asking it."""

__all__: list[str] = []
