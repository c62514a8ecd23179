"""The page: what a browser shows of the running proxy, and the addresses that it asks."""

__all__: list[str] = []
