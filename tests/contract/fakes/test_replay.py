"""The fake provider that replays recordings."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest

from dragoman.contract.exchange import Chunk, Request, Response
from dragoman.contract.fakes import ReplayProvider
from dragoman.contract.masks import Mask
from dragoman.contract.recordings import RecordingTransport
from tests.contract.scripted import ScriptedTransport

HEADERS = (("content-type", "text/plain"),)


async def record(folder: Path, *responses: Response) -> None:
    transport = RecordingTransport(ScriptedTransport(*responses), folder, Mask())
    for _ in responses:
        await transport.send(Request("POST", "http://x/v1/chat", "/chat", {}, b'{"a": 1}'))


async def test_takes_are_replayed_in_order_and_the_last_one_repeats(
    tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    await record(tmp_path, *(Response(200, HEADERS, (Chunk(0.0, text),)) for text in (b"one", b"two")))
    async with ReplayProvider(tmp_path) as fake:
        replies = [await session.post(f"{fake.origin}/v1/chat", data=b'{"a":1}') for _ in range(3)]
        assert [await reply.text() for reply in replies] == ["one", "two", "two"]


async def test_broken_recording_breaks_the_reply(tmp_path: Path, session: aiohttp.ClientSession) -> None:
    await record(tmp_path, Response(200, HEADERS, (Chunk(0.0, b"half"),), broken="the connection broke"))
    async with ReplayProvider(tmp_path) as fake:
        reply = await session.post(f"{fake.origin}/chat", data=b'{"a": 1}')
        with pytest.raises(aiohttp.ClientPayloadError):
            await reply.read()


async def test_unrecorded_request_gets_404(tmp_path: Path, session: aiohttp.ClientSession) -> None:
    await record(tmp_path, Response(200, HEADERS, (Chunk(0.0, b"one"),)))
    async with ReplayProvider(tmp_path) as fake:
        reply = await session.post(f"{fake.origin}/chat", data=b'{"a": 2}')
        assert (reply.status, "no recording of POST /chat" in await reply.text()) == (404, True)


def test_folder_without_recordings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no recordings"):
        ReplayProvider(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"name": "package"}', '{"answer": {"status": 200, "headers": [], "chunks": []}}', "\xff"]
)
def test_folder_of_other_files_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "package.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"package\.json is not a recording"):
        ReplayProvider(tmp_path)
