"""Codex finishes a task over each fake, by the script in `examples/`. It runs where Codex is installed (npm)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.dialects import called

from .example_scripts import run_example

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(shutil.which("codex") is None, reason="npm install @openai/codex, and put it on the PATH"),
]


@pytest.mark.parametrize(
    ("dialect", "protocol"), [(dialect, protocol) for protocol in ("chat", "responses") for dialect in called(protocol)]
)
def test_codex_reads_a_file(dialect: str, protocol: str, tmp_path: Path) -> None:
    done = run_example("codex.sh", dialect, protocol, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Codex has read the file, over {dialect}'s {protocol}." in done.stdout
