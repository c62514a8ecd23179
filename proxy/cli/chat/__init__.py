"""`dragoman chat`: a conversation with a model in a terminal."""

__all__: list[str] = []
