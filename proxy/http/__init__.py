"""HTTP plumbing: request bodies, JSON and streaming responses, decompression, deadlines, TLS."""

__all__: list[str] = []
