"""A folder in which the blocks of one page run, as in a terminal, without a network and with ports of their own.

The numbers of ports that a page names are replaced by free ones wherever they stand, and put back in what is printed,
so that pages can run at the same time. Commands find `dragoman`, `uv run` and `python` of this environment.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.ports import find_free_port

from .blocks import ROOT

__all__ = ["HOUSES", "Sandbox", "matches", "split_commands"]

PATIENCE = 60.0  # seconds
_BIN = Path(sys.executable).parent
_PORT = re.compile(r"(?<![\w.-])(8000|8080|8474|9000|9001|9002|9003|9004|9005|9100)(?![\w.])")
_SERVER = re.compile(r"(?:[A-Z_]+=\S+ )*(?:uv run )?dragoman (?:serve|demo|fake|chaos)\b(?!.*--(?:list|help)\b)")
_FILES = Path(__file__).with_name("files")
_FAKES = [
    f"dragoman fake {dialect} --port 900{number}"
    for number, dialect in enumerate(("openai", "databricks", "azure", "mindie", "anthropic"), 1)
]

HOUSES: dict[str, list[str]] = {
    "a proxy with its store": ["dragoman serve"],
    "the fakes of examples/fakes.yaml": _FAKES,
    "examples/fakes.yaml with its fakes": [*_FAKES, "dragoman serve --config examples/fakes.yaml"],
    "a proxy with the model fast": [_FAKES[0], "dragoman serve --config fast.yaml"],
    "an OpenAI server on port 8000": ["dragoman fake openai --port 8000"],
    "an OpenAI server on port 9100": ["dragoman fake openai --port 9100"],
}

_UV = """#!/bin/sh
# what `uv run [OPTIONS] COMMAND` does in an environment that has everything
[ "$1" = run ] || exit 64
shift
exec "$@"
"""
_DRAGOMAN = """#!/bin/sh
exec {python} -m dragoman "$@"
"""


class Sandbox:
    """The folder, the servers that run in it, and what its blocks have exported. Close it."""

    def __init__(self, folder: Path, page: str) -> None:
        self.folder = folder
        self._ports: dict[str, str] = {}
        self._servers: dict[str, subprocess.Popen[bytes]] = {}
        self._exports: list[str] = []
        _write_program(folder / ".bin" / "uv", _UV)
        _write_program(folder / ".bin" / "dragoman", _DRAGOMAN.format(python=shlex.quote(sys.executable)))
        for name in ("contract", "schemas", "bench"):
            (folder / name).symlink_to(ROOT / name)
        shutil.copytree(_FILES / "all", folder, dirs_exist_ok=True)
        shutil.copytree(ROOT / "examples", folder / "examples")
        shutil.copytree(ROOT / "examples" / "payloads", folder, dirs_exist_ok=True)
        own = _FILES / Path(page).stem
        if own.is_dir():
            shutil.copytree(own, folder, dirs_exist_ok=True)
        for file in (*folder.glob("*.yaml"), *(folder / "examples").iterdir()):
            if file.is_file():
                file.write_text(self.hide_ports(file.read_text("utf-8")), "utf-8")

    def hide_ports(self, text: str) -> str:
        """The text with free ports in the places of those that it names."""
        return _PORT.sub(lambda found: self._port(found[1]), text)

    def show_ports(self, text: str) -> str:
        for shown, real in self._ports.items():
            text = re.sub(rf"\b{real}\b", shown, text)
        return text

    def start_house(self, name: str) -> None:
        """Start the servers that do not run yet."""
        for command in HOUSES[name]:
            if self._find_address(command) not in self._servers:
                self._launch(command)
        for port in self._servers:
            self._wait(port)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(self.hide_ports(text), "utf-8")

    def run(self, command: str, env: dict[str, str], shown: str = "") -> tuple[int, str]:
        """Run a command of a shell: its status, and what it printed. A server goes on in the background; if `shown` is
        given, its output is awaited."""
        if command.startswith("export "):
            self._exports.append(command)
        if _SERVER.match(command):
            return 0, self._serve(command, env, shown)
        script = "\n".join([*self._exports, self.hide_ports(command)])
        return self.run_program(["bash", "-euo", "pipefail", "-c", script], env)

    def run_program(self, words: list[str], env: dict[str, str]) -> tuple[int, str]:
        run = subprocess.run(
            words,
            cwd=self.folder,
            env=self._environment() | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE * 2,
        )
        return run.returncode, self.show_ports(run.stdout.decode())

    def close(self) -> None:
        for process in self._servers.values():
            _stop(process)

    def _serve(self, command: str, env: dict[str, str], shown: str) -> str:
        port = self._launch(command.rstrip("& "), env)
        self._wait(port)
        deadline = time.monotonic() + PATIENCE
        while True:
            printed = self.show_ports(self._log(port).read_text("utf-8"))
            if not shown or matches(shown, printed) or time.monotonic() > deadline:
                return printed
            time.sleep(0.02)

    def _launch(self, command: str, env: dict[str, str] | None = None) -> str:
        """Start a server; one that has its port ends first."""
        port = self._find_address(command)
        if port in self._servers:
            _stop(self._servers.pop(port))
        script = "\n".join([*self._exports, self.hide_ports(command)])
        with self._log(port).open("wb") as log:
            self._servers[port] = subprocess.Popen(
                ["bash", "-c", script],
                cwd=self.folder,
                env=self._environment() | (env or {}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # the shell and the server end together
            )
        return port

    def _find_address(self, command: str) -> str:
        """The page's number of the port that the server listens on; `free` if it takes any."""
        named = re.search(r"--(?:port|listen) (?:[\d.]+:)?(\d+)", command)
        return named[1] if named else "free" if "dragoman fake" in command else "8080"

    def _wait(self, port: str) -> None:
        """Until the server listens, or has ended."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self._servers[port].poll() is None:
            if port == "free" and self._log(port).stat().st_size:
                return
            with suppress(OSError), socket.create_connection(("127.0.0.1", int(self._port(port))), timeout=1):
                return
            time.sleep(0.02)
        raise AssertionError(f"nothing listens on {port}: {self._log(port).read_text('utf-8')}")

    def _log(self, port: str) -> Path:
        return self.folder / f".{port}.log"

    def _port(self, shown: str) -> str:
        if shown not in self._ports:
            self._ports[shown] = str(find_free_port())
        return self._ports[shown]

    def _environment(self) -> dict[str, str]:
        kept = ("LANG", "LD_LIBRARY_PATH", "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE", "TMPDIR")
        return {name: os.environ[name] for name in kept if name in os.environ} | {
            "PATH": os.pathsep.join([str(self.folder / ".bin"), str(_BIN), os.environ["PATH"]]),
            "HOME": str(self.folder),
            "XDG_STATE_HOME": str(self.folder / ".state"),
            "PYTHONUNBUFFERED": "1",
            "COLUMNS": "80",
            "DRAGOMAN_PORT": self._port("8080"),
            "DRAGOMAN_CHAOS_PORT": self._port("8474"),
            **({"DRAGOMAN_BASE_URL": f"http://127.0.0.1:{self._port('8080')}/v1"} if "8080" in self._servers else {}),
        }


def split_commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, lines that end with a backslash joined, each with the output shown for it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE):
        if part.strip():
            command, _, output = part.replace("\\\n", "\0").partition("\n")
            yield command.replace("\0", "\\\n"), output.replace("\0", "\\\n")


def matches(shown: str, printed: str) -> bool:
    """Whether a page shows what is printed. A line `...` stands for any lines."""
    first, *others = re.split(r"^\.\.\.$\n?", _plain(shown), flags=re.MULTILINE)
    text, position = _plain(printed), len(first)
    if not others or not text.startswith(first):
        return text == first
    for piece in others[:-1]:
        at = text.find(piece, position)
        if at < 0:
            return False
        position = at + len(piece)
    return text.endswith(others[-1]) and len(text) - len(others[-1]) >= position


def _plain(text: str) -> str:
    """Without what differs from run to run: times, the ids of requests, dragoman's version, spaces at the end."""
    text = re.sub(r"\b\d+(?:\.\d+)? m?s\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "…", text)
    text = re.sub(r"dragoman/[0-9.]+", "dragoman", text)
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines()) + "\n"


def _stop(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _write_program(file: Path, text: str) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
