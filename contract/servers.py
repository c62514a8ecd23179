"""Servers for tests: fake providers in a thread, and dragoman in a subprocess."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .fakes import FakeProvider
from .json_types import JsonValue

__all__ = ["FakeServers", "ProxyServers", "StartError"]

_ADDRESS = re.compile(r"http://[\w.:\[\]]+:\d+")
_TIMEOUT = 20.0
_DRAGOMAN = (sys.executable, "-c", "from dragoman.proxy.cli.main import main; main()")


class StartError(RuntimeError):
    """The proxy did not start; the message has its output."""


class FakeServers:
    """Starts fake providers on demand, and stops them at exit: `with FakeServers() as start: start("openai")`."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="dragoman-fakes", daemon=True)
        self._started: list[FakeProvider] = []

    def __call__(self, dialect: str, behaviour: str = "text", **options: Any) -> FakeProvider:
        """Start a fake provider; `options` are those of FakeProvider. Raises ValueError for an unknown dialect,
        InvalidBehaviourError for an unknown behaviour."""
        fake = FakeProvider(dialect, behaviour=behaviour, **options)
        asyncio.run_coroutine_threadsafe(fake.start(), self._loop).result(_TIMEOUT)
        self._started.append(fake)
        return fake

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for fake in self._started:
            asyncio.run_coroutine_threadsafe(fake.stop(), self._loop).result(_TIMEOUT)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_TIMEOUT)
        self._loop.close()


class ProxyServers:
    """Starts dragoman processes on demand, and ends them at exit. Their files go to `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._number = 0

    def __call__(self, configuration: Mapping[str, JsonValue] | str, env: Mapping[str, str] | None = None) -> str:
        """Start a proxy and return its origin, as `http://127.0.0.1:8080`. Raises StartError."""
        self._number += 1
        file, log = self._folder / f"dragoman-{self._number}.yaml", self._folder / f"dragoman-{self._number}.log"
        text = configuration if isinstance(configuration, str) else json.dumps(configuration)
        file.write_text(text, "utf-8")
        command = [*_DRAGOMAN, "serve", "--config", str(file), "--port", "0"]
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **(env or {})})
        self._stack.callback(_terminate, process)
        return _wait_for_address(process, log)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


def _wait_for_address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Wait until the proxy logs its address."""
    end = time.monotonic() + _TIMEOUT
    while time.monotonic() < end:
        output = log.read_text("utf-8", "replace")
        found = _ADDRESS.search(output)
        if found:
            return found[0]
        if process.poll() is not None:
            raise StartError(f"dragoman ended with status {process.returncode}:\n{output}")
        time.sleep(0.02)
    raise StartError(f"dragoman did not start within {_TIMEOUT:g} s:\n{log.read_text('utf-8', 'replace')}")


def _terminate(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
