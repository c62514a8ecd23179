"""The Containerfile: what it promises can be read from it, and its health check is run."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "deploy" / "Containerfile"


def read_instructions() -> list[tuple[str, str]]:
    """The instructions without comments, each on one line."""
    text = re.sub(r"^#.*\n", "", FILE.read_text("utf-8"), flags=re.MULTILINE).replace("\\\n", " ")
    found = [line.split(None, 1) for line in text.splitlines() if line.strip()]
    return [(name, rest) for name, rest in found]


INSTRUCTIONS = read_instructions()
LAST_STAGE = INSTRUCTIONS[max(at for at, (name, _) in enumerate(INSTRUCTIONS) if name == "FROM") :]


def find(name: str) -> str:
    """What follows an instruction that the last stage has once."""
    [rest] = [rest for one, rest in LAST_STAGE if one == name]
    return rest


def test_there_are_two_stages_on_one_base() -> None:
    assert [rest for name, rest in INSTRUCTIONS if name == "FROM"] == ["${BASE} AS build", "${BASE}"]
    [base] = [rest.partition("=")[2] for name, rest in INSTRUCTIONS if name == "ARG"]
    assert re.fullmatch(r"python:3\.\d+-slim", base), "a slim base, without the name of a registry"


def test_the_last_stage_runs_nothing_and_holds_no_source() -> None:
    assert "RUN" not in dict(LAST_STAGE)
    copies = [rest for name, rest in LAST_STAGE if name == "COPY"]
    assert all(rest.startswith("--from=build ") for rest in copies)
    assert not [rest for name, rest in INSTRUCTIONS if name == "ADD"]


def test_it_does_not_run_as_root() -> None:
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", find("USER")), "a number, so that Kubernetes can see that it is not root"
    assert f"chown {find('USER')} /rootfs/var/lib/dragoman" in FILE.read_text("utf-8")


def test_packages_are_checked_against_hashes_and_listed() -> None:
    commands = [rest for name, rest in INSTRUCTIONS if name == "RUN"]
    assert "pip install --require-hashes -r constraints-hashes.txt" in commands
    assert "pip install --no-deps ." in commands
    assert [one for one in commands if "tools.supply_chain sbom" in one]


def test_what_is_copied_exists_and_makes_the_whole_package() -> None:
    copied = {
        source for name, rest in INSTRUCTIONS if name == "COPY" and "--from" not in rest for source in rest.split()[:-1]
    }
    assert not [source for source in copied if not (ROOT / source).exists()]
    assert copied >= {"dragoman", *(link.name for link in (ROOT / "dragoman").iterdir() if link.is_symlink())}
    assert copied >= {"pyproject.toml", *find_files_of_the_package()}


def find_files_of_the_package() -> set[str]:
    """The files that pyproject.toml names: without them no wheel can be built."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project, data = settings["project"], settings["tool"]["setuptools"]["data-files"]
    return {project["readme"], *project["license-files"], *(file for files in data.values() for file in files)}


def test_it_serves_by_default() -> None:
    assert json.loads(find("ENTRYPOINT")) == ["dragoman"]
    assert json.loads(find("CMD")) == ["serve"]
    assert "DRAGOMAN_HOST=0.0.0.0" in shlex.split(find("ENV"))


class Live(BaseHTTPRequestHandler):
    """A proxy that is alive, and nothing else."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/live" else 404)
        self.end_headers()


def check_health(port: int) -> int:
    words = json.loads(find("HEALTHCHECK").partition(" CMD ")[2])
    command, env = [sys.executable, *words[1:]], {"DRAGOMAN_PORT": str(port)}
    return subprocess.run(command, env=env, stderr=subprocess.DEVNULL, timeout=60).returncode


def test_the_health_check_asks_whether_the_proxy_is_alive() -> None:
    with HTTPServer(("127.0.0.1", 0), Live) as server:
        Thread(target=server.handle_request).start()
        assert check_health(server.server_port) == 0
    assert check_health(server.server_port) == 1
