"""The engine starts with the proxy, comes back when it dies, and stops with it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import ClientResponse

from dragoman.contract.json_types import JsonObject
from dragoman.proxy.server.lifecycle import StartError
from dragoman.proxy.upstreams.local import upstream
from dragoman.proxy.upstreams.supervision import supervisor
from dragoman.proxy.upstreams.supervision.process import ServerProcess
from tests.tables import sample_rows

from .conftest import Local, Serve


def lines(local: Local, event: str) -> list[JsonObject]:
    found = [json.loads(line) for line in local.log.getvalue().splitlines()]
    return [line for line in found if line["event"] == event]


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def environment_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


async def test_it_is_ready_when_the_proxy_listens(local: Serve) -> None:
    p = await local()
    async with p.ask(max_tokens=8) as answer:
        body = await answer.json()
    assert (answer.status, body["model"]) == (200, p.engine.health["model"])
    assert body["choices"][0]["message"]["content"]
    p.running.log_engines()
    (ready,) = lines(p, "engine_ready")
    assert (ready["provider"], ready["pid"], ready["device"]) == ("gpu", p.engine.pid, "cpu")


async def test_stopping_leaves_no_process_and_no_folder(local: Serve) -> None:
    p = await local(slow=0.02)
    pid, folder = p.engine.pid, p.engine.folder
    async with p.ask(stream=True) as answer:
        await answer.content.readany()
        await p.running.stop()
        assert b'"error"' in await answer.read()
    assert not lives(pid)
    assert not folder.exists()


async def test_killed_under_load(local: Serve) -> None:
    """Streams end with an error event, whole answers are asked for once more, the next request is answered."""
    p = await local(slow=0.02, slots=8)
    streams = [await p.ask(f"number {i}", stream=True).__aenter__() for i in range(4)]
    for answer in streams:
        assert b'"delta"' in await answer.content.readany()
    whole = asyncio.ensure_future(_whole(p.ask(max_tokens=20)))
    await asyncio.sleep(0.1)
    before = p.engine.pid
    os.kill(before, signal.SIGKILL)
    for answer in streams:
        *_, last = [part for part in (await answer.read()).split(b"\n\n") if part]
        error = json.loads(last.removeprefix(b"data: "))["error"]
        assert (error["type"], error["code"]) == ("server_error", "upstream_truncated")
    assert await _whole(p.ask("after", max_tokens=4)) == 200
    assert await whole == 200
    assert p.engine.pid != before and p.engine.restarts == 1
    (ended,) = lines(p, "engine_ended")
    assert ended["reason"] == "the process was killed by SIGKILL" and ended["restart_in"] == 0


async def test_a_request_that_finds_it_ended_is_answered_by_the_next_process(
    local: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although the end is noticed late, and although the streams that ended with it opened the breaker."""
    wait = ServerProcess.wait_for_end

    async def notice_late(process: ServerProcess) -> int:
        status = await wait(process)
        await asyncio.sleep(1.2)
        return status

    monkeypatch.setattr(ServerProcess, "wait_for_end", notice_late)
    p = await local(slow=0.02, slots=8)
    streams = [await p.ask(f"number {i}", stream=True).__aenter__() for i in range(6)]
    for answer in streams:
        assert b'"delta"' in await answer.content.readany()
    os.kill(p.engine.pid, signal.SIGKILL)
    for answer in streams:
        assert b"upstream_truncated" in await answer.read()
    assert not lines(p, "engine_ended")
    assert await _whole(p.ask("after", max_tokens=4)) == 200
    assert p.engine.restarts == 1


@pytest.mark.parametrize("how", ["a step", "all of it"])
async def test_one_that_hangs_is_ended_and_comes_back(local: Serve, how: str) -> None:
    """A step that does not end leaves HTTP answering; a stopped process answers nothing."""
    p = await local(slow=60 if how == "a step" else 0.02, step_timeout=1)
    answer = await p.ask(stream=True, max_tokens=100).__aenter__() if how != "a step" else None
    asked = asyncio.ensure_future(_whole(p.ask(max_tokens=4)))
    if answer is not None:
        assert b'"delta"' in await answer.content.readany()
        os.kill(p.engine.pid, signal.SIGSTOP)
    os.environ["SLOW"] = "0"
    assert await asked == 200
    if answer is not None:
        assert b"upstream_truncated" in await answer.read()
    (stuck,) = lines(p, "engine_stuck")
    assert stuck["reason"].endswith("the limit is 1 s" if how == "a step" else "no answer for 1 s")
    assert p.engine.restarts == 1


