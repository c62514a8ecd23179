"""Embeddings: what comes out is the folder's pooling of each text alone, however texts are grouped."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_models import SPECS
from engine_rig import Folders
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from dragoman.adapters.faults import Fault
from dragoman.adapters.validation import load_validator
from dragoman.local_engine.embeddings import Embedder, batches
from dragoman.local_engine.engine import Options
from dragoman.local_engine.export.tokens import byte_tokenizer
from dragoman.local_engine.hub import HubEngine
from dragoman.local_engine.places import FolderError
from dragoman.local_engine.providers import Provider

TABLE = np.random.RandomState(2).standard_normal((272, 8)).astype(np.float32)
TEXTS = [list(text.encode()) for text in ("one", "a longer text than that", "x", "four")]


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """An encoder whose vectors are rows of a table: easy to check, and padding shows at once."""
    info = helper.make_tensor_value_info
    ids, mask = (info(name, TensorProto.INT64, ["b", "s"]) for name in ("input_ids", "attention_mask"))
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])]
    table = numpy_helper.from_array(TABLE, "table")
    graph = helper.make_graph(nodes, "g", [ids, mask], [info("last_hidden_state", 1, ["b", "s", 8])], [table])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "tokenizer.json").write_text(json.dumps(byte_tokenizer(SPECS["llama"])), "utf-8")
    (tmp_path / "config.json").write_text('{"max_position_embeddings": 30}', "utf-8")
    return tmp_path


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("pooling", ["mean", "cls", "last"])
def test_vectors_are_those_of_each_text_alone(encoder: Path, pooling: str, normalize: bool) -> None:
    (encoder / "dragoman.json").write_text(json.dumps({"pooling": pooling, "normalize": normalize}), "utf-8")
    rows = [TABLE[text] for text in TEXTS]
    wanted = np.stack([{"mean": row.mean(0), "cls": row[0], "last": row[-1]}[pooling] for row in rows])
    if normalize:
        wanted /= np.linalg.norm(wanted, axis=-1, keepdims=True)
    found = Embedder.load(encoder, "cpu").embed(TEXTS)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_a_run_that_hangs_or_breaks_shows(encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = Embedder.load(encoder, "cpu")
    hub = HubEngine(embedder=embedder)
    seen = []

    def broken(*_: Any) -> Any:
        time.sleep(0.02)
        seen.append(hub.statistics()["step_seconds"])
        raise RuntimeError("an illegal memory access")

    class Session:
        run = broken

    monkeypatch.setattr(embedder, "_session", Session())
    with pytest.raises(Fault, match="illegal memory access"):
        embedder.embed(TEXTS)
    assert seen[0] >= 0.02 and (hub.statistics()["step_seconds"], hub.statistics()["failed"]) == (0, None)
    monkeypatch.setattr(embedder, "provider", Provider("cuda", "CUDAExecutionProvider"))
    with pytest.raises(Fault, match="illegal memory access"):
        embedder.embed(TEXTS)
    assert hub.statistics()["failed"] == "CUDA failed: an illegal memory access"


def test_texts_are_tokenised(encoder: Path) -> None:
    embedder = Embedder.load(encoder, "cpu")
    assert embedder.tokens("four") == TEXTS[3] and embedder.width == 8


@pytest.mark.parametrize(("text", "code"), [([], None), ([1] * 31, "context_length_exceeded")])
def test_texts_that_do_not_fit(encoder: Path, text: list[int], code: Any) -> None:
    with pytest.raises(Fault, match="text 1 has") as refused:
        Embedder.load(encoder, "cpu").embed([[1], text])
    assert (refused.value.param, refused.value.code) == ("input[1]", code)


def test_tokens_beyond_the_table(encoder: Path) -> None:
    with pytest.raises(Fault, match=r"the encoder failed: .*indices element out of data bounds"):
        Embedder.load(encoder, "cpu").embed([[999]])


def test_a_decoder_is_no_encoder(folders: Folders) -> None:
    with pytest.raises(FolderError, match="is a decoder"):
        Embedder.load(folders(), "cpu")


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 200))
def test_groups_hold_each_text_once_and_stay_small(lengths: list[int], most: int) -> None:
    groups = list(batches(lengths, most))
    assert sorted(index for group in groups for index in group) == list(range(len(lengths)))
    assert all(len(group) == 1 or len(group) * max(lengths[i] for i in group) <= most for group in groups)


async def test_embeddings_in_the_hubs_form(encoder: Path) -> None:
    (encoder / "dragoman.json").write_text('{"name": "table"}', "utf-8")
    hub = await HubEngine.load(encoder, Options(device="cpu"))
    assert (hub.verbs, hub.name) == (("embeddings",), "table")
    found = await hub.embeddings({"model": "m", "input": ["one", "x"]})
    load_validator("hub/embeddings.reply").check(found)
    assert found["usage"] == {"prompt_tokens": 4, "total_tokens": 4}
    wanted = Embedder.load(encoder, "cpu").embed([TEXTS[0], TEXTS[2]])
    np.testing.assert_allclose([one["embedding"] for one in found["data"]], wanted, rtol=1e-6)
    packed = await hub.embeddings({"model": "m", "input": TEXTS[2], "encoding_format": "base64"})
    np.testing.assert_array_equal(np.frombuffer(base64.b64decode(packed["data"][0]["embedding"]), "<f4"), wanted[1])


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ({"input": "x" * 31}, ("input", 0)),
        ({"input": [[5], [272]]}, ("input", 1)),
        ({"input": []}, ("input",)),
        ({"dimensions": 4}, ("dimensions",)),
        ({"encoding_format": "int8"}, ("encoding_format",)),
        ({"input_type": "query"}, ("input_type",)),
    ],
)
async def test_embeddings_that_are_refused(encoder: Path, asked: dict[str, Any], path: tuple[Any, ...]) -> None:
    hub = await HubEngine.load(encoder, Options(device="cpu"))
    with pytest.raises(Fault) as refused:
        await hub.embeddings({"model": "m", "input": "x", **asked})
    assert refused.value.path == path
    with pytest.raises(Fault, match="does not serve chat"):
        await anext(aiter(hub.chat({"model": "m", "messages": []})))
