"""Claude Code edits a file over each fake, by the script in `examples/`. It runs where it is installed (npm)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.dialects import called

from .example_scripts import run_example

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(
        shutil.which("claude") is None, reason="npm install @anthropic-ai/claude-code, and put it on the PATH"
    ),
]


@pytest.mark.parametrize(
    ("dialect", "protocol"),
    [(dialect, protocol) for protocol in ("chat", "responses", "messages") for dialect in called(protocol)],
)
def test_claude_code_edits_a_file(dialect: str, protocol: str, tmp_path: Path) -> None:
    done = run_example("claude_code.sh", dialect, protocol, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Claude Code has edited the file, over {dialect}'s {protocol}." in done.stdout
