"""Servers for tests: fake providers and fault proxies in threads, and dragoman in a subprocess."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from .chaos import ChaosProxies, ChaosProxy, Toxic
from .fakes import FakeProvider
from .json_types import JsonValue

__all__ = ["ChaosServer", "ChaosServers", "FakeServers", "ProxyServers", "StartError"]

T = TypeVar("T")

_ADDRESS = re.compile(r"http://[\w.:\[\]]+:\d+")
_TIMEOUT = 20.0
_DRAGOMAN = (sys.executable, "-c", "from dragoman.proxy.cli.main import main; main()")


class StartError(RuntimeError):
    """The proxy did not start; the message has its output."""


class _LoopThread:
    """An event loop in a thread of its own; `_stop_all` ends what was started in it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="dragoman-servers", daemon=True)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_TIMEOUT)

    async def _stop_all(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(self._stop_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_TIMEOUT)
        self._loop.close()


class FakeServers(_LoopThread):
    """Starts fake providers on demand, and stops them at exit: `with FakeServers() as start: start("openai")`."""

    def __init__(self) -> None:
        super().__init__()
        self._started: list[FakeProvider] = []

    def __call__(self, dialect: str, behaviour: str = "text", **options: Any) -> FakeProvider:
        """Start a fake provider; `options` are those of FakeProvider. Raises ValueError for an unknown dialect,
        InvalidBehaviourError for an unknown behaviour."""
        fake = FakeProvider(dialect, behaviour=behaviour, **options)
        self._run(fake.start())
        self._started.append(fake)
        return fake

    async def _stop_all(self) -> None:
        for fake in self._started:
            await fake.stop()


class ChaosServer:
    """A fault proxy in front of one address. `listen` is `host:port`; `url` is the given address with that in it."""

    def __init__(self, proxy: ChaosProxy, address: str, run: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self._proxy, self._run = proxy, run
        parts = urlsplit(address)
        self.listen = proxy.listen
        self.url = parts._replace(netloc=self.listen).geturl() if parts.netloc else f"http://{self.listen}"

    @property
    def connections(self) -> int:
        return self._proxy.connections

    def toxic(
        self, kind: str, stream: str = "downstream", toxicity: float = 1.0, name: str = "", **attributes: int
    ) -> str:
        """Add a toxic to the open and to later connections, and return its name. Raises ChaosError."""
        toxic = Toxic(kind, attributes, stream, toxicity, name)
        self._call(lambda: self._proxy.add_toxic(toxic))
        return toxic.name

    def remove(self, name: str) -> None:
        """Remove a toxic. Raises ChaosError."""
        self._call(lambda: self._proxy.remove_toxic(name))

    def disable(self) -> None:
        """Stop listening, and drop the open connections."""
        self._run(self._proxy.update({"enabled": False}))

    def reset(self) -> None:
        """Listen again, without toxics."""
        self._call(self._proxy.remove_toxics)
        self._run(self._proxy.update({"enabled": True}))

    def _call(self, action: Callable[[], object]) -> None:
        async def call() -> None:
            action()

        self._run(call())


class ChaosServers(_LoopThread):
    """Starts fault proxies on demand, and stops them at exit: `with ChaosServers() as chaos: chaos.add(url)`."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self._proxies = ChaosProxies(seed)

    def add(self, upstream: str, listen: str = "127.0.0.1:0") -> ChaosServer:
        """Start a proxy to `host:port`, or to the host of a URL. Raises ChaosError and OSError."""
        parts = urlsplit(upstream)
        port = {"http": 80, "https": 443}.get(parts.scheme)
        address = f"{parts.netloc}" if parts.port or not port else f"{parts.netloc}:{port}"
        name = f"proxy-{len(list(self._proxies)) + 1}"
        proxy = self._run(self._proxies.add(name, address if parts.netloc else upstream, listen))
        return ChaosServer(proxy, upstream, self._run)

    async def _stop_all(self) -> None:
        await self._proxies.__aexit__(None, None, None)


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
