"""Export: what goes in as safetensors comes out as a graph that computes the same, at any precision."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from engine_models import LENGTH, SEED, SPECS
from engine_rig import Folders, Rigs
from hypothesis import given
from hypothesis import strategies as st

from dragoman.local_engine.export import exporter
from dragoman.local_engine.export.decoder_graph import Options
from dragoman.local_engine.export.linear import PRECISIONS
from dragoman.local_engine.export.quantization import quantize
from dragoman.local_engine.export.rope import rotary_tables
from dragoman.local_engine.export.spec import ExportError, ModelSpec, RopeScaling, read_spec
from dragoman.local_engine.export.weights import RandomWeights, SafetensorsFolder, weight_shapes, write_safetensors
from dragoman.local_engine.export.exporter import export_folder, hf_config
from dragoman.local_engine.model_folder.folder import open_folder

FP32 = Options("fp32", "gqa", LENGTH)
PROMPT = list(b"the same text for each of them")


def source(folder: Path, spec: ModelSpec = SPECS["qwen2"], **config: Any) -> Path:
    """A folder as transformers saves one."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**hf_config(spec), **config}), "utf-8")
    (folder / "tokenizer.json").write_text("{}", "utf-8")
    write_safetensors(RandomWeights(spec, SEED), folder / "model.safetensors")
    return folder


@pytest.mark.parametrize("name", SPECS)
def test_a_spec_survives_config_json(tmp_path: Path, name: str) -> None:
    assert read_spec(source(tmp_path, SPECS[name])) == SPECS[name]


def test_configurations_of_transformers_4(tmp_path: Path) -> None:
    folder = source(tmp_path, SPECS["llama"], rope_parameters=None, rope_theta=5e5, rope_scaling=None)
    assert (read_spec(folder).rope_theta, read_spec(folder).rope_scaling) == (5e5, None)
    folder = source(tmp_path, SPECS["llama"], rope_parameters=None, rope_scaling={"type": "linear", "factor": 2})
    assert read_spec(folder).rope_scaling == RopeScaling("linear", 2.0)


def test_a_safetensors_folder_gives_the_graph_of_its_weights(tmp_path: Path, folders: Folders) -> None:
    heard: list[str] = []
    export_folder(source(tmp_path / "in"), tmp_path / "out", FP32, heard.append)
    assert (tmp_path / "out" / "model.onnx").read_bytes() == (folders("qwen2") / "model.onnx").read_bytes()
    assert heard == ["embedding", "layer 0", "layer 1", "head"]
    assert open_folder(tmp_path / "out").eos == {256}


def test_large_models_keep_their_weights_beside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rigs: Rigs
) -> None:
    monkeypatch.setattr(write, "INLINE_LIMIT", 10_000)
    file = export_folder(source(tmp_path / "in"), tmp_path / "out", FP32)
    data = tmp_path / "out" / "model.onnx.data"
    assert file.stat().st_size < 40_000 < data.stat().st_size
    assert open_folder(tmp_path / "out").file == file
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    feeds: dict[str, Any] = {"input_ids": np.array([PROMPT]), "attention_mask": np.ones((1, len(PROMPT)), np.int64)}
    empty = np.zeros((1, 2, 0, 16), np.float32)
    feeds |= {port.name: empty for port in session.get_inputs() if port.name.startswith("past")}
    logits = session.run(["logits"], feeds)[0][0, -1]
    assert logits.tobytes() == rigs("qwen2").prefill(0, 0, PROMPT).tobytes()


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_layouts_agree_and_precisions_come_near(rigs: Rigs, name: str, precision: str) -> None:
    exact = rigs(name).prefill(0, 0, PROMPT)
    near = {"fp32": 1e-4, "fp16": 0.1, "int8": 1.0, "int4": 25.0}[precision.removesuffix("-fp16")]
    for layout in ("gqa", "concat"):
        logits = rigs(name, precision, layout).prefill(0, 0, PROMPT)
        assert np.abs(logits - exact).max() < near
    assert np.corrcoef(logits, exact)[0, 1] > (0.65 if precision.startswith("int4") else 0.99)


@pytest.mark.parametrize("precision", ["fp16", "int8", "int4", "int8-fp16", "int4-fp16"])
def test_lower_precisions_are_smaller(folders: Folders, precision: str) -> None:
    whole, less = ((folders("llama", p) / "model.onnx").stat().st_size for p in ("fp32", precision))
    assert less < whole * {"fp16": 0.55, "int8": 0.42, "int4": 0.32}[precision.removesuffix("-fp16")]


@given(st.integers(1, 5), st.integers(1, 100), st.sampled_from([4, 8]), st.integers(0, 2**31))
def test_quantised_values_are_within_half_a_step(rows: int, columns: int, bits: Any, seed: int) -> None:
    matrix = np.random.RandomState(seed).standard_normal((rows, columns)).astype(np.float32)
    codes, scales = quantize(matrix, bits)
    if bits == 4:
        codes = np.stack([codes & 15, codes >> 4], -1).reshape(*codes.shape[:2], -1)
    back = ((codes.astype(np.float32) - (1 << (bits - 1))) * scales[..., None]).reshape(rows, -1)[:, :columns]
    steps = np.repeat(np.abs(scales), 32, -1)[:, :columns]
    assert (np.abs(back - matrix) <= steps * 1.001).all(), "only what lies opposite the farthest value is cut"
    opposite = np.sign(matrix) * np.sign(np.repeat(scales, 32, -1)[:, :columns]) > 0
    assert (np.abs(back - matrix) <= steps * 0.501)[~opposite].all()


