"""The engine in a process of its own, so that a native crash takes nothing else down. `python -m` it with `--help`."""

__all__: list[str] = []
