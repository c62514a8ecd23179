"""Export: safetensors of the models in `spec.ARCHITECTURES` to model folders that the engine serves.

Needs the extra `export` (onnx). Nothing here is imported by the engine.
"""
