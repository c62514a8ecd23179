"""Tiny model folders, exported once per run, and the schedulers, engines and services over them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from encoder_rig import export_encoder
from scheduler_rig import Folders, SchedulerRig, SchedulerRigs
from service_rig import CPU, Engines, Services, export_family
from tiny_models import LENGTH, export_tiny_model

from dragoman.local_engine.engine import Engine
from dragoman.local_engine.export.decoder_graph import Layout
from dragoman.local_engine.export.linear import Precision
from dragoman.local_engine.service import EngineService


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


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    """engines(family) is an engine with that family's chat template, loaded at its first use."""
    loaded: dict[str, Engine] = {}

    def get(family: str) -> Engine:
        if family not in loaded:
            loaded[family] = Engine.load(export_family(tmp_path_factory.mktemp(family), family), CPU)
        return loaded[family]

    yield get
    for engine in loaded.values():
        engine.close()


@pytest.fixture
async def services(engines: Engines) -> Services:
    """services(family) is a service over that engine."""
    return lambda family: EngineService(engines(family))


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """The folder of an encoder whose vectors are the rows of a table."""
    return export_encoder(tmp_path)
