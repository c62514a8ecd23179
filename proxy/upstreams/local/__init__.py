"""Providers that are an engine process on this machine, which the proxy starts, watches and stops."""

__all__: list[str] = []
