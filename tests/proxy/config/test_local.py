"""Checks of `engine: local` providers."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.local_engine import embedded
from dragoman.local_engine.export.decoder_graph import ExportOptions
from dragoman.local_engine.export.exporter import export_random_model
from dragoman.local_engine.export.spec import ModelSpec
from dragoman.proxy.config.load import ConfigErrors, check
from dragoman.proxy.config.models import Config
from dragoman.proxy.config.problems import Problem


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    folder.mkdir()
    export_random_model(
        ModelSpec("llama", 64, 1, 4, 2, 16, 96, 272, 192, eos=(256,)), folder, ExportOptions("fp32", "gqa", 192), 1
    )
    return folder


def of(folder: Path, provider: str, **env: str) -> Config:
    file = folder / "dragoman.yaml"
    file.write_text(
        f"providers:\n  gpu: {{engine: local, {provider}}}\nmodels: {{m: {{targets: [{{provider: gpu}}]}}}}\n"
    )
    return check(file, env).config


def problems(folder: Path, provider: str, **env: str) -> list[Problem]:
    with pytest.raises(ConfigErrors) as caught:
        of(folder, provider, **env)
    return caught.value.problems


def test_a_model_folder_is_relative_to_the_files_folder(model: Path) -> None:
    provider = of(model.parent, "model_dir: tiny, slots: 4, queue: 2, context: 100, threads: 1").providers["gpu"]
    assert provider.model_dir == str(model)
    assert (provider.device, provider.slots, provider.queue, provider.dialect) == ("auto", 4, 2, None)


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "model_dir: gone")
    assert (problem.code, problem.line, problem.column) == ("bad-model", 2, 35)
    assert problem.message.startswith(f"{tmp_path / 'gone'} does not exist; models are never downloaded")


def test_a_file_missing_from_the_folder_is_an_error(tmp_path: Path, model: Path) -> None:
    (tmp_path / "m").mkdir()
    (problem,) = problems(tmp_path, "model_dir: m")
    assert "contains no model file; expected model.onnx" in problem.message
    for file in model.iterdir():
        if file.name != "tokenizer.json":
            (tmp_path / "m" / file.name).write_bytes(file.read_bytes())
    (problem,) = problems(tmp_path, "model_dir: m")
    assert problem.message == f"{tmp_path / 'm' / 'tokenizer.json'} is missing"


def test_the_value_of_a_variable_is_not_shown(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, 'model_dir: "${MODELS}/qwen"', MODELS="/secret-place")
    assert problem.message.startswith("${MODELS}/qwen does not exist")


def test_keys_of_addressed_providers_are_refused(model: Path) -> None:
    found = problems(model.parent, 'model_dir: tiny, dialect: openai, base_url: "http://127.0.0.1:1/v1"')
    assert [(problem.code, problem.message[:8]) for problem in found] == [
        ("wrong-engine", "dialect "),
        ("wrong-engine", "base_url"),
    ]


def test_a_decoder_is_not_used_for_embeddings(model: Path) -> None:
    (problem,) = problems(model.parent, "model_dir: tiny, protocols: [chat, embeddings]")
    assert (problem.code, problem.hint) == ("wrong-model", "write protocols: [chat, completions]")
    assert problem.message == "the engine does not serve embeddings with this model"


def test_a_missing_extra_is_an_error(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "missing_libraries", lambda: ["onnxruntime"])
    (problem,) = problems(model.parent, "model_dir: tiny")
    assert (problem.code, problem.line, problem.column) == ("missing-extra", 2, 17)
    assert problem.hint == "run: uv pip install '.[local]' in the checkout of dragoman"


def test_the_default_folder_is_that_of_dragoman_mini(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "embedded_folder", lambda: model)
    assert of(model.parent, "device: cpu").providers["gpu"].model_dir is None
