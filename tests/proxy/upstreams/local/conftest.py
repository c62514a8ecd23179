"""A proxy whose provider is an engine process over a tiny model."""

from __future__ import annotations

import io
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import aiohttp
import pytest
from aiohttp import ClientResponse

from dragoman.contract.json_types import JsonValue
from dragoman.local_engine.export.decoder_graph import ExportOptions
from dragoman.local_engine.export.exporter import export_random_model
from dragoman.local_engine.export.spec import ModelSpec
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import RunningProxy, start
from dragoman.proxy.upstreams.local import upstream
from dragoman.proxy.upstreams.local.upstream import LocalUpstream
from dragoman.proxy.upstreams.supervision.supervisor import Supervisor

PLAIN = Path(__file__).parents[3] / "local_engine" / "process" / "plain_engine.py"
TINY = ModelSpec("llama", 64, 2, 4, 2, 16, 96, 272, 192, eos=(256,))


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    export_random_model(TINY, folder, ExportOptions("fp32", "gqa", 192), 12)
    return folder


@dataclass
class Local:
    running: RunningProxy
    session: aiohttp.ClientSession
    log: io.BytesIO

    @property
    def engine(self) -> Supervisor:
        (upstream,) = self.running.upstreams
        assert isinstance(upstream, LocalUpstream)
        return upstream.engine

    def ask(
        self, text: str = "Hi", path: str = "/v1/chat/completions", **more: JsonValue
    ) -> AbstractAsyncContextManager[ClientResponse]:
        body = {"model": "m", "messages": [{"role": "user", "content": text}], **more}
        return self.session.post(self.running.url + path, json=body)

    async def health(self) -> JsonValue:
        connector = aiohttp.UnixConnector(str(self.engine.socket))
        async with aiohttp.ClientSession(connector=connector) as session, session.get("http://e/health") as answer:
            return await answer.json()


Serve: TypeAlias = Callable[..., Awaitable[Local]]


@pytest.fixture
async def local(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Serve]:
    """local(slow=seconds, **settings of the provider) is a proxy with a plain engine process behind it."""
    monkeypatch.setattr(upstream, "COMMAND", (sys.executable, str(PLAIN)))
    monkeypatch.setenv("PYTHONPATH", ":".join(sys.path))
    started: list[Local] = []

    async def get(slow: float = 0, **settings: JsonValue) -> Local:
        monkeypatch.setenv("SLOW", str(slow))
        provider = {"engine": "local", "model_dir": str(tiny), "device": "cpu", "threads": 1, **settings}
        server = {"port": 0, "drain": {"delay": 0.01, "timeout": 0.1}}
        models = {"m": {"targets": [{"provider": "gpu"}]}}
        parts = {"server": server, "providers": {"gpu": provider}, "models": models, "store": {"kind": "none"}}
        log = io.BytesIO()
        running = await start(Config.from_values(parts), log_stream=log)
        started.append(Local(running, aiohttp.ClientSession(), log))
        return started[-1]

    yield get
    for one in started:
        await one.session.close()
        await one.running.stop()
