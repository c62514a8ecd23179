"""Model folders: what a folder holds, checked before anything is loaded."""

__all__: list[str] = []
