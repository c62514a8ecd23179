"""Servers that the proxy starts as processes of their own, keeps running, and reaches over Unix sockets."""

__all__: list[str] = []
