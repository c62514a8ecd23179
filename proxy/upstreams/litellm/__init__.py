"""litellm as an upstream, for providers whose API has no dialect here. Only its own process (`process/`) imports it."""

__all__: list[str] = []
