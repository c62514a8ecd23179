"""Choosing tokens where the logits are, so that a device hands back a few kilobytes instead of a vocabulary per row.

graph       float32.onnx and float16.onnx, written by python -m dragoman.local_engine.on_device.graph
scores      the logits of a step on a device, and the choice among them
"""

__all__: list[str] = []
