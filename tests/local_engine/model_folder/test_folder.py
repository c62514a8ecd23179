"""Model folders: supported layouts, messages for missing files, and hostile folders."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import onnx
import pytest
from onnx import TensorProto, ValueInfoProto, helper
from scheduler_rig import Folders

from dragoman.local_engine.model_folder.files import FolderError
from dragoman.local_engine.model_folder.folder import Pooling, open_folder
from dragoman.local_engine.model_folder.signature import DecoderSignature, EncoderSignature

INFO = helper.make_tensor_value_info
IDS = INFO("input_ids", TensorProto.INT64, ["batch", "sequence"])

Corruption: TypeAlias = Callable[[Path], object]


@pytest.fixture
def model(folders: Folders, tmp_path: Path) -> Path:
    """A copy of a valid folder."""
    return Path(shutil.copytree(folders("qwen3"), tmp_path / "model"))


def update_json(file: Path, /, **content: object) -> None:
    old = json.loads(file.read_text("utf-8")) if file.exists() else {}
    file.write_text(json.dumps({**old, **content}), "utf-8")


def save_graph(file: Path, inputs: Sequence[ValueInfoProto], outputs: Sequence[ValueInfoProto]) -> None:
    graph = helper.make_graph([], "g", inputs, outputs)
    file.write_bytes(helper.make_model(graph).SerializeToString())


def test_a_genai_folder_is_read(model: Path) -> None:
    (model / "chat_template.jinja").write_text("{{ messages }}", "utf-8")
    update_json(model / "generation_config.json", eos_token_id=[256, 7])
    folder = open_folder(model)
    signature = folder.signature
    assert isinstance(signature, DecoderSignature)
    assert (signature.layout, len(signature.cache), signature.vocab, signature.last_logits_only) == (
        "slots",
        4,
        272,
        True,
    )
    assert (signature.cache[0].past, signature.cache[0].heads, signature.cache[0].width) == (
        "past_key_values.0.key",
        1,
        32,
    )
    assert (folder.context, folder.eos, folder.template) == (192, frozenset({256, 7}), "{{ messages }}")
    assert open_folder(model / "model.onnx") == folder


def test_sizes_come_from_the_graph(model: Path) -> None:
    update_json(model / "config.json", num_hidden_layers=99, num_key_value_heads=5, head_dim=1, vocab_size=3)
    signature = open_folder(model).signature
    assert isinstance(signature, DecoderSignature) and (
        len(signature.cache),
        signature.cache[0].heads,
        signature.vocab,
    ) == (4, 1, 272)


def test_open_sizes_of_the_graph_come_from_json(model: Path) -> None:
    """onnxruntime-genai 0.18 leaves the width of the cache open."""
    loaded = onnx.load(model / "model.onnx")
    for port in (*loaded.graph.input, *loaded.graph.output):
        if "." in port.name:
            port.type.tensor_type.shape.dim[3].dim_param = "kv_cache_dim"
    (model / "model.onnx").write_bytes(loaded.SerializeToString())
    signature = open_folder(model).signature
    assert isinstance(signature, DecoderSignature) and [port.width for port in signature.cache] == [32] * 4
    (model / "genai_config.json").unlink()
    update_json(model / "config.json", head_dim=32)
    assert open_folder(model).signature == signature


@pytest.mark.parametrize(
    ("names", "device", "chosen"),
    [
        (("model", "model_fp16", "model_q4"), "cpu", "model"),
        (("model_fp16", "model_q4"), "cpu", "model_q4"),
        (("model", "model_fp16"), "cuda", "model_fp16"),
        (("decoder_model_merged",), "cpu", "decoder_model_merged"),
    ],
)
def test_a_transformersjs_folder_is_read(
    folders: Folders, tmp_path: Path, names: tuple[str, ...], device: Literal["cpu", "cuda"], chosen: str
) -> None:
    source = folders("llama", "fp32", "concat")
    (tmp_path / "onnx").mkdir()
    for name in names:
        shutil.copy(source / "model.onnx", tmp_path / "onnx" / f"{name}.onnx")
    for name in ("config.json", "tokenizer.json"):
        shutil.copy(source / name, tmp_path / name)
    folder = open_folder(tmp_path, device)
    assert folder.file == tmp_path / "onnx" / f"{chosen}.onnx"
    assert isinstance(folder.signature, DecoderSignature) and folder.signature.layout == "concat"
    assert (folder.context, folder.eos) == (192, frozenset({256}))


def test_dragoman_json_overrides_the_other_files(model: Path) -> None:
    shutil.copy(model / "model.onnx", model / "other.onnx")
    update_json(model / "dragoman.json", file="other.onnx", context=50, eos_token_id=[1, 2])
    folder = open_folder(model)
    assert (folder.file.name, folder.context, folder.eos) == ("other.onnx", 50, frozenset({1, 2}))
    update_json(model / "dragoman.json", contxt=3)
    with pytest.raises(FolderError, match="unknown key contxt; the keys are context"):
        open_folder(model)


@pytest.mark.parametrize(
    ("output", "shape", "pooling", "expected"),
    [
        ("last_hidden_state", ["b", "s", 48], {}, ("mean", False, 48)),
        ("last_hidden_state", ["b", "s", 48], {"pooling_mode_cls_token": True}, ("cls", False, 48)),
        ("sentence_embedding", ["b", 32], {}, ("mean", True, 32)),
    ],
)
def test_an_encoder_folder_is_read(
    model: Path,
    output: str,
    shape: list[str | int],
    pooling: dict[str, bool],
    expected: tuple[Pooling, bool, int],
) -> None:
    save_graph(model / "model.onnx", [IDS, INFO("attention_mask", 7, ["b", "s"])], [INFO(output, 1, shape)])
    (model / "1_Pooling").mkdir()
    update_json(model / "1_Pooling" / "config.json", **pooling)
    folder = open_folder(model)
    assert isinstance(folder.signature, EncoderSignature)
    assert (folder.pooling, folder.signature.pooled, folder.signature.width) == expected


def cache(*shape: str | int, name: str = "past_key_values.0", element_type: int = 1) -> list[ValueInfoProto]:
    return [INFO(f"{name}.{part}", element_type, list(shape)) for part in ("key", "value")]


PRESENT = cache("b", 2, "t", 8, name="present.0")
LOGITS = INFO("logits", 1, ["b", "s", 10])
GRAPHS: dict[str, tuple[list[ValueInfoProto], list[ValueInfoProto]]] = {
    "has no input input_ids, only pixels": ([INFO("pixels", 1, [1])], [LOGITS]),
    "has the outputs a: a decoder needs logits": ([IDS], [INFO("a", 1, [1])]),
    "has no KV cache: no input is named past_key_values.0.key": ([IDS], [LOGITS]),
    "has the inputs encoder_states, which": (
        [IDS, *cache("b", 2, "p", 8), INFO("encoder_states", 1, [1])],
        [LOGITS, *PRESENT],
    ),
    "has no present.0.value, so its KV cache is incomplete": ([IDS, *cache("b", 2, "p", 8)], [LOGITS, PRESENT[0]]),
    r"stores keys and values in types \[3\]": ([IDS, *cache("b", 2, "p", 8, element_type=3)], [LOGITS, *PRESENT]),
    "dimension 1 of past_key_values.0.key is not fixed": ([IDS, *cache("b", "h", "p", 8)], [LOGITS, *PRESENT]),
    "dimension 3 of past_key_values.0.key is 99999999": ([IDS, *cache("b", 2, "p", 99999999)], [LOGITS, *PRESENT]),
    "has 3 dimensions, not": ([IDS, *cache("b", 2, "p")], [LOGITS, *PRESENT]),
    "dimension -1 of logits is not fixed": (
        [IDS, *cache("b", 2, "p", 8)],
        [INFO("logits", 1, ["b", "s", "v"]), *PRESENT],
    ),
}


@pytest.mark.parametrize("message", GRAPHS)
def test_an_unsupported_graph_is_rejected(model: Path, message: str) -> None:
    save_graph(model / "model.onnx", *GRAPHS[message])
    (model / "genai_config.json").unlink()
    (model / "config.json").unlink()
    with pytest.raises(FolderError, match=message):
        open_folder(model)


def remove(name: str) -> Corruption:
    return lambda model: (model / name).unlink()


def replace(name: str, text: str) -> Corruption:
    def corrupt(model: Path) -> None:
        (model / name).write_text(text, "utf-8")

    return corrupt


def add_external_tensor(location: str, **entries: str) -> Corruption:
    def corrupt(model: Path) -> None:
        tensor = TensorProto(name="w", dims=[4], data_type=1, data_location=TensorProto.EXTERNAL)
        for key, value in {"location": location, **entries}.items():
            tensor.external_data.add(key=key, value=value)
        loaded = onnx.load(model / "model.onnx")
        branch = helper.make_graph([], "branch", [], [], initializer=[tensor])
        loaded.graph.node.append(helper.make_node("If", ["c"], ["o"], then_branch=branch, else_branch=branch))
        (model / "model.onnx").write_bytes(loaded.SerializeToString())

    return corrupt


def link(name: str, target: str) -> Corruption:
    def corrupt(model: Path) -> None:
        (model / name).unlink(missing_ok=True)
        os.symlink(target, model / name)

    return corrupt


def combine(*corruptions: Corruption) -> Corruption:
    def corrupt(model: Path) -> None:
        for one in corruptions:
            one(model)

    return corrupt


CORRUPTIONS: list[tuple[str, Corruption]] = [
    ("tokenizer.json is missing", remove("tokenizer.json")),
    ("model.onnx is missing", remove("model.onnx")),
    ("genai_config.json is not valid JSON", replace("genai_config.json", "{")),
    ("config.json is not valid JSON", replace("config.json", "[" * 100_000)),
    ("config.json does not contain a JSON object", replace("config.json", "[]")),
    ("context length 'long'", replace("dragoman.json", '{"context": "long"}')),
    ("context length 99999999999", replace("dragoman.json", '{"context": 99999999999}')),
    ("cannot be read as an ONNX model", replace("model.onnx", "not a model at all")),
    ("cannot be read as an ONNX model", replace("model.onnx", "")),
    ("chat_template.jinja has 5000000 bytes", replace("chat_template.jinja", "x" * 5_000_000)),
    ("leads out of the folder", replace("dragoman.json", '{"file": "../model.onnx"}')),
    ("leads out of the folder", replace("dragoman.json", '{"file": "/etc/passwd"}')),
    ("leads out of the folder", link("tokenizer.json", "/etc/passwd")),
    ("leads out of the folder", link("model.onnx", "../../other/model.onnx")),
    ("leads out of the folder", link("chat_template.jinja", "/etc/hostname")),
    ("leads out of the folder", add_external_tensor("../secret.bin")),
    ("leads out of the folder", add_external_tensor("/etc/passwd")),
    ("leads out of the folder", combine(add_external_tensor("data"), link("data", "/etc/passwd"))),
    ("data is missing", add_external_tensor("data")),
    ("needs bytes 100 to 108 of tokenizer.json", add_external_tensor("tokenizer.json", offset="100", length="8")),
    ("needs bytes -5 to 3", add_external_tensor("tokenizer.json", offset="-5", length="8")),
    ("cannot be read as an ONNX model", add_external_tensor("tokenizer.json", offset="many")),
    ('pooling "best" is not one of', replace("dragoman.json", '{"pooling": "best"}')),
]


@pytest.mark.parametrize(("message", "corrupt"), CORRUPTIONS)
def test_a_corrupt_or_hostile_folder_is_rejected(model: Path, message: str, corrupt: Corruption) -> None:
    if "needs bytes 100" in message:
        (model / "tokenizer.json").write_text("x" * 99, "utf-8")
    corrupt(model)
    with pytest.raises(FolderError, match=message):
        open_folder(model)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ((), "expected model.onnx"),
        (("a.onnx", "b.onnx"), 'name one of a.onnx, b.onnx in dragoman.json, as {"file": "a.onnx"}'),
        (("model.safetensors",), "`dragoman export"),
    ],
)
def test_a_folder_without_a_model_is_rejected_with_a_hint(tmp_path: Path, files: tuple[str, ...], message: str) -> None:
    for name in files:
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(FolderError) as refused:
        open_folder(tmp_path)
    assert message in str(refused.value)
