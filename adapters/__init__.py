"""Normalise and translate, without any input or output: pure functions and small state machines."""

__all__: list[str] = []