def test_bfloat16_becomes_float32(tmp_path: Path) -> None:
    values = np.array([1.0, -2.5, 3e38], np.float32)
    header = json.dumps({"w": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]}}).encode()
    body = (values.view(np.uint32) >> 16).astype("<u2").tobytes()
    (tmp_path / "m.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + body)
    found = SafetensorsFolder(tmp_path)["w"]
    assert found.dtype == np.float32 and found[:2].tolist() == [1.0, -2.5]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"abc", "too short"),
        ((1 << 60).to_bytes(8, "little") + b"{}", "cut short"),
        (b"\2\0\0\0\0\0\0\0{{", "no JSON"),
    ],
)
def test_spoiled_safetensors(tmp_path: Path, data: bytes, words: str) -> None:
    (tmp_path / "m.safetensors").write_bytes(data)
    with pytest.raises(ExportError, match=words):
        SafetensorsFolder(tmp_path)


@pytest.mark.parametrize(
    ("dtype", "offsets", "words"),
    [("F32", [0, 99], "do not hold 8 bytes"), ("F32", [-8, 0], "do not hold"), ("I8", [0, 2], "stored as I8")],
)
def test_tensors_that_are_not_there(tmp_path: Path, dtype: str, offsets: list[int], words: str) -> None:
    header = json.dumps({"w": {"dtype": dtype, "shape": [2], "data_offsets": offsets}}).encode()
    (tmp_path / "m.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(ExportError, match=words):
        SafetensorsFolder(tmp_path)["w"]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"model_type": "mamba"}, 'model_type "mamba" is not one of llama, mistral, qwen2, qwen3, granite'),
        ({"hidden_act": "gelu"}, 'hidden_act "gelu"'),
        ({"use_sliding_window": True}, "use_sliding_window"),
        ({"rope_parameters": {"rope_type": "yarn"}}, 'rope_type "yarn"'),
        ({"num_key_value_heads": 3}, "no multiple of num_key_value_heads 3"),
    ],
)
def test_what_is_not_exported_is_said(tmp_path: Path, config: dict[str, Any], words: str) -> None:
    with pytest.raises(ExportError, match=words):
        export_folder(source(tmp_path / "in", **config), tmp_path / "out", FP32)


@pytest.mark.parametrize(("window", "longest"), [(None, LENGTH), (100, 100), (4096, LENGTH)])
def test_mistral_is_exported_up_to_its_window(tmp_path: Path, window: int | None, longest: int) -> None:
    folder = source(tmp_path / "in", SPECS["mistral"], sliding_window=window)
    export_folder(folder, tmp_path / "out", FP32)
    assert open_folder(tmp_path / "out").context == longest


def test_missing_pieces_are_named(tmp_path: Path) -> None:
    folder = source(tmp_path / "in")
    weights = {name: tensor for name, tensor in RandomWeights(SPECS["qwen2"]).items() if "layers.1.mlp" not in name}
    write_safetensors(weights, folder / "model.safetensors")
    with pytest.raises(ExportError, match=r"lack 3 tensors, the first is model.layers.1.mlp.gate_proj.weight"):
        export_folder(folder, tmp_path / "out", FP32)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ExportError, match=r"no tokenizer\.json"):
        export_folder(folder, tmp_path / "out", FP32)


def test_a_model_is_never_overwritten(folders: Folders, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="exists; name an empty folder"):
        export_folder(source(tmp_path), folders("qwen2"), FP32)


def test_shapes_cover_every_architecture() -> None:
    assert {name for name in weight_shapes(SPECS["qwen2"]) if "bias" in name and "layers.0" in name} == {
        f"model.layers.0.self_attn.{part}_proj.bias" for part in "qkv"
    }
    assert "lm_head.weight" not in weight_shapes(SPECS["qwen2"]) and "lm_head.weight" in weight_shapes(SPECS["llama"])


def test_llama3_scaling_keeps_short_waves_and_stretches_long_ones() -> None:
    plain = replace(SPECS["llama"], rope_scaling=None, head_dim=64, rope_theta=5e5)
    scaled = replace(plain, rope_scaling=RopeScaling("llama3", 8.0, 1.0, 4.0, 8192))
    (_, before), (_, after) = rotary_tables(plain, 2), rotary_tables(scaled, 2)
    ratio = np.arcsin(before[1].clip(-1, 1))[1:] / np.arcsin(after[1].clip(-1, 1))[1:]
    assert ratio[0] == 1 and ratio[-1] == pytest.approx(8, rel=1e-3) and (np.diff(ratio) > -1e-3).all()
