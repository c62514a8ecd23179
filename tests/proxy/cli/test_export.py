"""`dragoman export`: the folder that it writes, and the errors that it reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragoman.local_engine.export.byte_tokenizer import byte_tokenizer
from dragoman.local_engine.export.exporter import hf_config
from dragoman.local_engine.export.spec import ModelSpec
from dragoman.local_engine.export.weights import RandomWeights, write_safetensors
from dragoman.local_engine.model_folder.folder import open_folder
from dragoman.local_engine.model_folder.signature import DecoderSignature
from dragoman.proxy.cli.main import app

SPEC = ModelSpec("qwen3", 32, 1, 2, 1, 16, 64, 272, 128, qk_norm=True, eos=(256,))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(hf_config(SPEC)), "utf-8")
    (folder / "tokenizer.json").write_text(json.dumps(byte_tokenizer(SPEC)), "utf-8")
    (folder / "chat_template.jinja").write_text("{{ messages }}", "utf-8")
    write_safetensors(RandomWeights(SPEC), folder / "model.safetensors")
    return folder


@pytest.mark.parametrize(("args", "layout", "context"), [((), "slots", 128), (("--length", "64"), "slots", 64)])
def test_the_engine_opens_the_folder(
    source: Path, tmp_path: Path, args: tuple[str, ...], layout: str, context: int
) -> None:
    result = CliRunner().invoke(app, ["export", str(source), str(tmp_path / "out"), *args])
    assert result.exit_code == 0, result.output
    assert f"wrote {tmp_path / 'out' / 'model.onnx'}: int8, gqa, " in result.stdout
    folder = open_folder(tmp_path / "out")
    assert isinstance(folder.signature, DecoderSignature)
    assert (folder.signature.layout, folder.context, folder.template) == (layout, context, "{{ messages }}")


def test_a_bad_source_or_target_is_refused(source: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["export", str(tmp_path), str(tmp_path / "out")])
    assert result.exit_code == 2 and f"{tmp_path} contains no config.json; name a model folder" in result.stderr
    result = CliRunner().invoke(app, ["export", str(tmp_path / "none"), str(tmp_path / "out")])
    assert result.exit_code == 2 and f"{tmp_path / 'none'} is not a folder" in result.stderr
    for words in ("", "exists; name an empty folder"):
        result = CliRunner().invoke(app, ["export", str(source), str(tmp_path / "out"), "--layout", "concat"])
        assert words in result.stderr


def test_a_missing_extra_is_reported(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = CliRunner().invoke(app, ["export", str(source), str(tmp_path / "out")])
    assert result.exit_code == 2 and "uv pip install '.[export]'" in result.stderr
