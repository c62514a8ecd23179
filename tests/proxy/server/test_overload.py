"""What the proxy refuses when it has too much to do, and what it goes on with."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from dragoman.proxy.config.models import ServerLimits
from dragoman.proxy.server import overload
from dragoman.proxy.server.overload import OverloadGuard, measure_memory, read_memory_limit
from tests.proxy.running_proxy import Proxy, StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Upstream, Wire

KEYS = [{"name": "batch", "key": "batch-key-0123456789", "priority": "low"}, {"name": "chat", "key": "chat-key-01234"}]


async def wait_for_requests(up: Upstream, count: int) -> None:
    for _ in range(500):
        if len(up.requests) >= count:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{len(up.requests)} requests came, not {count}")


async def test_beyond_the_limit_new_requests_are_refused_and_running_ones_go_on(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    go_on = asyncio.Event()
    up = await upstream(wire.stream[:-80], go_on, wire.stream[-80:])
    p = await proxy(up, server={"limits": {"in_flight": 2}})
    running = [asyncio.create_task(p.ask(stream=True)) for _ in range(2)]
    await wait_for_requests(up, 2)
    answer = await p.ask()
    assert (answer.status, answer.error["code"], answer.headers["retry-after"]) == (503, "overloaded", "1")
    assert "2 requests are being served (server.limits)" in answer.error["message"]
    async with p.session.get(f"{p.running.url}/ready") as health:
        assert health.status == 200
    go_on.set()
    assert [(await task).events[-1] for task in running] == ["[DONE]"] * 2
    up.script = [wire.ok]
    assert (await p.ask()).status == 200


async def ask_as(p: Proxy, key: str) -> int:
    return (await p.ask(headers={"Authorization": f"Bearer {key}"})).status


async def test_keys_that_can_wait_are_refused_first(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    up = await upstream("hang")
    p = await proxy(up, server={"limits": {"in_flight": 5}}, keys=KEYS)
    chat = {"Authorization": "Bearer chat-key-01234"}
    running = [asyncio.create_task(p.ask(headers=chat)) for _ in range(4)]
    await wait_for_requests(up, 4)
    up.script = [wire.ok]
    assert (await ask_as(p, "batch-key-0123456789"), await ask_as(p, "chat-key-01234")) == (503, 200)
    assert await ask_as(p, "unknown") == 401
    for task in running:
        task.cancel()


async def test_a_connection_too_many_is_answered_and_closed(proxy: StartProxy, upstream: StartUpstream) -> None:
    p = await proxy(await upstream("hang"), server={"limits": {"connections": 2}})
    kept = [await asyncio.open_connection("127.0.0.1", p.port) for _ in range(2)]
    await asyncio.sleep(0.05)
    answer = await p.raw(b"")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert b"Connection: close" in head
    assert json.loads(body)["error"]["code"] == "overloaded"
    for _, writer in kept:
        writer.close()
    await asyncio.sleep(0.05)
    async with p.session.get(f"{p.running.url}/live") as health:
        assert health.status == 200


@pytest.mark.parametrize(
    ("in_flight", "memory", "pressure"),
    [
        (0, 0, "none"),
        (79, 0, "none"),
        (80, 0, "high"),
        (100, 0, "full"),
        (0, 799, "none"),
        (0, 800, "high"),
        (0, 1000, "full"),
    ],
)
def test_pressure(in_flight: int, memory: int, pressure: str) -> None:
    guard = OverloadGuard(ServerLimits(in_flight=100, memory=1000))
    guard.memory = memory
    assert guard.judge(in_flight) == pressure


async def test_a_late_loop_is_not_ready(
    proxy: StartProxy, upstream: StartUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    p = await proxy(await upstream("hang"))
    monkeypatch.setattr(overload, "_LATE", -1.0)  # every tick comes late,
    monkeypatch.setattr(overload, "_LONG", 0.2)  # and soon for long enough
    for path, status in (("live", 200), ("ready", 503)):
        for _ in range(200):
            async with p.session.get(f"{p.running.url}/{path}") as health:
                found, body = health.status, await health.json()
            if found == status:
                break
            await asyncio.sleep(0.02)
        assert (found, body["status"]) == (status, "ok" if status == 200 else "late")


def test_the_memory_of_this_process_is_measured() -> None:
    assert measure_memory() > 10_000_000


@pytest.mark.parametrize(
    ("own", "limits", "expected"),
    [
        ("0::/\n", {"": "1000"}, 900),
        ("0::/\n", {"": "max"}, 0),
        ("0::/\n", {}, 0),
        ("0::/system.slice/dragoman.service\n", {"system.slice/dragoman.service": "1000"}, 900),
        ("0::/system.slice/dragoman.service\n", {"system.slice/dragoman.service": "max", "system.slice": "2000"}, 1800),
        ("0::/a/b\n", {"a/b": "3000", "a": "2000", "": "4000"}, 1800),
        ("0::/../elsewhere\n", {"": "1000"}, 900),
        ("4:memory:/a\n1:cpu:/a\n", {"": "1000"}, 900),
        (None, {"": "1000"}, 900),
    ],
    ids=("container", "no limit", "no file", "service", "slice", "lowest", "outside", "version 1", "unknown"),
)
def test_the_limit_is_that_of_the_container_or_of_the_service(
    own: str | None, limits: dict[str, str], expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for group, limit in limits.items():
        folder = tmp_path / "groups" / group
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "memory.max").write_text(f"{limit}\n")
    if own is not None:
        (tmp_path / "own").write_text(own)
    monkeypatch.setattr(overload, "_CGROUPS", tmp_path / "groups")
    monkeypatch.setattr(overload, "_OWN_CGROUP", tmp_path / "own")
    assert read_memory_limit() == expected
