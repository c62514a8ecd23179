"""Processes that the benchmarks start, on free ports of 127.0.0.1. They end with the benchmark."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["REALTIME", "free_port", "run_first", "run_process", "wait_until_listening"]

REALTIME = "let no other program on the machine count; for root"
"""The help of the option `--realtime`."""

_PORTS = deque(random.sample(range(10_000, 30_000), 2_000))
"""Below the ports that systems give to outgoing connections."""


@contextmanager
def run_process(
    command: Sequence[str],
    log: Path | None = None,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    cores: set[int] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command as a process; terminate it at exit. `log` gets its output; `env` is added to the environment."""
    with Path(log or os.devnull).open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **(env or {})}, cwd=cwd)
    try:
        if cores:
            os.sched_setaffinity(process.pid, cores)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def run_first(pid: int = 0) -> None:
    """Run a process, or this one, and those that it starts from now on before all others of the machine (SCHED_RR).
    Raises PermissionError for all but root."""
    os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(1))


def free_port() -> int:
    """Return a port that nothing uses, and that no other call in this process has returned. The system gives it to no
    outgoing connection either, so it stays free until a slow server listens there."""
    while True:
        port = _PORTS.popleft()
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def wait_until_listening(port: int, process: subprocess.Popen[bytes] | None = None, seconds: float = 20) -> bool:
    """Wait until something listens on the port. Return False if the process ends first or the time is over.

    A connection to a free port can get the same port as its local one, and is then connected to itself.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and (process is None or process.poll() is None):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
                if connection.getsockname() != connection.getpeername():
                    return True
        except OSError:
            pass
        time.sleep(0.05)
    return False
