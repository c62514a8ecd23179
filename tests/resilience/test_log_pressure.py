"""A log that cannot be written: a pipe that nobody reads, a closed one, a full disk. Every client gets its answer."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoman.contract.json_types import JsonObject
from tests.proxy.scripted_upstream import Upstream, http
from tests.resilience.serving_process import ServingProcess, configure, listen, serve

MESSAGE = {"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
REPLY = {"id": "c", "object": "chat.completion", "created": 1, "model": "up", "choices": [MESSAGE]}
LONG = "x" * 300
MANY = {f"unknown_{number}": LONG for number in range(300)}
"""Extra parameters, each of which the log line of its exchange names: 30 kB a line."""


@pytest.fixture
async def config() -> AsyncIterator[JsonObject]:
    async with listen(Upstream([http(json.dumps(REPLY).encode()), "keep"])) as port:
        yield configure(port, policy={"extra_parameters": "drop"})


async def assert_that_all_get_answers(proxy: ServingProcess, count: int, **body: str) -> None:
    answers = await asyncio.wait_for(asyncio.gather(*(proxy.ask(**body) for _ in range(count))), 60)
    assert {status for status, _ in answers} == {200}
    assert all(json.loads(text)["choices"][0]["message"]["content"] == "ok" for _, text in answers)
    assert await asyncio.wait_for(proxy.get("/live"), 5) == 200


def read_lines(data: bytes) -> list[JsonObject]:
    """The log's events, without the greeting."""
    return [json.loads(line) for line in data.splitlines() if line.startswith(b"{")]


async def test_a_pipe_that_nobody_reads_stops_nothing(tmp_path: Path, config: JsonObject) -> None:
    read, write = os.pipe()
    async with serve(tmp_path, config, stderr=write) as proxy:
        os.close(write)
        await assert_that_all_get_answers(proxy, 10, **MANY)  # more than the 64 kB of a pipe
        proxy.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(proxy.wait(), 5) == 0
    os.close(read)


async def test_what_a_full_queue_drops_is_counted_at_its_place(tmp_path: Path, config: JsonObject) -> None:
    read, write = os.pipe()
    async with serve(tmp_path, config, stderr=write) as proxy:
        os.close(write)
        await assert_that_all_get_answers(proxy, 200, **MANY)  # more than the queue
        reading = asyncio.create_task(asyncio.to_thread(_read_all, read))
        await asyncio.sleep(0.3)
        await assert_that_all_get_answers(proxy, 3)
        proxy.send_signal(signal.SIGTERM)
        assert await proxy.wait() == 0
        lines = read_lines(await reading)
    (place,) = (number for number, line in enumerate(lines) if line["event"] == "log_dropped")
    dropped = lines[place]["lines"]
    assert lines[place]["message"] == f"{dropped} lines were dropped"
    assert 0 < dropped < 200
    assert [line["event"] for line in lines] == ["exchange"] * (200 - dropped) + ["log_dropped"] + ["exchange"] * 3


def _read_all(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as pipe:
        return pipe.read()


async def test_a_closed_pipe_costs_no_client_its_answer(tmp_path: Path, config: JsonObject) -> None:
    read, write = os.pipe()
    async with serve(tmp_path, config, stderr=write) as proxy:
        os.close(write)
        os.close(read)
        await assert_that_all_get_answers(proxy, 40)
        proxy.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(proxy.wait(), 5) == 0


async def test_a_full_disk_costs_no_client_its_answer(tmp_path: Path, config: JsonObject) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    async with serve(tmp_path, config, stderr=full) as proxy:
        os.close(full)
        await assert_that_all_get_answers(proxy, 40)
        proxy.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(proxy.wait(), 5) == 0


async def test_everything_is_written_at_a_normal_exit(tmp_path: Path, config: JsonObject) -> None:
    async with serve(tmp_path, config) as proxy:
        await assert_that_all_get_answers(proxy, 40)
        proxy.send_signal(signal.SIGTERM)
        assert await proxy.wait() == 0
    lines = read_lines((tmp_path / "stderr.log").read_bytes())
    assert [line["event"] for line in lines] == ["exchange"] * 40
    assert [line["timestamp"] for line in lines] == sorted(line["timestamp"] for line in lines)


async def _wait_for(log: Path, text: bytes) -> None:
    for _ in range(1000):
        if text in await asyncio.to_thread(log.read_bytes):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"the log never says {text!r}")


async def test_sighup_reloads_and_sigpipe_does_nothing(tmp_path: Path, config: JsonObject) -> None:
    async with serve(tmp_path, config) as proxy:
        proxy.send_signal(signal.SIGHUP)
        proxy.send_signal(signal.SIGPIPE)
        await _wait_for(tmp_path / "stderr.log", b'"reloaded"')
        assert (await proxy.ask())[0] == 200
        proxy.send_signal(signal.SIGTERM)
        proxy.send_signal(signal.SIGHUP)
        assert await proxy.wait() == 0
    lines = read_lines((tmp_path / "stderr.log").read_bytes())
    assert sorted(line["event"] for line in lines) == ["exchange", "reloaded"]
    (line,) = (line for line in lines if line["event"] == "reloaded")
    assert (line["cause"], line["changes"]) == ("SIGHUP", [])
