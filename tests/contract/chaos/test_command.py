"""`dragoman chaos`."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner, Result

from dragoman.proxy.cli.main import app

DRAGOMAN = (sys.executable, "-u", "-c", "from dragoman.proxy.cli.main import main; main()", "chaos")


def run_chaos(*words: str) -> Result:
    return CliRunner().invoke(app, ["chaos", *words])


def test_it_runs_until_a_signal(tmp_path: Path) -> None:
    file = tmp_path / "toxiproxy.json"
    file.write_text(json.dumps([{"name": "db", "upstream": "127.0.0.1:2", "enabled": False}]), "utf-8")
    words = ["127.0.0.1:1", "--config", str(file), "--port", "0", "--toxic", "latency(latency=9)", "--toxic", "slicer"]
    with subprocess.Popen([*DRAGOMAN, *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        found = re.search(r"http://127\.0\.0\.1:\d+", lines[0])
        assert found, lines
        with urlopen(f"{found[0]}/proxies") as reply:
            proxies = json.load(reply)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    assert process.returncode == 0
    assert "-> 127.0.0.1:1, toxics: latency_downstream, slicer_downstream" in lines[2]
    assert [toxic["attributes"]["latency"] for toxic in proxies["upstream"]["toxics"][:1]] == [9]
    assert proxies["db"]["enabled"] is False


def test_list_of_the_toxics() -> None:
    run = run_chaos("--list")
    assert run.exit_code == 0
    assert "corrupt_event(event=1)" in run.stdout


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--toxic", "latency"], "needs the address of an upstream"),
        (["nowhere"], "host:port"),
        (["a:1", "--toxic", "x"], "invalid toxic type"),
        (["--config", "/nowhere.json"], "/nowhere.json: No such file"),
        (["--config", __file__], "is no JSON"),
    ],
)
def test_wrong_options(words: list[str], problem: str) -> None:
    run = run_chaos("--port", "0", *words)
    assert (run.exit_code, problem in run.stderr) == (2, True), run.stderr
