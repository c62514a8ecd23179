"""Model folders, exported once per run, and the engine's pieces around them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from engine_models import make
from engine_rig import Folders, Rig, Rigs

from dragoman.local_engine.export.decoder import Layout
from dragoman.local_engine.export.linear import Precision


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """folders(name, precision, layout) is a model folder, made at first use."""
    made: dict[tuple[str, ...], Path] = {}

    def get(name: str = "llama", precision: Precision = "fp32", layout: Layout = "gqa") -> Path:
        key = (name, precision, layout)
        if key not in made:
            made[key] = make(tmp_path_factory.mktemp("-".join(key)), name, precision, layout)
        return made[key]

    return get


@pytest.fixture
def rigs(folders: Folders) -> Rigs:
    """rigs(name, precision, layout, slots=...) is a scheduler over that model, with a diary."""

    def get(
        name: str = "llama",
        precision: Precision = "fp32",
        layout: Layout = "gqa",
        *,
        slots: int = 16,
        piece: int = 32,
        length: int = 192,
        choose_there: bool = False,
    ) -> Rig:
        return Rig(folders(name, precision, layout), slots, piece, length, choose_there=choose_there)

    return get
