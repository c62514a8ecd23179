"""What the adapters of all protocols share."""

__all__: list[str] = []
