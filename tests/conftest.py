"""What holds for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture(scope="session", autouse=True)
def state_home() -> Iterator[Path]:
    """A folder for state instead of the user's own, for this process and those that it starts."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "XDG_STATE_HOME", folder)
        yield Path(folder)
