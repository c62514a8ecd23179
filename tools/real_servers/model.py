"""The model that the servers serve: dragoman-mini, in the forms that they read.

Its int8 weights become float32 again and are written with the names that transformers has for a Llama. The same tensors
become a GGUF file in the environment of a server that reads GGUF (`gguf_writer.py`).
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from dragoman.local_engine.export.weights import Tensor, write_safetensors
from dragoman.local_engine.mini import FOLDER

__all__ = ["dequantize", "read_weights", "write_model"]

_MIDDLE = 128
_PARTS = {
    "self_attn.o.weight": "self_attn.o_proj.weight",
    "mlp.gate.weight": "mlp.gate_proj.weight",
    "mlp.up.weight": "mlp.up_proj.weight",
    "mlp.down.weight": "mlp.down_proj.weight",
}
_COPIED = ("tokenizer.json", "chat_template.jinja", "generation_config.json")
_RESPONSE_TEMPLATE = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|assistant|>",
    "fields": {
        "tool_calls": {
            "open_pattern": r"\s*<tool_call>",
            "close": "</tool_call>",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close_pattern": r"<\|end\|>", "content": "text"},
    },
}
"""How transformers finds tool calls in a text, https://huggingface.co/docs/transformers/chat_response_parsing."""


def write_model(target: Path) -> Path:
    """Write the folder that `transformers` and vLLM read, if it does not exist, and return it."""
    if (target / "model.safetensors").exists():
        return target
    target.mkdir(parents=True, exist_ok=True)
    for name in _COPIED:
        shutil.copyfile(FOLDER / name, target / name)
    tokenizer = json.loads((FOLDER / "tokenizer_config.json").read_text("utf-8"))
    tokenizer["response_template"] = _RESPONSE_TEMPLATE
    (target / "tokenizer_config.json").write_text(json.dumps(tokenizer, indent=1), "utf-8")
    config = json.loads((FOLDER / "config.json").read_text("utf-8"))
    (target / "config.json").write_text(json.dumps(config | {"dtype": "float32"}, indent=1), "utf-8")
    write_safetensors(read_weights(config), target / "model.safetensors")
    return target


def read_weights(config: dict[str, int]) -> dict[str, Tensor]:
    """Read the float32 weights of dragoman-mini; a matrix is (out, in)."""
    stored = {one.name: numpy_helper.to_array(one) for one in onnx.load(FOLDER / "model.onnx").graph.initializer}
    found: dict[str, Tensor] = {}
    for name, tensor in stored.items():
        if name.endswith("norm.weight"):
            found[name] = tensor.astype(np.float32)
        elif name.endswith(".codes"):
            matrix = dequantize(tensor, stored[name.replace(".codes", ".scales")])
            found |= _name_parts(name.removesuffix(".codes"), matrix, config)
    return found


def dequantize(codes: NDArray[np.uint8], scales: NDArray[np.float32]) -> NDArray[np.float32]:
    """Turn codes (out, blocks, block) and scales (out, blocks) into a matrix (out, in)."""
    values = (codes.astype(np.float32) - _MIDDLE) * scales[..., None]
    return np.ascontiguousarray(values.reshape(len(codes), -1), np.float32)


def _name_parts(name: str, matrix: NDArray[np.float32], config: dict[str, int]) -> dict[str, Tensor]:
    """Name a matrix as transformers does; the one for queries, keys and values is three there."""
    layer, _, part = name.partition(".self_attn.qkv")
    if part:
        queries = config["num_attention_heads"] * config["head_dim"]
        keys = queries + config["num_key_value_heads"] * config["head_dim"]
        parts = zip("qkv", np.split(matrix, [queries, keys]), strict=True)
        return {f"{layer}.self_attn.{letter}_proj.weight": np.ascontiguousarray(rows) for letter, rows in parts}
    for ours, theirs in _PARTS.items():
        if name.endswith(ours):
            return {name.replace(ours, theirs): matrix}
    return {name: matrix}
