"""Interrupting `dragoman learn` keeps what is known."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from dragoman.contract.fakes import FakeProvider
from dragoman.contract.servers import FakeServers
from tests.proxy.cli.conftest import MAIN


def test_ctrl_c_writes_what_is_known(tmp_path: Path) -> None:
    with FakeServers() as start:
        fake: FakeProvider = start("openai")
        command = [sys.executable, "-c", MAIN, "learn", fake.origin, "--yes", "--json", "r.json"]
        with subprocess.Popen(
            command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, preexec_fn=_listen_to_interrupts
        ) as process:
            assert process.stderr is not None
            for line in process.stderr:
                if "fields of chat" in line:
                    fake.behaviour = "hang"
                    process.send_signal(signal.SIGINT)
                    break
            errors = process.stderr.read()
        assert process.returncode == 130, errors
    entry = (tmp_path / "local.yaml").read_text("utf-8")
    assert "# Not complete: interrupted by the user" in entry
    assert "protocols: [chat, responses, completions, embeddings]" in entry
    assert "Traceback" not in errors
    assert sorted(one.name for one in tmp_path.iterdir()) == ["local.yaml", "r.json"]


def _listen_to_interrupts() -> None:
    """Shells start what runs in the background with SIGINT ignored, and children inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
