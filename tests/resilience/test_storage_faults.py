"""The file of stored responses is locked, full, deleted, replaced or damaged while the proxy serves: whatever needs no
store is served, and whatever cannot be stored or read is an error that says so. None of it outlasts its cause, if the
file is still there."""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from dragoman.contract.fakes import FakeProvider
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.proxy.conversations.stores import sqlite
from dragoman.proxy.conversations.stores.sqlite import SqliteStore
from dragoman.proxy.server.lifecycle import start

from .conftest import Pair, configure


@contextmanager
def lock(file: Path) -> Iterator[None]:
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    yield
    other.close()


@contextmanager
def delete(file: Path) -> Iterator[None]:
    for one in file.parent.glob(f"{file.name}*"):
        one.unlink()
    yield


@contextmanager
def delete_folder(file: Path) -> Iterator[None]:
    shutil.rmtree(file.parent)
    yield


@contextmanager
def replace(file: Path) -> Iterator[None]:
    copy = file.with_name("copy")
    shutil.copy(file, copy)
    copy.replace(file)
    yield


@dataclass(frozen=True)
class Fault:
    """What happens to the file, and the word that the client reads. Other processes' locks do not keep readers out."""

    begin: Callable[[Path], object]
    word: str
    reads: bool = False
    heals: bool = False


FAULTS = {
    "locked by another process": Fault(lock, "locked", reads=True, heals=True),
    "deleted": Fault(delete, "file gone"),
    "deleted with its folder": Fault(delete_folder, "file gone"),
    "replaced by a copy": Fault(replace, "file gone"),
}


@dataclass
class Served(Pair):
    """A proxy that stores responses in `file`."""

    file: Path

    async def send(self, method: str, path: str, body: JsonValue = None) -> tuple[int, bytes]:
        session = aiohttp.ClientSession(self.proxy.url)
        async with session, session.request(method, path, json=body) as answer:
            return answer.status, await answer.read()

    async def respond(self, **more: JsonValue) -> tuple[int, JsonObject]:
        status, body = await self.send("POST", "/v1/responses", {"model": "m", "input": "hello", **more})
        return status, json.loads(body)


@pytest.fixture
async def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    """Its store waits for a lock for 50 ms only."""
    monkeypatch.setattr(sqlite, "SqliteStore", ImpatientStore)
    file, log = tmp_path / "store" / "responses.db", io.BytesIO()
    async with FakeProvider("openai") as fake:
        config = configure(fake.base_url, store={"kind": "sqlite", "path": str(file)})
        proxy = await start(config, log_stream=log)
        yield Served(proxy, fake, log, file)
        await proxy.stop()


class ImpatientStore(SqliteStore):
    """It deletes no old responses by itself: that could find the fault before the first exchange does."""

    @classmethod
    async def open(cls, *args: object, **options: object) -> SqliteStore:
        store = await super().open(*args, **{**options, "lock_timeout": 0.05})
        assert store._sweeping is not None
        store._sweeping.cancel()
        return store


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", FAULTS)
async def test_a_fault_of_the_file(served: Served, name: str, stream: bool) -> None:
    fault = FAULTS[name]
    status, kept = await served.respond()
    assert status == 200
    with ExitStack() as stack:
        stack.enter_context(fault.begin(served.file))
        await check_what_needs_no_store(served)
        await check_what_is_stored(served, fault.word, stream=stream)
        await check_what_is_read(served, kept["id"], fault)
    if fault.heals:
        assert (await served.respond(previous_response_id=kept["id"]))[0] == 200
    assert served.tracebacks == []


async def check_what_needs_no_store(served: Served) -> None:
    assert await served.ask("hello") == 200
    assert await served.ask("hello", stream=True) == 200
    assert (await served.respond(store=False))[0] == 200


async def check_what_is_stored(served: Served, word: str, *, stream: bool) -> None:
    """No response is acknowledged that nobody can read later. Once that is known, no provider is paid for one."""
    asked = len(served.fake.requests)
    status, first = await served.send("POST", "/v1/responses", {"model": "m", "input": "hello", "stream": stream})
    assert status == (200 if stream else 500)
    assert b"response.completed" not in first
    assert b'"type":"response.failed"' in first or not stream
    assert len(served.fake.requests) == asked + 1
    for body in ({}, {"stream": True}):
        status, answer = await served.respond(**body)
        assert (status, answer["error"]["code"]) == (503, "store_failed")
        assert answer["error"]["message"].endswith(f"(send store: false to continue without storing it): {word}")
    assert word.encode() in first
    assert len(served.fake.requests) == asked + 1


async def test_a_response_that_was_paid_is_not_asked_for_again(served: Served) -> None:
    """Clients repeat requests that fail with 500 by themselves."""
    await served.respond()
    with lock(served.file):
        for expected in ((500, "false"), (503, None)):
            session = aiohttp.ClientSession(served.proxy.url)
            async with session, session.post("/v1/responses", json={"model": "m", "input": "hello"}) as answer:
                assert (answer.status, answer.headers.get("x-should-retry")) == expected


async def test_a_store_that_became_read_only(served: Served) -> None:
    store = served.proxy._gateway.store
    assert isinstance(store, SqliteStore)
    _, kept = await served.respond()
    await store._writer.run(lambda connection: connection.execute("PRAGMA query_only = ON"))
    await check_what_needs_no_store(served)
    await check_what_is_stored(served, "unusable path", stream=False)
    assert (await served.send("GET", f"/v1/responses/{kept['id']}"))[0] == 200
    await store._writer.run(lambda connection: connection.execute("PRAGMA query_only = OFF"))
    assert (await served.respond())[0] == 200


async def check_what_is_read(served: Served, response_id: str, fault: Fault) -> None:
    status, body = await served.send("GET", f"/v1/responses/{response_id}")
    assert status == (200 if fault.reads else 500)
    assert fault.reads or fault.word.encode() in body
    status, _ = await served.respond(previous_response_id=response_id, store=False)
    assert status == (200 if fault.reads else 500)


async def test_a_full_disk(served: Served) -> None:
    """Once there is room again, responses are stored again."""
    store = served.proxy._gateway.store
    assert isinstance(store, SqliteStore)
    status, kept = await served.respond()
    assert status == 200
    (pages,) = await store._writer.run(lambda connection: connection.execute("PRAGMA page_count").fetchone())
    await store._writer.run(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").fetchall())
    long = "".join(chr(0x4E00 + n * 7919 % 20_000) for n in range(60_000))  # it does not pack well
    for stream in (False, True):
        body = {"model": "m", "input": long, "stream": stream}
        status, answer = await served.send("POST", "/v1/responses", body)
        assert status == (200 if stream else 500)
        assert b"disk full" in answer
        assert b"response.completed" not in answer
    await check_what_needs_no_store(served)
    assert (await served.send("GET", f"/v1/responses/{kept['id']}"))[0] == 200
    await store._writer.run(lambda connection: connection.execute("PRAGMA max_page_count = 1000000").fetchall())
    assert (await served.respond(input=long))[0] == 200
