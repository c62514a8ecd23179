"""Runs a script of `examples/` that starts a fake provider and dragoman, each on a free port."""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

__all__ = ["run_example"]

_EXAMPLES = Path(__file__).parents[2] / "examples"


def run_example(name: str, dialect: str, protocol: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the script for a provider of that dialect and protocol. Its files go to the folder."""
    port, fake_port = _free_ports(2)
    environment = {**os.environ, "DRAGOMAN": "dragoman", "PORT": port, "FAKE_PORT": fake_port, "TMPDIR": str(folder)}
    return subprocess.run(
        ["bash", _EXAMPLES / name, dialect, protocol],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def _free_ports(count: int) -> list[str]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [str(one.getsockname()[1]) for one in sockets]
