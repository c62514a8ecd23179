"""Models on this machine: each provider's engine is a process that the proxy supervises."""

__all__: list[str] = []
