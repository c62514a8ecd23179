"""Export: safetensors of Llama-, Qwen2- and Qwen3-style models to model folders that the engine serves.

Needs the extra `export` (onnx). Nothing here is imported by the engine.
"""
