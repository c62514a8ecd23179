"""Tools for working on dragoman. None of them is part of the installed package."""

__all__: list[str] = []
