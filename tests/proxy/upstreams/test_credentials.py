"""Keys in files that change while the proxy runs."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from dragoman.contract.json_types import JsonObject
from dragoman.proxy.config.keyfile import BadKeyFile
from dragoman.proxy.config.load import check_text
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import StartError, start
from dragoman.proxy.telemetry.recording import SentHead
from dragoman.proxy.upstreams import credentials
from dragoman.proxy.upstreams.credentials import KeyFile
from tests.proxy.running_proxy import StartProxy

REPLY = {"id": "x", "choices": [{"index": 0, "message": {"content": "hello"}, "finish_reason": "stop"}]}


class Picky:
    """A provider that takes one key."""

    def __init__(self) -> None:
        self.key = "canary-old"
        self.shown: list[str] = []
        self.port = 0

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        self.shown.append(request.headers.get("Authorization", "").removeprefix("Bearer "))
        await request.read()
        if self.shown[-1] != self.key:
            return web.json_response({"error": f"no: {self.shown[-1]}"}, status=401)
        return web.json_response(REPLY)


@pytest.fixture
async def picky() -> AsyncIterator[Picky]:
    made = Picky()
    server = web.Server(made, access_log=None)
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    made.port = listener.sockets[0].getsockname()[1]
    yield made
    listener.close()
    await server.shutdown(0.01)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    file = tmp_path / "key"
    file.write_text("canary-old\n")
    return file


def provider(picky: Picky, key: Path) -> JsonObject:
    return {"base_url": f"http://127.0.0.1:{picky.port}/v1", "api_key_file": str(key)}


async def settle(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - it may be about anything
            await asyncio.sleep(0.01)


async def test_a_changed_key_takes_effect_by_itself(
    proxy: StartProxy, picky: Picky, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "_CHECK_AFTER", 0.01)
    p = await proxy(provider(picky, key))
    assert (await p.ask()).status == 200
    key.write_text("canary-new-one")  # noqa: ASYNC240
    await asyncio.sleep(0.02)
    await p.ask()  # starts a look, perhaps with the old key
    picky.key = "canary-new-one"
    await asyncio.sleep(0.05)
    assert (await p.ask()).status == 200
    assert picky.shown[-1] == "canary-new-one"
    assert picky.shown.count("canary-old") <= 2


async def test_a_refused_key_is_looked_up_at_once(proxy: StartProxy, picky: Picky, key: Path) -> None:
    """As after a switch of a folder's link, which is how Kubernetes changes a secret."""
    p = await proxy(provider(picky, key))
    assert (await p.ask()).status == 200
    picky.key = "canary-new"
    (key.parent / "next").write_text("canary-new")
    os.replace(key.parent / "next", key)
    answers = await asyncio.gather(*(p.ask() for _ in range(5)))
    assert {answer.status for answer in answers} == {200}
    assert (await p.ask(stream=True)).status == 200


async def test_what_is_recorded_is_the_call_with_the_key_that_was_taken(
    proxy: StartProxy, picky: Picky, key: Path
) -> None:
    p = await proxy(provider(picky, key), server={"inspect": "bodies"})
    assert (await p.ask()).status == 200
    picky.key = "canary-new-and-long-enough"
    key.write_text(picky.key)  # noqa: ASYNC240
    assert (await p.ask()).status == 200
    recording = next(p.running.inspector.list_newest()).unfold_recording()
    assert recording is not None
    (call,) = recording.calls
    assert isinstance(call.request.head, SentHead)
    assert (call.request.head.credentials, call.secrets) == (
        b"Authorization: Bearer canary-new-and-long-enough\r\n",
        (b"canary-new-and-long-enough",),
    )
    assert len(call.request.chunks) == 1


