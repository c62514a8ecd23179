"""Sampling: from the logits of a step to one token per row, on the host or on a device.

sampler         the sampling rules, with numpy
logits          the logits of a step, on the host
device_logits   the logits of a step on a device, which returns a few kilobytes per row instead of a vocabulary
device_graph    writes float32.onnx and float16.onnx, the graphs that device_logits runs
"""

__all__: list[str] = []
