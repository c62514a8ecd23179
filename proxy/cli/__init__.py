"""The command line: one module for each group of commands."""

__all__: list[str] = []
