"""Engine processes over tiny models."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

import aiohttp
import pytest
from process_rig import PLAIN_ENGINE, EngineProcess, Launch
from scheduler_rig import Folders


@pytest.fixture
async def launch(folders: Folders, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Launch]:
    """launch(*options, slow=seconds) is a plain engine process that is still loading its model."""
    started: list[EngineProcess] = []

    async def get(*options: str, slow: float = 0, model: str | None = None) -> EngineProcess:
        socket = tmp_path_factory.mktemp("s") / "engine.sock"
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(PLAIN_ENGINE), "--socket", str(socket), "--attached", "--threads", "1"),
            *("--model-dir", model or str(folders()), "--name", "tiny", "--device", "cpu", *options),
            stdin=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"SLOW": str(slow), "PYTHONPATH": ":".join(sys.path)},
        )
        connector = aiohttp.UnixConnector(str(socket), limit=0)
        started.append(EngineProcess(process, aiohttp.ClientSession(connector=connector), socket))
        return started[-1]

    yield get
    for engine in started:
        await engine.session.close()
        if engine.process.returncode is None:
            engine.process.kill()
        await engine.process.communicate()
