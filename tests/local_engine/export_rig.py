"""Safetensors folders with random weights, as sources for the exporter."""

from __future__ import annotations

import json
from pathlib import Path

from tiny_models import SEED, SPECS

from dragoman.local_engine.export.exporter import hf_config
from dragoman.local_engine.export.spec import ModelSpec
from dragoman.local_engine.export.weights import RandomWeights, write_safetensors


def save_source(folder: Path, spec: ModelSpec = SPECS["qwen2"], **config: object) -> Path:
    """Write a folder as transformers saves one."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**hf_config(spec), **config}), "utf-8")
    (folder / "tokenizer.json").write_text("{}", "utf-8")
    write_safetensors(RandomWeights(spec, SEED), folder / "model.safetensors")
    return folder
