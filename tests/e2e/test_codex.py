"""Codex finishes a task over each fake, by the script in `examples/`. It runs where Codex is installed (npm)."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.dialects import called

SCRIPT = Path(__file__).parents[2] / "examples" / "codex.sh"

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(shutil.which("codex") is None, reason="npm install @openai/codex, and put it on the PATH"),
]


def free_ports(count: int) -> list[str]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [str(one.getsockname()[1]) for one in sockets]


@pytest.mark.parametrize(
    ("dialect", "protocol"), [(dialect, protocol) for protocol in ("chat", "responses") for dialect in called(protocol)]
)
def test_codex_reads_a_file(dialect: str, protocol: str, tmp_path: Path) -> None:
    port, fake_port = free_ports(2)
    environment = {**os.environ, "DRAGOMAN": "dragoman", "PORT": port, "FAKE_PORT": fake_port, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        ["bash", SCRIPT, dialect, protocol], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Codex has read the file, over {dialect}'s {protocol}." in done.stdout
