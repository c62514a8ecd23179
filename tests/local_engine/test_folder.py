"""The model-folder contract: arrangements that are known, messages for what is missing, and hostile folders."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from engine_rig import Folders
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from dragoman.local_engine.model_folder.folder import open_folder
from dragoman.local_engine.model_folder.onnx_outline import GraphError, read_outline
from dragoman.local_engine.model_folder.files import FolderError
from dragoman.local_engine.model_folder.signature import DecoderSignature, EncoderSignature

INFO = helper.make_tensor_value_info
IDS = INFO("input_ids", TensorProto.INT64, ["batch", "sequence"])


@pytest.fixture
def model(folders: Folders, tmp_path: Path) -> Path:
    """A copy of a good folder, to be spoiled."""
    return Path(shutil.copytree(folders("qwen3"), tmp_path / "model"))


def write(file: Path, /, **content: Any) -> None:
    old = json.loads(file.read_text("utf-8")) if file.exists() else {}
    file.write_text(json.dumps({**old, **content}), "utf-8")


def save(file: Path, inputs: list[Any], outputs: list[Any], nodes: list[Any] = [], **more: Any) -> None:  # noqa: B006
    file.parent.mkdir(parents=True, exist_ok=True)
    graph = helper.make_graph(nodes, "g", inputs, outputs, **more)
    file.write_bytes(helper.make_model(graph).SerializeToString())


def test_what_a_genai_folder_says(model: Path) -> None:
    (model / "chat_template.jinja").write_text("{{ messages }}", "utf-8")
    write(model / "generation_config.json", eos_token_id=[256, 7])
    folder = open_folder(model)
    ports = folder.signature
    assert isinstance(ports, DecoderSignature)
    assert (ports.layout, len(ports.cache), ports.vocab, ports.last_only) == ("slots", 4, 272, True)
    assert (ports.cache[0].past, ports.cache[0].heads, ports.cache[0].width) == ("past_key_values.0.key", 1, 32)
    assert (folder.context, folder.eos, folder.template) == (192, {256, 7}, "{{ messages }}")
    assert open_folder(model / "model.onnx") == folder


def test_sizes_come_from_the_graph(model: Path) -> None:
    write(model / "config.json", num_hidden_layers=99, num_key_value_heads=5, head_dim=1, vocab_size=3)
    ports = open_folder(model).signature
    assert isinstance(ports, DecoderSignature) and (len(ports.cache), ports.cache[0].heads, ports.vocab) == (4, 1, 272)


def test_sizes_that_the_graph_leaves_open_come_from_json(model: Path) -> None:
    """As the builder of onnxruntime-genai 0.18 leaves the width of the cache."""
    loaded = onnx.load(model / "model.onnx")
    for port in (*loaded.graph.input, *loaded.graph.output):
        if "." in port.name:
            port.type.tensor_type.shape.dim[3].dim_param = "kv_cache_dim"
    (model / "model.onnx").write_bytes(loaded.SerializeToString())
    ports = open_folder(model).signature
    assert isinstance(ports, DecoderSignature) and [port.width for port in ports.cache] == [32] * 4
    (model / "genai_config.json").unlink()
    write(model / "config.json", head_dim=32)
    assert open_folder(model).signature == ports


@pytest.mark.parametrize(
    ("names", "device", "chosen"),
    [
        (("model", "model_fp16", "model_q4"), "cpu", "model"),
        (("model_fp16", "model_q4"), "cpu", "model_q4"),
        (("model", "model_fp16"), "cuda", "model_fp16"),
        (("decoder_model_merged",), "cpu", "decoder_model_merged"),
    ],
)
def test_transformersjs_folders(folders: Folders, tmp_path: Path, names: Any, device: Any, chosen: str) -> None:
    source = folders("llama", "fp32", "concat")
    (tmp_path / "onnx").mkdir()
    for name in names:
        shutil.copy(source / "model.onnx", tmp_path / "onnx" / f"{name}.onnx")
    for name in ("config.json", "tokenizer.json"):
        shutil.copy(source / name, tmp_path / name)
    folder = open_folder(tmp_path, device)
    assert folder.file == tmp_path / "onnx" / f"{chosen}.onnx"
    assert isinstance(folder.signature, DecoderSignature) and folder.signature.layout == "concat"
    assert (folder.context, folder.eos) == (192, {256})


def test_overrides(model: Path) -> None:
    shutil.copy(model / "model.onnx", model / "other.onnx")
    write(model / "dragoman.json", file="other.onnx", context=50, eos_token_id=[1, 2])
    folder = open_folder(model)
    assert (folder.file.name, folder.context, folder.eos) == ("other.onnx", 50, {1, 2})
    write(model / "dragoman.json", contxt=3)
    with pytest.raises(FolderError, match="contxt is not known; known are context"):
        open_folder(model)


@pytest.mark.parametrize(
    ("output", "shape", "pooling", "expected"),
    [
        ("last_hidden_state", ["b", "s", 48], {}, ("mean", False, 48)),
        ("last_hidden_state", ["b", "s", 48], {"pooling_mode_cls_token": True}, ("cls", False, 48)),
        ("sentence_embedding", ["b", 32], {}, ("mean", True, 32)),
    ],
)
def test_encoders(
    model: Path, output: str, shape: list[Any], pooling: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    save(model / "model.onnx", [IDS, INFO("attention_mask", 7, ["b", "s"])], [INFO(output, 1, shape)])
    (model / "1_Pooling").mkdir()
    write(model / "1_Pooling" / "config.json", **pooling)
    folder = open_folder(model)
    assert isinstance(folder.signature, EncoderSignature)
    assert (folder.pooling, folder.signature.pooled, folder.signature.width) == expected


def kv(*shape: Any, name: str = "past_key_values.0", element: int = 1) -> list[Any]:
    return [INFO(f"{name}.{part}", element, list(shape)) for part in ("key", "value")]


PRESENT = kv("b", 2, "t", 8, name="present.0")
LOGITS = INFO("logits", 1, ["b", "s", 10])
GRAPHS: dict[str, tuple[list[Any], list[Any]]] = {
    "has no input input_ids, only pixels": ([INFO("pixels", 1, [1])], [LOGITS]),
    "has the outputs a: logits would make it a decoder": ([IDS], [INFO("a", 1, [1])]),
    "has no cache: no input is called past_key_values.0.key": ([IDS], [LOGITS]),
    "asks for encoder_states, which": ([IDS, *kv("b", 2, "p", 8), INFO("encoder_states", 1, [1])], [LOGITS, *PRESENT]),
    "lacks present.0.value, half of its cache": ([IDS, *kv("b", 2, "p", 8)], [LOGITS, PRESENT[0]]),
    r"keeps keys and values in types \[3\]": ([IDS, *kv("b", 2, "p", 8, element=3)], [LOGITS, *PRESENT]),
    "dimension 1 of past_key_values.0.key is not fixed": ([IDS, *kv("b", "h", "p", 8)], [LOGITS, *PRESENT]),
    "dimension 3 of past_key_values.0.key is 99999999": ([IDS, *kv("b", 2, "p", 99999999)], [LOGITS, *PRESENT]),
    "has 3 dimensions, not": ([IDS, *kv("b", 2, "p")], [LOGITS, *PRESENT]),
    "dimension -1 of logits is not fixed": ([IDS, *kv("b", 2, "p", 8)], [INFO("logits", 1, ["b", "s", "v"]), *PRESENT]),
}


@pytest.mark.parametrize("words", GRAPHS)
def test_graphs_that_cannot_be_served(model: Path, words: str) -> None:
    save(model / "model.onnx", *GRAPHS[words])
    (model / "genai_config.json").unlink()
    (model / "config.json").unlink()
    with pytest.raises(FolderError, match=words):
        open_folder(model)


def unlink(name: str) -> Callable[[Path], None]:
    return lambda model: (model / name).unlink()


def put(name: str, text: str) -> Callable[[Path], None]:
    return lambda model: (model / name).write_text(text, "utf-8") and None


def external(location: str, **entries: str) -> Callable[[Path], None]:
    def spoil(model: Path) -> None:
        tensor = TensorProto(name="w", dims=[4], data_type=1, data_location=TensorProto.EXTERNAL)
        for key, value in {"location": location, **entries}.items():
            tensor.external_data.add(key=key, value=value)
        loaded = onnx.load(model / "model.onnx")
        branch = helper.make_graph([], "branch", [], [], initializer=[tensor])
        loaded.graph.node.append(helper.make_node("If", ["c"], ["o"], then_branch=branch, else_branch=branch))
        (model / "model.onnx").write_bytes(loaded.SerializeToString())

    return spoil


def link(name: str, target: str) -> Callable[[Path], None]:
    def spoil(model: Path) -> None:
        (model / name).unlink(missing_ok=True)
        os.symlink(target, model / name)

    return spoil


SPOILED: list[tuple[str, Callable[[Path], Any]]] = [
    ("tokenizer.json is missing", unlink("tokenizer.json")),
    ("model.onnx is missing", unlink("model.onnx")),
    ("genai_config.json is no JSON", put("genai_config.json", "{")),
    ("config.json is no JSON", put("config.json", "[" * 100_000)),
    ("config.json holds no JSON object", put("config.json", "[]")),
    ("context length 'long'", put("dragoman.json", '{"context": "long"}')),
    ("context length 99999999999", put("dragoman.json", '{"context": 99999999999}')),
    ("cannot be read as an ONNX model", put("model.onnx", "not a model at all")),
    ("cannot be read as an ONNX model", put("model.onnx", "")),
    ("chat_template.jinja has 5000000 bytes", put("chat_template.jinja", "x" * 5_000_000)),
    ("leads out of the folder", put("dragoman.json", '{"file": "../model.onnx"}')),
    ("leads out of the folder", put("dragoman.json", '{"file": "/etc/passwd"}')),
    ("leads out of the folder", link("tokenizer.json", "/etc/passwd")),
    ("leads out of the folder", link("model.onnx", "../../other/model.onnx")),
    ("leads out of the folder", link("chat_template.jinja", "/etc/hostname")),
    ("leads out of the folder", external("../secret.bin")),
    ("leads out of the folder", external("/etc/passwd")),
    ("leads out of the folder", lambda model: (external("data")(model), link("data", "/etc/passwd")(model))),
    ("data is missing", external("data")),
    ("wants bytes 100 to 108 of tokenizer.json", external("tokenizer.json", offset="100", length="8")),
    ("wants bytes -5 to 3", external("tokenizer.json", offset="-5", length="8")),
    ("cannot be read as an ONNX model", external("tokenizer.json", offset="many")),
    ('pooling "best" is not one of', put("dragoman.json", '{"pooling": "best"}')),
]


@pytest.mark.parametrize(("words", "spoil"), SPOILED)
def test_spoiled_and_hostile_folders_are_refused(model: Path, words: str, spoil: Callable[[Path], Any]) -> None:
    if "wants bytes 100" in words:
        (model / "tokenizer.json").write_text("x" * 99, "utf-8")
    spoil(model)
    with pytest.raises(FolderError, match=words):
        open_folder(model)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ((), "expected are model.onnx"),
        (("a.onnx", "b.onnx"), 'name one of a.onnx, b.onnx in dragoman.json, as {"file": "a.onnx"}'),
        (("model.safetensors",), "`dragoman export"),
    ],
)
def test_folders_without_a_model_say_what_to_do(tmp_path: Path, files: tuple[str, ...], words: str) -> None:
    for name in files:
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(FolderError) as refused:
        open_folder(tmp_path)
    assert words in str(refused.value)


@given(st.binary(max_size=300))
def test_any_bytes_give_a_graph_or_a_graph_error(data: bytes) -> None:
    file = Path(os.environ.get("TMPDIR", "/tmp")) / f"dragoman-graph-{os.getpid()}.onnx"
    file.write_bytes(data)
    try:
        read_outline(file)
    except GraphError:
        pass
    finally:
        file.unlink()


def test_graphs_nested_without_end_are_refused(tmp_path: Path) -> None:
    graph = helper.make_graph([], "inner", [], [])
    for _ in range(20):
        graph = helper.make_graph([helper.make_node("If", ["c"], ["o"], then_branch=graph)], "outer", [], [])
    (tmp_path / "m.onnx").write_bytes(helper.make_model(graph).SerializeToString())
    with pytest.raises(GraphError, match="nested deeper"):
        read_outline(tmp_path / "m.onnx")
