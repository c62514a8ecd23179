"""The embedder: pooling and normalization of each text alone, batches, and failures."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from encoder_rig import TABLE, TEXTS
from hypothesis import given
from hypothesis import strategies as st
from scheduler_rig import Folders

from dragoman.adapters.faults import Fault
from dragoman.local_engine import embedder as embedder_module
from dragoman.local_engine.embedder import Embedder, batch_by_length
from dragoman.local_engine.model_folder.files import FolderError
from dragoman.local_engine.runtime.providers import ExecutionProvider
from dragoman.local_engine.service import EngineService


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("pooling", ["mean", "cls", "last"])
def test_batching_does_not_change_the_vector_of_a_text(encoder: Path, pooling: str, normalize: bool) -> None:
    (encoder / "dragoman.json").write_text(json.dumps({"pooling": pooling, "normalize": normalize}), "utf-8")
    rows = [TABLE[text] for text in TEXTS]
    wanted = np.stack([{"mean": row.mean(0), "cls": row[0], "last": row[-1]}[pooling] for row in rows])
    if normalize:
        wanted /= np.linalg.norm(wanted, axis=-1, keepdims=True)
    found = Embedder.load(encoder, "cpu").embed(TEXTS)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


class BlockedSession:
    """A session whose run fails after `release` is set."""

    def __init__(self) -> None:
        self.started, self.release = threading.Event(), threading.Event()

    def run(self, outputs: list[str], feeds: dict[str, object]) -> list[object]:
        self.started.set()
        self.release.wait()
        raise RuntimeError("an illegal memory access")


def test_the_statistics_show_a_running_step_and_a_permanent_failure(
    encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = Embedder.load(encoder, "cpu")
    service = EngineService(embedder=embedder)
    session = BlockedSession()
    clock = [100.0]
    monkeypatch.setattr(embedder_module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(embedder, "_session", session)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(embedder.embed, TEXTS)
        session.started.wait()
        clock[0] += 2.5
        assert service.statistics()["step_seconds"] == 2.5
        session.release.set()
        with pytest.raises(Fault, match="illegal memory access"):
            run.result()
    assert (service.statistics()["step_seconds"], service.statistics()["failed"]) == (0, None)
    monkeypatch.setattr(embedder, "provider", ExecutionProvider("cuda", "CUDAExecutionProvider"))
    with pytest.raises(Fault, match="illegal memory access"):
        embedder.embed(TEXTS)
    assert service.statistics()["failed"] == "CUDA failed: an illegal memory access"


def test_text_is_tokenized_with_the_folders_tokenizer(encoder: Path) -> None:
    embedder = Embedder.load(encoder, "cpu")
    assert embedder.tokenize("four") == TEXTS[3] and embedder.width == 8


@pytest.mark.parametrize(("text", "code"), [([], None), ([1] * 31, "context_length_exceeded")])
def test_an_empty_or_too_long_text_is_rejected(encoder: Path, text: list[int], code: str | None) -> None:
    with pytest.raises(Fault, match="text 1 has") as raised:
        Embedder.load(encoder, "cpu").embed([[1], text])
    assert (raised.value.param, raised.value.code) == ("input[1]", code)


def test_a_failing_run_is_an_internal_fault(encoder: Path) -> None:
    with pytest.raises(Fault, match=r"the encoder failed: .*indices element out of data bounds"):
        Embedder.load(encoder, "cpu").embed([[999]])


def test_the_folder_of_a_decoder_is_rejected(folders: Folders) -> None:
    with pytest.raises(FolderError, match="is a decoder"):
        Embedder.load(folders(), "cpu")


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 200))
def test_batches_contain_each_text_once_and_are_limited(lengths: list[int], max_tokens: int) -> None:
    batches = list(batch_by_length(lengths, max_tokens))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    assert all(len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= max_tokens for batch in batches)
