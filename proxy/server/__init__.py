"""The listening side: connections, routes to handlers, life cycle, model listings, stored responses."""

__all__: list[str] = []