async def test_a_request_that_kills_it_every_time_is_answered_with_a_fault(
    local: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_PAUSES", (0.0, 0.05))
    p = await local()
    async with p.ask("die") as answer:
        error = (await answer.json())["error"]
    assert (answer.status, error["code"]) == (502, "upstream_disconnected")
    async with p.ask(max_tokens=4) as answer:
        assert answer.status == 200
    assert [line["reason"] for line in lines(p, "engine_ended")] == ["the process ended with status 7"] * 2


async def test_an_engine_that_does_not_come_back_is_a_fault_in_time(
    local: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(supervisor, "READY_TIMEOUT", 0.3)
    p = await local()
    command = (*upstream.COMMAND, "--model-dir", str(tmp_path / "gone"))
    p.engine.command = replace(p.engine.command, arguments=command)
    os.kill(p.engine.pid, signal.SIGKILL)
    async with p.ask() as answer:
        error = (await answer.json())["error"]
    assert (answer.status, error["code"], answer.headers["retry-after"]) == (503, "engine_down", "10")
    async with asyncio.timeout(30):
        while "does not exist" not in lines(p, "engine_ended")[-1]["reason"]:  # noqa: ASYNC110 - it comes in the log
            await asyncio.sleep(0.05)


async def test_a_model_that_cannot_be_served_stops_the_start(local: Serve, tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"the engine gpu cannot start: .*gone does not exist"):
        await local(model_dir=str(tmp_path / "gone"))


async def test_cuda_that_is_not_there_stops_the_start(local: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(StartError, match="the engine gpu cannot start: device is cuda, but"):
        await local(device="cuda")


async def test_what_it_says_is_in_the_log(local: Serve) -> None:
    p = await local()
    async with p.ask("defect", stream=True) as answer:
        assert b'"error"' in await answer.read()
    texts = [line["text"] for line in lines(p, "engine")]
    assert "RuntimeError: a defect" in texts
    assert {line["provider"] for line in lines(p, "engine")} == {"gpu"}


async def test_two_proxies_have_two_engines(local: Serve) -> None:
    first, second = await local(), await local()
    assert first.engine.socket != second.engine.socket
    await first.running.stop()
    assert await _whole(second.ask(max_tokens=4)) == 200


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
async def test_no_credential_reaches_it(local: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    p = await local()
    assert b"sk-canary" not in environment_of(p.engine.pid)
    assert b"GLIBC_TUNABLES=glibc.malloc.hugetlb=1" in environment_of(p.engine.pid)


async def test_a_socket_in_a_long_folder_has_a_short_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    monkeypatch.setattr(supervisor.tempfile, "tempdir", str(deep))
    folder = supervisor.create_private_folder()
    assert len(str(folder)) < 60 and folder.stat().st_mode & 0o777 == 0o700
    folder.rmdir()


@pytest.mark.parametrize("number", sample_rows([signal.SIGKILL, signal.SIGTERM, signal.SIGINT], 3))
def test_it_ends_with_the_proxy_however_that_ends(tiny: Path, tmp_path: Path, number: int) -> None:
    plain = Path(__file__).parents[3] / "local_engine" / "process" / "plain_engine.py"
    script = f"""
        import sys
        from dragoman.proxy.upstreams.local import upstream
        from dragoman.proxy.cli.main import app
        upstream.COMMAND = (sys.executable, {str(plain)!r})
        app(["serve", "--config", {str(tmp_path / "d.yaml")!r}, "--port", "0", "--log-format", "json"])
    """
    (tmp_path / "d.yaml").write_text(
        f"providers: {{gpu: {{engine: local, model_dir: {tiny}, device: cpu}}}}\n"
        "models: {m: {targets: [{provider: gpu}]}}\nstore: {kind: none}\nserver: {drain: {delay: 10ms}}\n"
    )
    proxy = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stderr=subprocess.PIPE)
    try:
        assert proxy.stderr is not None
        next(line for line in proxy.stderr if b"listens" in line)
        ready = next(line for line in proxy.stderr if b"engine_ready" in line)
        pid = json.loads(ready)["pid"]
        proxy.send_signal(number)
        proxy.wait(10)
    finally:
        proxy.kill()
        proxy.communicate()
    deadline = time.monotonic() + 5
    while lives(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not lives(pid)


def test_the_proxy_loads_no_runtime() -> None:
    script = "import sys, dragoman.proxy.server.lifecycle, dragoman.proxy.cli.main; print([m for m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    for name in ("onnxruntime", "numpy", "tokenizers", "jinja2", "llguidance", "dragoman.local_engine.engine"):
        assert f"'{name}'" not in loaded


async def _whole(asking: AbstractAsyncContextManager[ClientResponse]) -> int:
    async with asking as answer:
        await answer.read()
        return int(answer.status)
