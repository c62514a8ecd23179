"""Ten thousand exchanges with a browser that watches: the memory stays within what is configured."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import aiohttp
import pytest

from tests.resilience.serving_process import ServingProcess, configure, listen, serve

LIMIT = 16 * 1024 * 1024
COUNT = 10_000
QUESTION = [{"role": "user", "content": "why? " * 800}]
ANSWER = {
    "id": "a",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "so. " * 500}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A provider that answers every request of a connection."""
    body = json.dumps(ANSWER).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    try:
        while True:
            sent = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in sent.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.partition(b":")[2]))
            writer.write(head.encode() + body)
    except (asyncio.IncompleteReadError, ConnectionError):
        return  # the proxy has closed the connection


def read_memory(proxy: ServingProcess) -> int:
    """The bytes of the process in memory."""
    fields = Path(f"/proc/{proxy.process.pid}/status").read_text()
    return 1024 * int(fields.partition("VmRSS:")[2].split()[0])


async def follow(proxy: ServingProcess, seen: set[int]) -> None:
    """Read the live list."""
    async with proxy.session.get(f"{proxy.url}/page/api/events", timeout=aiohttp.ClientTimeout(None)) as feed:
        async for line in feed.content:
            if line.startswith(b'data: {"seq"'):
                seen.add(json.loads(line[6:])["seq"])


async def ask_many(proxy: ServingProcess, count: int) -> None:
    async def ask_some(number: int) -> None:
        for _ in range(number):
            status, _ = await proxy.ask(messages=QUESTION)
            assert status == 200

    await asyncio.gather(*(ask_some(count // 8) for _ in range(8)))


@pytest.mark.heavy
async def test_the_memory_for_exchanges_is_bounded(tmp_path: Path) -> None:
    seen: set[int] = set()
    async with listen(answer) as port:
        config = configure(port, server={"inspect": "bodies", "inspect_bytes": f"{LIMIT}B"})
        async with serve(tmp_path, config, "--log-level", "warning") as proxy:
            await ask_many(proxy, 80)
            before = read_memory(proxy)
            watching = asyncio.create_task(follow(proxy, seen))
            await ask_many(proxy, COUNT)
            grown = read_memory(proxy) - before
            async with proxy.session.get(f"{proxy.url}/page/api/exchanges?limit=1") as listed:
                buffer = (await listed.json())["buffer"]
            await asyncio.sleep(1)
            watching.cancel()
    assert buffer["bytes"] <= LIMIT
    assert buffer["exchanges"] + buffer["dropped"] == COUNT + 80
    assert buffer["dropped"] > COUNT / 2
    assert grown <= 1.5 * LIMIT, f"{grown / 1e6:.1f} MB"
    assert max(seen) == COUNT + 80