async def test_without_another_key_the_refusal_counts(proxy: StartProxy, picky: Picky, key: Path) -> None:
    p = await proxy(provider(picky, key))
    picky.key = "other"
    answer = await p.ask()
    assert (answer.status, answer.error["type"]) == (502, "upstream_auth_failed")
    assert picky.shown == ["canary-old"]
    assert b"canary" not in answer.text + p.log.getvalue()


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (lambda key: key.unlink(), "No such file or directory"),
        (lambda key: key.write_text(""), "it is empty"),
        (lambda key: key.write_text("canary two words"), "a key is one line of visible ASCII"),
        (lambda key: key.write_bytes(b"x" * 70_000), "larger than 64 KiB"),
    ],
)
async def test_a_file_that_holds_no_key_any_more(
    proxy: StartProxy,
    picky: Picky,
    key: Path,
    monkeypatch: pytest.MonkeyPatch,
    harm: Callable[[Path], object],
    reason: str,
) -> None:
    monkeypatch.setattr(credentials, "_CHECK_AFTER", 0.01)
    p = await proxy(provider(picky, key))
    harm(key)
    for _ in range(4):
        await asyncio.sleep(0.03)
        assert (await p.ask()).status == 200
    told = [line for line in p.lines if line["event"] == "key_file"]
    assert len(told) == 1, "the same reason is told once"
    assert reason in told[0]["reason"]
    assert b"canary" not in p.log.getvalue()
    key.write_text("canary-back")  # noqa: ASYNC240
    picky.key = "canary-back"
    assert (await p.ask()).status == 200


async def test_looks_are_rare_and_off_the_loop(key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, looks = 1000.0, []
    monkeypatch.setattr(credentials, "monotonic", lambda: now)
    keys = KeyFile("p", {"api-key": "{}"}, key)
    there = asyncio.to_thread

    async def counted(*args: object) -> object:
        looks.append(now)
        return await there(*args)

    monkeypatch.setattr(asyncio, "to_thread", counted)
    for _ in range(100):
        assert keys.header_lines() == b"api-key: canary-old\r\n"
        await asyncio.sleep(0)
    assert looks == []
    now += 1.5
    keys.header_lines()
    await settle(lambda: keys._task is None)
    keys.header_lines()
    assert looks == [1001.5]
    await keys.close()


def test_there_has_to_be_a_key_to_begin_with(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        KeyFile("p", {}, tmp_path / "key")
    (tmp_path / "key").touch()
    with pytest.raises(BadKeyFile, match="empty"):
        KeyFile("p", {}, tmp_path / "key")


@pytest.mark.parametrize(("content", "said"), [(None, "cannot be read"), ("", "contains no key: it is empty")])
async def test_the_proxy_does_not_start_without(tmp_path: Path, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / "key").write_text(content)
    given = {"dialect": "openai", "base_url": "http://127.0.0.1/v1", "api_key_file": str(tmp_path / "key")}
    config = {"server": {"port": 0}, "providers": {"p": given}, "models": {"m": {"targets": [{"provider": "p"}]}}}
    with pytest.raises(StartError, match=said):
        await start(Config.from_values(config))


def test_paths_begin_at_the_configuration_files_folder(key: Path) -> None:
    lines = [
        "providers:",
        f'  p: {{dialect: openai, base_url: "https://h/v1", api_key_file: {key}}}',
        "models: {m: {targets: [{provider: p}]}}",
    ]
    checked = check_text("\n".join(lines), "a.yaml", {})
    assert checked.config.providers["p"].api_key_file == str(key)
    assert checked.warnings == (), "the path of a key file is no secret"


async def test_a_check_that_read_the_file_before_it_changed_is_not_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "key"
    path.write_text("canary-old")
    key = KeyFile("p", {"Authorization": "Bearer {}"}, path)
    read, has_read, goes_on = credentials._read_changed, threading.Event(), threading.Event()

    def read_slowly(*args: Any) -> Any:
        found = read(*args)
        has_read.set()
        goes_on.wait(10)
        return found

    monkeypatch.setattr(credentials, "_read_changed", read_slowly)
    monkeypatch.setattr(key, "_next", 0.0)
    refused = key.header_lines()
    assert await asyncio.to_thread(has_read.wait, 10)
    path.write_text("canary-new!")
    waiting = asyncio.create_task(key.replace_header_lines(refused))
    await asyncio.sleep(0.01)
    goes_on.set()
    assert await waiting == key.header_lines() != refused
    await key.close()
