"""The exporter: the same results in both layouts, near ones at lower precisions, and rejected models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from export_rig import save_source
from scheduler_rig import Folders, SchedulerRigs
from tiny_models import LENGTH, SPECS

from dragoman.adapters.call import JsonObject
from dragoman.local_engine.export import exporter
from dragoman.local_engine.export.decoder_graph import ExportOptions, Layout
from dragoman.local_engine.export.exporter import export_folder
from dragoman.local_engine.export.linear import PRECISIONS, Precision
from dragoman.local_engine.export.spec import ExportError
from dragoman.local_engine.export.weights import RandomWeights, write_safetensors
from dragoman.local_engine.model_folder.folder import open_folder
from tests.tables import for_each

FP32 = ExportOptions("fp32", "gqa", LENGTH)
PROMPT = list(b"the same text for each of them")


def test_a_safetensors_folder_is_exported_and_its_parts_are_reported(tmp_path: Path, folders: Folders) -> None:
    reported: list[str] = []
    export_folder(save_source(tmp_path / "in"), tmp_path / "out", FP32, reported.append)
    assert (tmp_path / "out" / "model.onnx").read_bytes() == (folders("qwen2") / "model.onnx").read_bytes()
    assert reported == ["embedding", "layer 0", "layer 1", "head"]
    assert open_folder(tmp_path / "out").eos == {256}


def test_a_large_model_gets_an_external_data_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rigs: SchedulerRigs
) -> None:
    monkeypatch.setattr(exporter, "INLINE_LIMIT", 10_000)
    file = export_folder(save_source(tmp_path / "in"), tmp_path / "out", FP32)
    data = tmp_path / "out" / "model.onnx.data"
    assert file.stat().st_size < 40_000 < data.stat().st_size
    assert open_folder(tmp_path / "out").file == file
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    feeds = {"input_ids": np.array([PROMPT]), "attention_mask": np.ones((1, len(PROMPT)), np.int64)}
    empty = np.zeros((1, 2, 0, 16), np.float32)
    feeds |= {tensor.name: empty for tensor in session.get_inputs() if tensor.name.startswith("past")}
    logits = session.run(["logits"], feeds)[0][0, -1]
    assert logits.tobytes() == rigs("qwen2").prefill(0, 0, PROMPT).tobytes()


@for_each("name", SPECS)
@for_each("precision", PRECISIONS)
def test_layouts_agree_and_lower_precisions_are_close(rigs: SchedulerRigs, name: str, precision: Precision) -> None:
    exact = rigs(name).prefill(0, 0, PROMPT)
    tolerance = {"fp32": 1e-4, "fp16": 0.1, "int8": 1.0, "int4": 25.0}[precision.removesuffix("-fp16")]
    layouts: tuple[Layout, ...] = ("gqa", "concat")
    for layout in layouts:
        logits = rigs(name, precision, layout).prefill(0, 0, PROMPT)
        assert np.abs(logits - exact).max() < tolerance
    assert np.corrcoef(logits, exact)[0, 1] > (0.65 if precision.startswith("int4") else 0.99)


@pytest.mark.parametrize("precision", ["fp16", "int8", "int4", "int8-fp16", "int4-fp16"])
def test_lower_precisions_give_smaller_files(folders: Folders, precision: Precision) -> None:
    full, reduced = ((folders("llama", p) / "model.onnx").stat().st_size for p in (FP32.precision, precision))
    assert reduced < full * {"fp16": 0.55, "int8": 0.42, "int4": 0.32}[precision.removesuffix("-fp16")]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "mamba"}, 'model_type "mamba" is not one of llama, mistral, qwen2, qwen3, granite'),
        ({"hidden_act": "gelu"}, 'hidden_act "gelu"'),
        ({"use_sliding_window": True}, "use_sliding_window"),
        ({"rope_parameters": {"rope_type": "yarn"}}, 'rope_type "yarn"'),
        ({"num_key_value_heads": 3}, "not a multiple of num_key_value_heads 3"),
    ],
)
def test_an_unsupported_model_is_rejected(tmp_path: Path, config: JsonObject, message: str) -> None:
    with pytest.raises(ExportError, match=message):
        export_folder(save_source(tmp_path / "in", **config), tmp_path / "out", FP32)


@pytest.mark.parametrize(("window", "longest"), [(None, LENGTH), (100, 100), (4096, LENGTH)])
def test_the_context_of_mistral_is_limited_to_its_window(tmp_path: Path, window: int | None, longest: int) -> None:
    folder = save_source(tmp_path / "in", SPECS["mistral"], sliding_window=window)
    export_folder(folder, tmp_path / "out", FP32)
    assert open_folder(tmp_path / "out").context == longest


def test_missing_weights_and_files_are_named(tmp_path: Path) -> None:
    folder = save_source(tmp_path / "in")
    weights = {name: tensor for name, tensor in RandomWeights(SPECS["qwen2"]).items() if "layers.1.mlp" not in name}
    write_safetensors(weights, folder / "model.safetensors")
    with pytest.raises(
        ExportError, match=r"3 tensors are missing in the weights, the first is model.layers.1.mlp.gate_proj.weight"
    ):
        export_folder(folder, tmp_path / "out", FP32)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ExportError, match=r"no tokenizer\.json"):
        export_folder(folder, tmp_path / "out", FP32)


def test_an_existing_model_is_not_overwritten(folders: Folders, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="exists; name an empty folder"):
        export_folder(save_source(tmp_path), folders("qwen2"), FP32)
