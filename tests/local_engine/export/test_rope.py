"""Rotary tables: the frequency scaling of Llama 3."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tiny_models import SPECS

from dragoman.local_engine.export.rope import rotary_tables
from dragoman.local_engine.export.spec import RopeScaling


def test_llama3_scaling_keeps_high_frequencies_and_divides_low_ones() -> None:
    plain = replace(SPECS["llama"], rope_scaling=None, head_dim=64, rope_theta=5e5)
    scaled = replace(plain, rope_scaling=RopeScaling("llama3", 8.0, 1.0, 4.0, 8192))
    (_, before), (_, after) = rotary_tables(plain, 2), rotary_tables(scaled, 2)
    ratio = np.arcsin(before[1].clip(-1, 1))[1:] / np.arcsin(after[1].clip(-1, 1))[1:]
    assert ratio[0] == 1 and ratio[-1] == pytest.approx(8, rel=1e-3) and (np.diff(ratio) > -1e-3).all()
