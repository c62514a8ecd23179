"""Guided decoding: grammars, and the token masks that enforce them."""

__all__: list[str] = []
