"""Servers for tests: fake providers in a thread of their own, and dragoman as a process of its own."""

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

__all__ = ["Fakes", "NoStart", "Proxies"]

_STARTED = re.compile(r"http://[\w.:\[\]]+:\d+")
_PATIENCE = 20.0
_DRAGOMAN = (sys.executable, "-c", "from dragoman.proxy.cli.main import main; main()")


class NoStart(RuntimeError):
    """The proxy did not start; the text is what it said."""


class Fakes:
    """Starts fake providers, and stops them all at the end."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="dragoman-fakes", daemon=True)
        self._started: list[FakeProvider] = []

    def __call__(self, dialect: str, behaviour: str = "text", **options: Any) -> FakeProvider:
        """A running fake. Raises ValueError for an unknown dialect, Misuse for an unknown behaviour."""
        fake = FakeProvider(dialect, behaviour=behaviour, **options)
        asyncio.run_coroutine_threadsafe(fake.start(), self._loop).result(_PATIENCE)
        self._started.append(fake)
        return fake

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for fake in self._started:
            asyncio.run_coroutine_threadsafe(fake.stop(), self._loop).result(_PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE)
        self._loop.close()


class Proxies:
    """Starts dragoman processes, and ends them all at the end. Their files go to `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._number = 0

    def __call__(self, configuration: Mapping[str, Any] | str, env: Mapping[str, str] | None = None) -> str:
        """The address of a running proxy, without a path. Raises NoStart."""
        self._number += 1
        file, log = self._folder / f"dragoman-{self._number}.yaml", self._folder / f"dragoman-{self._number}.log"
        text = configuration if isinstance(configuration, str) else json.dumps(configuration)
        file.write_text(text, "utf-8")
        command = [*_DRAGOMAN, "serve", "--config", str(file), "--port", "0"]
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **(env or {})})
        self._stack.callback(_end, process)
        return _address(process, log)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    """What the proxy says it listens at."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        told = log.read_text("utf-8", "replace")
        found = _STARTED.search(told)
        if found:
            return found[0]
        if process.poll() is not None:
            raise NoStart(f"dragoman ended with status {process.returncode}:\n{told}")
        time.sleep(0.02)
    raise NoStart(f"dragoman did not start within {_PATIENCE:g} s:\n{log.read_text('utf-8', 'replace')}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
