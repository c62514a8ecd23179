"""What holds for all tests."""

from __future__ import annotations

import os
import sys
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


@pytest.fixture(scope="session", autouse=True)
def bytecode() -> Iterator[None]:
    """Where Python is told to keep no bytecode, the processes that tests start have a folder for it, for this run:
    there are more than a hundred of them, and each would compile all that it loads."""
    if not sys.dont_write_bytecode:
        yield
        return
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        patch.setitem(os.environ, "PYTHONPYCACHEPREFIX", folder)
        yield
