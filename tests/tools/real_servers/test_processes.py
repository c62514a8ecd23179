"""Servers as processes: they are waited for, and they end with all that they started."""

from __future__ import annotations

import os
import sys
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from tools.real_servers.catalog import Server
from tools.real_servers.environments import find_command, read_version
from tools.real_servers.processes import StartError, run_server

FILES = Server(
    name="files",
    title="Python's server of files",
    packages=("pip==1",),
    command=("{python}", "{folder}/start.py", "{port}"),
    models={},
    ready="/",
    variables={"GREETING": "at {port}"},
    files={
        "start.py": """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open("{folder}/pids", "w").write(f"{{os.getpid()}} {{child.pid}} {{os.environ['GREETING']}}")
os.execv(sys.executable, [sys.executable, "-m", "http.server", sys.argv[1], "--bind", "127.0.0.1"])
"""
    },
)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    python = find_command(tmp_path, FILES)
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return tmp_path


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for_end(pid: int) -> bool:
    """Whether a process that was killed ends: the kernel needs a moment."""
    for _ in range(1000):
        if not is_running(pid):
            return True
        time.sleep(0.01)
    return False


def test_server_answers_and_its_whole_group_ends(cache: Path) -> None:
    with run_server(cache, FILES) as running:
        assert running.base_url == f"http://127.0.0.1:{running.port}/v1"
        with urllib.request.urlopen(f"http://127.0.0.1:{running.port}/") as reply:
            assert reply.status == 200
        server, child, greeting = (cache / "files" / "pids").read_text().split(" ", 2)
        assert greeting == f"at {running.port}"
        assert is_running(int(child))
        assert os.getpgid(int(child)) == int(server) != os.getpgrp()
    assert wait_for_end(int(server))
    assert wait_for_end(int(child))


def test_server_that_ends_is_reported_with_its_log(cache: Path) -> None:
    broken = replace(FILES, files={"start.py": "raise SystemExit('no model')"})
    with pytest.raises(StartError, match="files ended:\nno model"), run_server(cache, broken):
        pass


def test_version_is_read_in_the_environment_itself(cache: Path) -> None:
    assert read_version(cache, replace(FILES, packages=("pytest[dev]==1",))) == pytest.__version__
    assert read_version(cache, replace(FILES, packages=("no-such-package==1",))) is None
    assert read_version(cache, replace(FILES, name="other")) is None
