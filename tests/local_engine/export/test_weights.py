"""Weights: the tensors of each architecture, bfloat16, and malformed safetensors files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tiny_models import SPECS

from dragoman.local_engine.export.spec import ExportError
from dragoman.local_engine.export.weights import SafetensorsFolder, weight_shapes


def test_bfloat16_is_converted_to_float32(tmp_path: Path) -> None:
    values = np.array([1.0, -2.5, 3e38], np.float32)
    header = json.dumps({"w": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]}}).encode()
    body = (values.view(np.uint32) >> 16).astype("<u2").tobytes()
    (tmp_path / "m.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + body)
    found = SafetensorsFolder(tmp_path)["w"]
    assert found.dtype == np.float32 and found[:2].tolist() == [1.0, -2.5]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"abc", "too short"),
        ((1 << 60).to_bytes(8, "little") + b"{}", "truncated"),
        (b"\2\0\0\0\0\0\0\0{{", "not valid JSON"),
    ],
)
def test_a_malformed_safetensors_file_is_rejected(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "m.safetensors").write_bytes(data)
    with pytest.raises(ExportError, match=message):
        SafetensorsFolder(tmp_path)


@pytest.mark.parametrize(
    ("dtype", "offsets", "message"),
    [("F32", [0, 99], "are not 8 bytes"), ("F32", [-8, 0], "are not"), ("I8", [0, 2], "stored as I8")],
)
def test_an_invalid_tensor_entry_is_rejected(tmp_path: Path, dtype: str, offsets: list[int], message: str) -> None:
    header = json.dumps({"w": {"dtype": dtype, "shape": [2], "data_offsets": offsets}}).encode()
    (tmp_path / "m.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(ExportError, match=message):
        SafetensorsFolder(tmp_path)["w"]


def test_weight_shapes_depend_on_the_architecture() -> None:
    assert {name for name in weight_shapes(SPECS["qwen2"]) if "bias" in name and "layers.0" in name} == {
        f"model.layers.0.self_attn.{part}_proj.bias" for part in "qkv"
    }
    assert "lm_head.weight" not in weight_shapes(SPECS["qwen2"]) and "lm_head.weight" in weight_shapes(SPECS["llama"])
