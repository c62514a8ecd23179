"""Model specs: read from the config.json of transformers 4 and 5."""

from __future__ import annotations

from pathlib import Path

import pytest
from export_rig import save_source
from tiny_models import SPECS

from dragoman.local_engine.export.spec import RopeScaling, read_spec


@pytest.mark.parametrize("name", SPECS)
def test_a_spec_is_preserved_by_config_json(tmp_path: Path, name: str) -> None:
    assert read_spec(save_source(tmp_path, SPECS[name])) == SPECS[name]


def test_rope_settings_of_transformers_4_are_read(tmp_path: Path) -> None:
    folder = save_source(tmp_path, SPECS["llama"], rope_parameters=None, rope_theta=5e5, rope_scaling=None)
    assert (read_spec(folder).rope_theta, read_spec(folder).rope_scaling) == (5e5, None)
    folder = save_source(tmp_path, SPECS["llama"], rope_parameters=None, rope_scaling={"type": "linear", "factor": 2})
    assert read_spec(folder).rope_scaling == RopeScaling("linear", 2.0)
