"""The file of stored responses when the process starts, and when its disk is full."""

# ruff: noqa: ASYNC240 - the files are small and nobody else waits

from __future__ import annotations

import asyncio
import json
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.contract.json_types import JsonObject, JsonValue
from tests.proxy.scripted_upstream import Upstream, http
from tests.resilience.serving_process import MAIN, ServingProcess, configure, listen, serve

MESSAGE = {"index": 0, "message": {"role": "assistant", "content": "x" * 50_000}, "finish_reason": "stop"}
REPLY = {"id": "c", "object": "chat.completion", "created": 1, "model": "up", "choices": [MESSAGE]}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "responses.db"


@pytest.fixture
async def config(file: Path) -> AsyncIterator[JsonObject]:
    async with listen(Upstream([http(json.dumps(REPLY).encode()), "keep"])) as port:
        yield configure(port, store={"kind": "sqlite", "path": str(file)})


def start_in_vain(folder: Path, config: JsonObject, prelude: str = "") -> str:
    """What a process prints that refuses to start. It runs the code `prelude` first."""
    (folder / "dragoman.yaml").write_text(json.dumps(config))
    command = [sys.executable, "-c", prelude + MAIN, "serve", "--config", str(folder / "dragoman.yaml"), "--port", "0"]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 2
    return done.stderr


async def ask(proxy: ServingProcess, **body: JsonValue) -> tuple[int, JsonObject]:
    payload = {"model": "m", "input": "hi", **body}
    async with proxy.session.post(f"{proxy.url}/v1/responses", json=payload) as response:
        answer: JsonObject = await response.json()
        return response.status, answer


async def make_store(tmp_path: Path, config: JsonObject) -> str:
    """Store one response; gives its id."""
    async with serve(tmp_path, config) as proxy:
        _, answer = await ask(proxy)
        proxy.send_signal(signal.SIGTERM)
        assert await proxy.wait() == 0
    response_id: str = answer["id"]
    return response_id


async def test_a_file_of_a_newer_version_is_refused_and_unchanged(
    tmp_path: Path, config: JsonObject, file: Path
) -> None:
    await make_store(tmp_path, config)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = file.read_bytes()
    text = await asyncio.to_thread(start_in_vain, tmp_path, config)
    assert f"error: the store {file} has format 99; this version of dragoman supports formats up to" in text
    assert "Use a newer dragoman, or name another path" in text
    assert file.read_bytes() == before


async def test_a_damaged_file_is_refused_and_unchanged(tmp_path: Path, config: JsonObject, file: Path) -> None:
    await make_store(tmp_path, config)
    content = file.read_bytes()
    damaged = content[:100] + b"\xa5" * (len(content) - 100)
    file.write_bytes(damaged)
    text = await asyncio.to_thread(start_in_vain, tmp_path, config)
    assert "the file is damaged; move it away to begin a new one" in text
    assert file.read_bytes() == damaged


DROP_CAPABILITIES = """
import ctypes
version, process = 0x20080522, 0  # capset(2)
ctypes.CDLL(None).capset((ctypes.c_uint32 * 2)(version, process), (ctypes.c_uint32 * 6)())
"""
"""Code after which the permissions of files hold for root too."""


@pytest.mark.parametrize("place", ["file", "folder"])
async def test_a_store_that_cannot_be_written_is_refused(
    tmp_path: Path, config: JsonObject, file: Path, place: str
) -> None:
    await make_store(tmp_path, config)
    content = file.read_bytes()
    read_only = file if place == "file" else file.parent
    mode = read_only.stat().st_mode
    await asyncio.to_thread(start_in_vain_with_mode, tmp_path, config, read_only)
    read_only.chmod(mode)
    assert file.read_bytes() == content
    async with serve(tmp_path, config) as proxy:
        assert (await ask(proxy))[0] == 200


def start_in_vain_with_mode(tmp_path: Path, config: JsonObject, read_only: Path) -> None:
    (tmp_path / "dragoman.yaml").write_text("")
    read_only.chmod(0o555 if read_only.is_dir() else 0o444)
    text = start_in_vain(tmp_path, config, DROP_CAPABILITIES)
    assert f"cannot be used: no permission to write to {read_only}" in text


async def test_a_full_disk_fails_only_what_has_to_be_stored(tmp_path: Path, config: JsonObject, file: Path) -> None:
    """A limit on the size of files stands for the disk: the system refuses to write beyond it."""
    async with serve(tmp_path, config) as proxy:
        status, kept = await ask(proxy)
        assert status == 200
        none = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(proxy.process.pid, resource.RLIMIT_FSIZE, (file.stat().st_size, resource.RLIM_INFINITY))
        for refused in (500, 503, 503):  # from the second one on, the provider is not asked
            status, answer = await ask(proxy)
            assert (status, answer["error"]["code"]) == (refused, "store_failed")
            assert (await ask(proxy, store=False))[0] == 200
            assert await proxy.get("/ready") == 200
        assert await proxy.get(f"/v1/responses/{kept['id']}") == 200
        resource.prlimit(proxy.process.pid, resource.RLIMIT_FSIZE, none)
        status, answer = await ask(proxy)
        assert status == 200
        assert await proxy.get(f"/v1/responses/{answer['id']}") == 200
