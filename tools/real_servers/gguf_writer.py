"""Write a model folder as a GGUF file: `python gguf_writer.py FOLDER FILE`.

It runs in the environment of a server that reads GGUF, with `gguf` and numpy, and imports nothing of dragoman. The
tokenizer's pattern has no name in GGUF. `superbpe` is the one that never splits words and has the same effect here,
because no merge crosses what the pattern separates.
Source of names and of the order of rows: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and llama.cpp.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np

__all__ = ["main"]

_LAYER_PARTS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_TOP_PARTS = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}


def main(folder: Path, file: Path) -> None:
    config = json.loads((folder / "config.json").read_text("utf-8"))
    writer = gguf.GGUFWriter(file, "llama")
    write_parameters(writer, config)
    write_tokenizer(writer, json.loads((folder / "tokenizer.json").read_text("utf-8")))
    writer.add_chat_template((folder / "chat_template.jinja").read_text("utf-8"))
    for name, tensor in read_safetensors(folder / "model.safetensors").items():
        heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
        count = next((count for part, count in heads.items() if part in name), 0)
        writer.add_tensor(rename_tensor(name), interleave_rows(tensor, count) if count else tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_parameters(writer: gguf.GGUFWriter, config: dict[str, Any]) -> None:
    writer.add_name("dragoman-mini")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    writer.add_vocab_size(config["vocab_size"])


def write_tokenizer(writer: gguf.GGUFWriter, tokenizer: dict[str, Any]) -> None:
    ids = dict(tokenizer["model"]["vocab"])
    types = dict.fromkeys(ids, gguf.TokenType.NORMAL)
    for token in tokenizer["added_tokens"]:
        ids[token["content"]] = token["id"]
        types[token["content"]] = gguf.TokenType.CONTROL if token["special"] else gguf.TokenType.USER_DEFINED
    names = sorted(ids, key=lambda name: ids[name])
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("superbpe")
    writer.add_token_list(names)
    writer.add_token_types([types[name] for name in names])
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    writer.add_eos_token_id(0)
    writer.add_pad_token_id(0)
    writer.add_bos_token_id(0)
    writer.add_add_bos_token(False)


def read_safetensors(file: Path) -> dict[str, np.ndarray]:
    """Read the float32 tensors of a file: 8 bytes with the header's length, a JSON header, the tensors."""
    data = file.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    found = {}
    for name, entry in header.items():
        if name != "__metadata__":
            low, high = entry["data_offsets"]
            found[name] = np.frombuffer(data[start + low : start + high], "<f4").reshape(entry["shape"])
    return found


def rename_tensor(name: str) -> str:
    """Turn transformers' name of a tensor into GGUF's."""
    if name in _TOP_PARTS:
        return _TOP_PARTS[name]
    _, _, layer, part = name.split(".", 3)
    return f"blk.{layer}.{_LAYER_PARTS[part.removesuffix('.weight')]}.weight"


def interleave_rows(matrix: np.ndarray, heads: int) -> np.ndarray:
    """Order the rows of queries or keys as llama.cpp rotates them: in pairs, not in halves."""
    rows, columns = matrix.shape
    return matrix.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
