"""The ONNX Runtime engine. Nothing is here yet: the proxy routes to remote providers only."""

__all__: list[str] = []
