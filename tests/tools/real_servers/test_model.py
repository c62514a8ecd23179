"""The weights of dragoman-mini, as the servers read them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from dragoman.local_engine.export.quantization import quantize
from dragoman.local_engine.export.weights import SafetensorsFolder, weight_shapes
from tools.mini.train import mini_spec
from tools.real_servers.model import dequantize, write_model


def test_folder_holds_every_tensor_in_its_shape(tmp_path: Path) -> None:
    weights = SafetensorsFolder(write_model(tmp_path / "mini"))
    assert {name: weights[name].shape for name in weights} == weight_shapes(mini_spec())
    assert json.loads((tmp_path / "mini" / "config.json").read_text("utf-8"))["architectures"] == ["LlamaForCausalLM"]


def test_dequantized_matrix_is_the_one_that_was_quantized() -> None:
    matrix = np.random.RandomState(0).standard_normal((6, 64)).astype(np.float32)
    codes, scales = quantize(matrix, 8)
    assert np.abs(dequantize(codes.reshape(6, 2, 32), scales) - matrix).max() < 0.02


def test_weights_are_written_once(tmp_path: Path) -> None:
    file = write_model(tmp_path / "mini") / "model.safetensors"
    file.write_bytes(b"as it was")
    write_model(tmp_path / "mini")
    assert file.read_bytes() == b"as it was"
