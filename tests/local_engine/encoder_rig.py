"""A tiny encoder whose vectors are the rows of a table, so that results are easy to compute."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from tiny_models import SPECS

from dragoman.local_engine.export.byte_tokenizer import byte_tokenizer

TABLE = np.random.RandomState(2).standard_normal((272, 8)).astype(np.float32)
TEXTS = [list(text.encode()) for text in ("one", "a longer text than that", "x", "four")]


def export_encoder(folder: Path) -> Path:
    """Write the encoder and its tokenizer into a folder; return the folder."""
    info = helper.make_tensor_value_info
    ids, mask = (info(name, TensorProto.INT64, ["b", "s"]) for name in ("input_ids", "attention_mask"))
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])]
    table = numpy_helper.from_array(TABLE, "table")
    graph = helper.make_graph(nodes, "g", [ids, mask], [info("last_hidden_state", 1, ["b", "s", 8])], [table])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    (folder / "tokenizer.json").write_text(json.dumps(byte_tokenizer(SPECS["llama"])), "utf-8")
    (folder / "config.json").write_text('{"max_position_embeddings": 30}', "utf-8")
    return folder
