"""Write a model folder: the graph, its data, and the files that tell the engine how to use it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .builder import GraphBuilder
from .decoder import Options, build
from .linear import PRECISIONS, Precision
from .spec import Architecture, ExportError, ModelSpec, read_spec
from .tokens import byte_tokenizer
from .weights import RandomWeights, SafetensorsFolder, Tensor, shapes

__all__ = ["LONGEST", "export_folder", "export_random", "hf_config", "write_model"]

LONGEST = 32768
INLINE_LIMIT = 1_500_000_000
COMPANIONS = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "generation_config.json",
)
BYTES_PER_WEIGHT: dict[Precision, float] = {
    "fp32": 4,
    "fp16": 2,
    "int8": 1.2,
    "int4": 0.7,
    "int8-fp16": 1.2,
    "int4-fp16": 0.7,
}

Advance = Callable[[str], None]


def export_folder(source: Path, target: Path, options: Options, advance: Advance = lambda part: None) -> Path:
    """Export the safetensors folder `source` as the model folder `target`, which must not hold a model yet.

    `options.length` is lowered to what the model was made for. Returns the model file. Raises ExportError.
    """
    spec = read_spec(source)
    if not (source / "tokenizer.json").is_file():
        raise ExportError(
            f"{source} holds no tokenizer.json; make one with transformers: AutoTokenizer.save_pretrained"
        )
    eos = _generation_eos(source)
    file = write_model(replace(spec, eos=eos) if eos else spec, SafetensorsFolder(source), target, options, advance)
    for name in COMPANIONS:
        if (source / name).is_file():
            shutil.copyfile(source / name, target / name)
    return file


def export_random(
    spec: ModelSpec, target: Path, options: Options, seed: int = 0, advance: Advance = lambda part: None
) -> Path:
    """A model of random weights with a tokenizer of single bytes: for tests and benchmarks. Returns the model file."""
    file = write_model(spec, RandomWeights(spec, seed), target, options, advance)
    (target / "tokenizer.json").write_text(json.dumps(byte_tokenizer(spec), ensure_ascii=False), "utf-8")
    return file


def write_model(
    spec: ModelSpec, weights: Mapping[str, Tensor], target: Path, options: Options, advance: Advance
) -> Path:
    """Write `model.onnx` (and `model.onnx.data` where it is large), `config.json` and `genai_config.json`."""
    if options.precision not in PRECISIONS:
        raise ExportError(f'precision "{options.precision}" is not one of {", ".join(PRECISIONS)}')
    options = replace(options, length=min(options.length, spec.max_positions))
    target.mkdir(parents=True, exist_ok=True)
    file = target / "model.onnx"
    if file.exists():
        raise ExportError(f"{file} exists; name an empty folder")
    missing = [name for name in shapes(spec) if name not in weights]
    if missing:
        raise ExportError(f"the weights lack {len(missing)} tensors, the first is {missing[0]}")
    size = sum(int(np.prod(shape)) for shape in shapes(spec).values()) * BYTES_PER_WEIGHT[options.precision]
    graph = GraphBuilder(target / "model.onnx.data" if size > INLINE_LIMIT else None)
    try:
        graph.finish(file, *build(spec, weights, options, graph, advance), options.producer)
    finally:
        graph.close()
    _write_json(target / "config.json", {**spec.config, **hf_config(spec)})
    _write_json(target / "genai_config.json", _genai_config(spec, options))
    return file


def _write_json(file: Path, content: dict[str, Any]) -> None:
    file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _generation_eos(source: Path) -> tuple[int, ...]:
    file = source / "generation_config.json"
    if not file.is_file():
        return ()
    found = json.loads(file.read_text("utf-8")).get("eos_token_id")
    return tuple(found) if isinstance(found, list) else () if found is None else (int(found),)


def hf_config(spec: ModelSpec) -> dict[str, Any]:
    """config.json as transformers reads it."""
    scaling = spec.rope_scaling
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": spec.rope_theta}
    if scaling is not None:
        rope |= {"rope_type": scaling.kind, "factor": scaling.factor}
    if scaling is not None and scaling.kind == "llama3":
        rope |= {
            "low_freq_factor": scaling.low_freq_factor,
            "high_freq_factor": scaling.high_freq_factor,
            "original_max_position_embeddings": scaling.original_max_positions,
        }
    granite = {
        "embedding_multiplier": spec.embedding_scale,
        "residual_multiplier": spec.residual_scale,
        "attention_multiplier": spec.scale,
        "logits_scaling": spec.logit_divisor,
    }
    more: dict[Architecture, dict[str, Any]] = {"granite": granite, "mistral": {"sliding_window": None}}
    return {
        "architectures": [f"{spec.architecture.capitalize()}ForCausalLM"],
        "model_type": spec.architecture,
        "hidden_size": spec.hidden,
        "num_hidden_layers": spec.layers,
        "num_attention_heads": spec.heads,
        "num_key_value_heads": spec.kv_heads,
        "head_dim": spec.head_dim,
        "intermediate_size": spec.intermediate,
        "vocab_size": spec.vocab,
        "max_position_embeddings": spec.max_positions,
        "rms_norm_eps": spec.epsilon,
        "rope_parameters": rope,
        "tie_word_embeddings": spec.tied,
        "attention_bias": spec.attention_bias,
        "mlp_bias": spec.mlp_bias,
        "hidden_act": "silu",
        "bos_token_id": spec.bos,
        "eos_token_id": list(spec.eos) or None,
        **more.get(spec.architecture, {}),
    }


def _genai_config(spec: ModelSpec, options: Options) -> dict[str, Any]:
    """genai_config.json: what onnxruntime-genai, and this engine, read beside the graph."""
    inputs = {
        "input_ids": "input_ids",
        "attention_mask": "attention_mask",
        "past_key_names": "past_key_values.%d.key",
        "past_value_names": "past_key_values.%d.value",
    }
    if options.layout == "concat":
        inputs["position_ids"] = "position_ids"
    outputs = {"logits": "logits", "present_key_names": "present.%d.key", "present_value_names": "present.%d.value"}
    decoder = {
        "session_options": {"log_id": "onnxruntime-genai", "provider_options": []},
        "filename": "model.onnx",
        "head_size": spec.head_dim,
        "hidden_size": spec.hidden,
        "inputs": inputs,
        "outputs": outputs,
        "num_attention_heads": spec.heads,
        "num_hidden_layers": spec.layers,
        "num_key_value_heads": spec.kv_heads,
    }
    eos = list(spec.eos)
    return {
        "model": {
            **({} if spec.bos is None else {"bos_token_id": spec.bos}),
            "context_length": options.length,
            "decoder": decoder,
            "eos_token_id": eos if len(eos) != 1 else eos[0],
            "pad_token_id": eos[0] if eos else 0,
            "type": spec.architecture,
            "vocab_size": spec.vocab,
        },
        "search": {"max_length": options.length, "past_present_share_buffer": options.layout == "gqa"},
    }
