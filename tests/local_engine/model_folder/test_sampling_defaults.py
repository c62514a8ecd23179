"""Sampling defaults of a model folder: which file they come from, their overrides, and messages for invalid values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dragoman.adapters.call import JsonObject
from dragoman.local_engine.model_folder.files import FolderError
from dragoman.local_engine.model_folder.sampling_defaults import SAMPLING_DEFAULTS, read_sampling_defaults

QWEN3 = {"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "eos_token_id": [1], "pad_token_id": 1}
SEARCH = {"do_sample": True, "temperature": 1.0, "top_k": 50, "top_p": 0.9, "max_length": 2048, "num_beams": 1}


def write(folder: Path, name: str, content: JsonObject) -> None:
    (folder / name).write_text(json.dumps(content), "utf-8")


def test_without_files_there_are_no_defaults(tmp_path: Path) -> None:
    assert read_sampling_defaults(tmp_path, {}) == {}


def test_generation_config_comes_before_genai_config(tmp_path: Path) -> None:
    write(tmp_path, "genai_config.json", {"model": {}, "search": SEARCH})
    assert read_sampling_defaults(tmp_path, {}) == {"temperature": 1.0, "top_k": 50, "top_p": 0.9}
    write(tmp_path, "generation_config.json", QWEN3)
    assert read_sampling_defaults(tmp_path, {}) == {"temperature": 0.6, "top_k": 20, "top_p": 0.95}


def test_a_model_that_does_not_sample_is_greedy(tmp_path: Path) -> None:
    write(tmp_path, "generation_config.json", {"do_sample": False, "temperature": 0.6, "repetition_penalty": 1.1})
    assert read_sampling_defaults(tmp_path, {}) == {"temperature": 0, "repetition_penalty": 1.1}


def test_dragoman_json_overrides_single_values_and_removes_them(tmp_path: Path) -> None:
    write(tmp_path, "generation_config.json", QWEN3)
    settings = {"sampling": {"temperature": 0.2, "top_k": None, "min_p": 0.05}}
    assert read_sampling_defaults(tmp_path, settings) == {"temperature": 0.2, "top_p": 0.95, "min_p": 0.05}


@pytest.mark.parametrize("content", [{"temperature": 3}, {"top_p": "0.9"}, {"top_k": 2.5}, {"repetition_penalty": 0}])
def test_an_invalid_value_names_its_file_and_can_be_overridden(tmp_path: Path, content: JsonObject) -> None:
    write(tmp_path, "generation_config.json", content)
    (key,) = content
    with pytest.raises(FolderError, match=rf"generation_config\.json: {key} .*`sampling` in dragoman\.json"):
        read_sampling_defaults(tmp_path, {})
    assert read_sampling_defaults(tmp_path, {"sampling": {key: 1}}) == {key: 1}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sampling": 0.5}, "must be an object"),
        ({"sampling": {"seed": 1}}, "keys of temperature, top_p"),
        ({"sampling": {"temperature": -1}}, "temperature must be at least 0"),
    ],
)
def test_an_invalid_override_is_rejected(tmp_path: Path, given: JsonObject, message: str) -> None:
    with pytest.raises(FolderError, match=rf"dragoman\.json: .*{message}"):
        read_sampling_defaults(tmp_path, given)


def test_each_default_is_a_parameter_of_the_sampler() -> None:
    from dragoman.local_engine.generation import SamplingParams

    assert set(SAMPLING_DEFAULTS) < set(SamplingParams.__dataclass_fields__)
