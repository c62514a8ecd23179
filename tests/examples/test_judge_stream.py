"""The example that judges recorded streams, over the recordings of the tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STREAMS = ROOT / "tests" / "adapters" / "chat" / "fixtures" / "streams"


@pytest.mark.parametrize(
    ("name", "verdict", "exit_code"),
    [
        ("openai_text", "complete", 0),
        ("openai_ending_beside", "complete", 0),
        ("openai_truncated", "failed: upstream_truncated", 1),
        ("openai_error_event", "failed: upstream_error", 1),
    ],
)
def test_a_recording_is_judged(name: str, verdict: str, exit_code: int) -> None:
    command = [sys.executable, ROOT / "examples" / "judge_stream.py", STREAMS / f"{name}.sse"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr) == (exit_code, "")
    assert run.stdout.splitlines()[-1].startswith(verdict)
