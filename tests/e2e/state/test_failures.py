"""What can happen to the store while the proxy serves: kills, full disks, locks, age; and who may look at its file."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import aiohttp
import openai
import pytest
from openai import AsyncOpenAI

from dragoman.contract.fakes import FakeProvider
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.proxy.cli import server_process
from dragoman.proxy.config.models import Config

from .conftest import Build, Place

SERVE = "from dragoman.proxy.cli.main import main; main()"


class Server:
    """`dragoman serve` in a process of its own."""

    def __init__(self, config: Path) -> None:
        command = [sys.executable, "-c", SERVE, "serve", "--config", str(config), "--log-level", "error"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        lines = [self.process.stderr.readline() for _ in range(4)]
        assert lines[0].startswith("dragoman listens on "), lines
        self.url = lines[0].split()[-1]
        self.greeting = lines[3]

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        self.process.communicate(timeout=30)
        return self.process.returncode


async def load(url: str, session: aiohttp.ClientSession, acknowledged: list[str], ended: asyncio.Event) -> None:
    """Ask for responses, whole and streamed in turn; note the ids of those that came to their end."""
    streamed = False
    while not ended.is_set():
        body = {"model": "m", "input": "hello", "stream": streamed}
        try:
            async with session.post(f"{url}/v1/responses", json=body) as response:
                assert response.status == 200
                if not streamed:
                    acknowledged.append((await response.json())["id"])
                async for line in response.content:
                    if line.startswith(b'data: {"type":"response.completed"'):
                        acknowledged.append(json.loads(line[6:])["response"]["id"])
        except (aiohttp.ClientError, ConnectionError):
            return  # the process is dead
        streamed = not streamed


async def test_a_killed_server_has_lost_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    """Two processes serve from one file; one is killed under load, again and again."""
    file, config = tmp_path / "state" / "responses.db", tmp_path / "dragoman.yaml"
    async with FakeProvider("openai") as fake:
        provider = f'{{dialect: openai, base_url: "{fake.base_url}"}}'
        store = "{path: state/responses.db}"
        config.write_text(
            f"server: {{port: 0}}\nstore: {store}\nproviders: {{p: {provider}}}\n"
            "models: {m: {targets: [{provider: p}]}}\n"
        )
        steady = await asyncio.to_thread(Server, config)
        assert steady.greeting == f"responses are stored for 30d in {file}\n"
        acknowledged: list[str] = []
        async with aiohttp.ClientSession() as session:
            for _ in range(5):
                victim, ended = await asyncio.to_thread(Server, config), asyncio.Event()
                loads = [
                    asyncio.create_task(load(url, session, acknowledged, ended))
                    for url in (victim.url, victim.url, victim.url, steady.url)
                ]
                await asyncio.sleep(random.uniform(0.1, 0.4))
                assert await asyncio.to_thread(victim.end, signal.SIGKILL) == -signal.SIGKILL
                ended.set()
                await asyncio.gather(*loads)
            assert len(acknowledged) == len(set(acknowledged)) > 20
            for response_id in acknowledged:
                async with session.get(f"{steady.url}/v1/responses/{response_id}") as response:
                    assert (response.status, (await response.json())["id"]) == (200, response_id)
            body = {"model": "m", "input": "more", "previous_response_id": acknowledged[0]}
            async with session.post(f"{steady.url}/v1/responses", json=body) as response:
                assert response.status == 200
        assert await asyncio.to_thread(steady.end, signal.SIGTERM) == 0
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_nobody_else_can_read_the_file(place_of: Build, tmp_path: Path) -> None:
    place = await place_of(store={"path": str(tmp_path / "deep" / "state" / "responses.db")})
    async with place.client() as client:
        await client.responses.create(model="openai", input="hello")
    folder = tmp_path / "deep" / "state"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = sorted(folder.iterdir())
    assert [file.name for file in files] == ["responses.db", "responses.db-shm", "responses.db-wal"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


async def full(place: Place, pages: int) -> None:
    """Let SQLite find no more room than that, or as much as ever for 0."""
    store = place.running._gateway.store
    pragma = f"PRAGMA max_page_count = {pages or 2**30}"
    await store._writer.run(lambda connection: connection.execute(pragma).fetchall())


@pytest.mark.parametrize("kind", ["openai", "native"])
async def test_a_full_disk_is_a_fault(place: Place, client: AsyncOpenAI, kind: str) -> None:
    await full(place, 1)
    large = "x" * 100 + random.Random(1).randbytes(40_000).hex()
    with pytest.raises(openai.InternalServerError) as caught:
        await client.responses.create(model=kind, input=large)
    assert (caught.value.code, caught.value.status_code) == ("store_failed", 500)
    assert "disk full" in caught.value.message
    assert "store: false" in caught.value.message
    assert "responses.db" not in str(caught.value.body)
    line = json.loads(place.log.getvalue().splitlines()[-1])
    assert line["cause"].startswith("StoreError: the store ")
    assert "responses.db" in line["cause"]

    found = []
    with pytest.raises(openai.APIError):
        async for event in await client.responses.create(model=kind, input=large, stream=True):
            found.append(event.type)
    assert "response.completed" not in found

    assert (await client.responses.create(model=kind, input=large, store=False)).output_text
    await full(place, 0)
    made = await client.responses.create(model=kind, input=large)
    assert (await client.responses.retrieve(made.id)).id == made.id


async def test_a_stream_that_has_begun_ends_in_a_failure_where_it_cannot_be_kept(place: Place) -> None:
    await full(place, 1)
    body = {"model": "openai", "input": f"fake:slow {random.Random(1).randbytes(40_000).hex()}", "stream": True}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{place.running.url}/v1/responses", json=body) as response,
    ):
        assert response.status == 200
        events = [json.loads(line[6:]) async for line in response.content if line.startswith(b"data: {")]
    assert [event["type"] for event in events[-2:]] == ["error", "response.failed"]
    assert events[-2]["error"]["code"] == "store_failed"
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


async def test_a_store_that_waits_holds_up_nobody_else(place: Place, client: AsyncOpenAI, tmp_path: Path) -> None:
    await client.responses.create(model="openai", input="hello")
    with closing(sqlite3.connect(tmp_path / "responses.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(client.responses.create(model="openai", input="hello"))
        await asyncio.sleep(0.2)
        for _ in range(5):
            messages: list[JsonObject] = [{"role": "user", "content": "hello"}]
            assert (await client.chat.completions.create(model="openai", messages=messages)).choices
        assert not waiting.done()
        other.execute("ROLLBACK")
    made = await waiting
    assert (await client.responses.retrieve(made.id)).id == made.id


async def test_what_is_too_old_is_gone(place_of: Build) -> None:
    place = await place_of(store={"kind": "memory", "retention": 1.5})
    async with place.client() as client:
        made = await client.responses.create(model="openai", input="hello")
        assert (await client.responses.retrieve(made.id)).id == made.id
        await asyncio.sleep(1.6)
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(made.id)
        with pytest.raises(openai.NotFoundError, match="too old"):
            await client.responses.create(model="openai", input="more", previous_response_id=made.id)


async def test_beyond_its_size_the_oldest_go(place_of: Build, tmp_path: Path) -> None:
    store = {"path": str(tmp_path / "small.db"), "max_size": 100_000, "max_response": 60_000}
    place = await place_of(store=store)
    async with place.client() as client:
        made = []
        for number in range(8):
            text = random.Random(number).randbytes(20_000).hex()
            made.append((await client.responses.create(model="openai", input=text)).id)
        kept = []
        for response_id in made:
            status, _ = await place.raw("GET", f"/v1/responses/{response_id}")
            kept.append(status == 200)
    assert kept == sorted(kept)
    assert 0 < sum(kept) < 8


@pytest.mark.parametrize("place_named", ["folder", "file/responses.db", "other.db", "noise.db"])
async def test_a_store_that_cannot_be_opened(
    tmp_path: Path, place_named: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "noise.db").write_bytes(b"no database" * 100)
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE mine (a)")
    path = tmp_path / place_named
    config = Config.from_values({"server": {"port": 0}, "store": {"path": str(path)}})
    assert await asyncio.to_thread(server_process.run, config) == 2
    told = capfd.readouterr().err
    assert told.startswith(f"error: the store {path}")
    assert "Set store.path to a file that can be written to, or set store.kind " in told


async def test_a_secret_in_a_failure_is_not_kept(place: Place, client: AsyncOpenAI) -> None:
    place.native.breaks = True
    place.native.complaint = "the key sk-upstream is not valid"
    found: list[JsonValue] = []
    with pytest.raises(openai.APIError):
        async for event in await client.responses.create(model="native", input="x", stream=True):
            found.append(event)
    again = await client.responses.retrieve(found[0].response.id)
    assert again.error is not None
    assert again.error.message == "the key *** is not valid"


HOSTILE = ("' OR 1=1--", "%", "resp_%", "..", "x" * 5000, "%00", "%ED%A0%80", "resp_1%2F..%2Fresp_2", "✓")


async def test_ids_of_all_kinds_are_only_unknown(place: Place, client: AsyncOpenAI) -> None:
    """No request goes upstream for an unknown response."""
    await client.responses.create(model="openai", input="hello")
    asked = len(place.fakes["openai"].requests)
    for response_id in HOSTILE:
        for method in ("GET", "DELETE"):
            status, body = await place.raw(method, f"/v1/responses/{response_id}")
            assert (status, body["error"]["type"]) == (404, "invalid_request_error"), (method, response_id, body)
    for response_id in ("", "resp_unknown", *HOSTILE):
        with pytest.raises(openai.NotFoundError) as caught:
            await client.responses.create(model="openai", input="x", previous_response_id=response_id)
        assert (caught.value.code, caught.value.param) == ("previous_response_not_found", "previous_response_id")
        assert caught.value.request_id
    assert len(place.fakes["openai"].requests) == asked
