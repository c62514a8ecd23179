"""Processes: servers on free ports of 127.0.0.1, each in a process group of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from .catalog import SERVERS, Server
from .environments import find_command
from .model import write_model

__all__ = ["RunningServer", "StartError", "find_free_port", "run_server"]

_INHERITED = ("PATH", "LANG", "LC_ALL", "TMPDIR", "HOME", "SSL_CERT_FILE")
_GRACE = 15.0  # seconds between SIGTERM and SIGKILL


class StartError(Exception):
    """A server does not start; the text has the end of its log."""


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that listens."""

    server: Server
    port: int
    log: Path
    addresses: tuple[str, ...]
    """`HOST:PORT` of the server, and of those behind it."""

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"


def find_free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def run_server(cache: Path, server: Server, patience: float = 300.0) -> Iterator[RunningServer]:
    """Run a server, and the one behind it, until the block ends. Raises StartError, after `patience` seconds at the
    latest."""
    with ExitStack() as stack:
        upstream = stack.enter_context(run_server(cache, SERVERS[server.behind], patience)) if server.behind else None
        folder = cache / server.name
        folder.mkdir(parents=True, exist_ok=True)
        models = _write_models(cache, server)
        port = find_free_port()
        addresses = (f"127.0.0.1:{port}", *(upstream.addresses if upstream else ()))
        values = {
            "python": str(find_command(cache, server)),
            "bin": str(find_command(cache, server).parent),
            "tool": str(Path(__file__).parent),
            "folder": str(folder),
            "port": str(port),
            "upstream": upstream.base_url if upstream else "",
        }
        for name, text in server.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text.format(**values), "utf-8")
        running = RunningServer(server, port, folder / "server.log", addresses)
        process = stack.enter_context(_run_process(running, values, models))
        _wait_until_ready(running, process, patience)
        yield running


def _write_models(cache: Path, server: Server) -> Path:
    """Write the model in the form that a server reads, if it is missing, and return the folder of all forms."""
    folder = write_model(cache / "models" / "mini").parent
    file = folder / "mini.gguf"
    if "mini.gguf" in server.command and not file.exists():
        script = Path(__file__).with_name("gguf_writer.py")
        subprocess.run([find_command(cache, server), script, folder / "mini", file], check=True)
    return folder


@contextmanager
def _run_process(running: RunningServer, values: dict[str, str], models: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the server's command in the folder of the models; its output goes to its log. End its group."""
    command = [part.format(**values) for part in running.server.command]
    variables = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    variables |= {name: text.format(**values) for name, text in running.server.variables.items()}
    with running.log.open("wb") as log:
        process = subprocess.Popen(
            command, cwd=models, env=variables, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
        )
        try:
            yield process
        finally:
            _end_group(process)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End the process in peace, then whatever is left of its group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _wait_until_ready(running: RunningServer, process: subprocess.Popen[bytes], patience: float) -> None:
    url = f"http://127.0.0.1:{running.port}{running.server.ready}"
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if _answers(url):
            return
        if process.poll() is not None:
            raise StartError(f"{running.server.name} ended:\n{_read_end(running.log)}")
        time.sleep(0.5)
    raise StartError(f"{running.server.name} is not ready after {patience:g} s:\n{_read_end(running.log)}")


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def _read_end(log: Path, lines: int = 30) -> str:
    return "\n".join(log.read_text("utf-8", "replace").splitlines()[-lines:])
