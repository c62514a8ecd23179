"""The systemd unit: its command exists, it waits for running requests, and systemd finds it strict."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragoman.proxy.cli.main import app
from dragoman.proxy.config.load import check_text

FILE = Path(__file__).resolve().parents[2] / "deploy" / "dragoman.service"
LINES = [line.partition("=") for line in FILE.read_text("utf-8").splitlines() if re.match(r"\w+=", line)]
SETTINGS = {name: value for name, _, value in LINES}

CONFIG = (
    'providers: {p: {dialect: openai, base_url: "http://127.0.0.1:1/v1"}}\nmodels: {m: {targets: [{provider: p}]}}\n'
)

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze on this machine")


def analyze(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", *map(str, words)], capture_output=True, text=True, timeout=60)


def test_its_command_exists() -> None:
    program, command, *options = SETTINGS["ExecStart"].split()
    assert (program.rpartition("/")[2], command) == ("dragoman", "serve")
    assert CliRunner().invoke(app, [command, *options, "--help"]).exit_code == 0


def test_stopping_waits_for_running_requests() -> None:
    drain = check_text(CONFIG, "dragoman.yaml", {}).config.server.drain
    assert int(SETTINGS["TimeoutStopSec"]) > drain.timeout + drain.delay


def test_a_wrong_configuration_is_not_tried_again(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.yaml"
    file.write_text("provider: {}\n")
    code = CliRunner().invoke(app, ["serve", "--config", str(file)]).exit_code
    assert str(code) == SETTINGS["RestartPreventExitStatus"]


@needs_systemd
def test_systemd_can_read_it(tmp_path: Path) -> None:
    """With another program, because systemd looks for that too."""
    unit = tmp_path / "dragoman.service"
    unit.write_text(FILE.read_text("utf-8").replace("/opt/dragoman/bin/dragoman", "/bin/true"))
    run = analyze("verify", unit)
    assert (run.returncode, run.stderr) == (0, "")


@needs_systemd
def test_systemd_finds_it_strict() -> None:
    """From 0, nothing is exposed, to 100; a unit without any restriction has 96."""
    version = int(re.findall(r"systemd (\d+)", analyze("--version").stdout)[0])
    if version < 250:
        pytest.skip("systemd before 250 cannot judge a unit that is not installed")
    run = analyze("security", "--offline=true", "--threshold=15", FILE)
    assert run.returncode == 0, run.stdout[-300:]
