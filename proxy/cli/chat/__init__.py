"""`dragoman chat`: talking to a model in a terminal."""

__all__: list[str] = []
