"""Tiny model folders, exported once per run, and schedulers over them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from scheduler_rig import Folders, SchedulerRig, SchedulerRigs
from tiny_models import LENGTH, export_tiny_model

from dragoman.local_engine.export.decoder_graph import Layout
from dragoman.local_engine.export.linear import Precision


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """folders(name, precision, layout) is a model folder, exported at its first use."""
    exported: dict[tuple[str, ...], Path] = {}

    def get(name: str = "llama", precision: Precision = "fp32", layout: Layout = "gqa") -> Path:
        key = (name, precision, layout)
        if key not in exported:
            exported[key] = export_tiny_model(tmp_path_factory.mktemp("-".join(key)), name, precision, layout)
        return exported[key]

    return get


@pytest.fixture
def rigs(folders: Folders) -> SchedulerRigs:
    """rigs(name, precision, layout, slots=...) is a scheduler over that model."""

    def get(
        name: str = "llama",
        precision: Precision = "fp32",
        layout: Layout = "gqa",
        *,
        slots: int = 16,
        prefill_chunk: int = 32,
        length: int = LENGTH,
        sample_on_device: bool = False,
    ) -> SchedulerRig:
        folder = folders(name, precision, layout)
        return SchedulerRig(folder, slots, prefill_chunk, length, sample_on_device=sample_on_device)

    return get
