"""Runs a script of `examples/` that starts a fake provider and dragoman, each on a free port."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.ports import find_free_port

__all__ = ["run_example"]

_EXAMPLES = Path(__file__).parents[2] / "examples"


def run_example(name: str, dialect: str, protocol: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the script for a provider of that dialect and protocol. Its files go to the folder."""
    port, fake_port = str(find_free_port()), str(find_free_port())
    environment = {**os.environ, "DRAGOMAN": "dragoman", "PORT": port, "FAKE_PORT": fake_port, "TMPDIR": str(folder)}
    return subprocess.run(
        ["bash", _EXAMPLES / name, dialect, protocol],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
