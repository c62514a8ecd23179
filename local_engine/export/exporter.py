"""The writer of model folders: the graph, its data, and the configuration files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from dragoman.adapters.call import JsonObject

from .byte_tokenizer import byte_tokenizer
from .decoder_graph import ExportOptions, add_decoder
from .graph_builder import GraphBuilder
from .linear import PRECISIONS, Precision
from .spec import Architecture, ExportError, ModelSpec, read_spec
from .weights import RandomWeights, SafetensorsFolder, Tensor, weight_shapes

__all__ = ["MAX_LENGTH", "export_folder", "export_random_model", "hf_config", "write_model"]

MAX_LENGTH = 32768
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

ReportPart = Callable[[str], None]


def export_folder(source: Path, target: Path, options: ExportOptions, report: ReportPart = lambda part: None) -> Path:
    """Export the safetensors folder `source` to the model folder `target`, which must not contain a model yet.

    `options.length` is limited to the model's maximum. Return the model file. Raises ExportError.
    """
    spec = read_spec(source)
    if not (source / "tokenizer.json").is_file():
        raise ExportError(
            f"{source} contains no tokenizer.json; create it with transformers: AutoTokenizer.save_pretrained"
        )
    eos = _read_generation_eos(source)
    file = write_model(replace(spec, eos=eos) if eos else spec, SafetensorsFolder(source), target, options, report)
    for name in COMPANIONS:
        if (source / name).is_file():
            shutil.copyfile(source / name, target / name)
    return file


def export_random_model(
    spec: ModelSpec, target: Path, options: ExportOptions, seed: int = 0, report: ReportPart = lambda part: None
) -> Path:
    """Export random weights with a byte tokenizer, for tests and benchmarks. Return the model file."""
    file = write_model(spec, RandomWeights(spec, seed), target, options, report)
    (target / "tokenizer.json").write_text(json.dumps(byte_tokenizer(spec), ensure_ascii=False), "utf-8")
    return file


def write_model(
    spec: ModelSpec, weights: Mapping[str, Tensor], target: Path, options: ExportOptions, report: ReportPart
) -> Path:
    """Write `model.onnx` (with `model.onnx.data` if it is large), `config.json` and `genai_config.json`."""
    if options.precision not in PRECISIONS:
        raise ExportError(f'precision "{options.precision}" is not one of {", ".join(PRECISIONS)}')
    options = replace(options, length=min(options.length, spec.max_positions))
    target.mkdir(parents=True, exist_ok=True)
    file = target / "model.onnx"
    if file.exists():
        raise ExportError(f"{file} exists; name an empty folder")
    missing = [name for name in weight_shapes(spec) if name not in weights]
    if missing:
        raise ExportError(f"{len(missing)} tensors are missing in the weights, the first is {missing[0]}")
    size = sum(int(np.prod(shape)) for shape in weight_shapes(spec).values()) * BYTES_PER_WEIGHT[options.precision]
    graph = GraphBuilder(target / "model.onnx.data" if size > INLINE_LIMIT else None)
    try:
        graph.write(file, *add_decoder(spec, weights, options, graph, report), options.producer)
    finally:
        graph.close()
    _write_json(target / "config.json", {**spec.config, **hf_config(spec)})
    _write_json(target / "genai_config.json", _genai_config(spec, options))
    return file


def _write_json(file: Path, content: JsonObject) -> None:
    file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _read_generation_eos(source: Path) -> tuple[int, ...]:
    file = source / "generation_config.json"
    if not file.is_file():
        return ()
    found = json.loads(file.read_text("utf-8")).get("eos_token_id")
    return tuple(found) if isinstance(found, list) else () if found is None else (int(found),)


def hf_config(spec: ModelSpec) -> JsonObject:
    """The config.json that transformers reads."""
    scaling = spec.rope_scaling
    rope: JsonObject = {"rope_type": "default", "rope_theta": spec.rope_theta}
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
        "attention_multiplier": spec.query_scale,
        "logits_scaling": spec.logit_divisor,
    }
    more: dict[Architecture, JsonObject] = {"granite": granite, "mistral": {"sliding_window": None}}
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


def _genai_config(spec: ModelSpec, options: ExportOptions) -> JsonObject:
    """The genai_config.json that onnxruntime-genai and this engine read."""
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
