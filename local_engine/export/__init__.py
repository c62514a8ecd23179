"""The exporter: safetensors of the architectures in `spec.ARCHITECTURES` to model folders for the engine.

It needs the extra `export` (onnx). The engine does not import it.
"""
