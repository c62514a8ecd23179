"""onnxruntime: execution providers, sessions and buffers."""

__all__: list[str] = []
