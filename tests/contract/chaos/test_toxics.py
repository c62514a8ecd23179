"""What each toxic does to bytes, seen by both sides."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from dragoman.contract.chaos import ChaosError, ChaosProxy, Toxic, list_toxics, parse_toxic
from dragoman.contract.chaos.effects import EFFECTS
from dragoman.contract.chaos.toxics import TYPES

from .conftest import Connect, Peer

TEXT = bytes(range(256)) * 400
EVENTS = b"".join(b"data: " + json.dumps({"n": n}).encode() + b"\n\n" for n in range(5)) + b"data: [DONE]\n\n"


async def ask(connect: Connect, request: bytes = b"x") -> bytes:
    reader, writer = await connect()
    writer.write(request)
    return await reader.read()


async def wait_for_end(peer: Peer) -> str:
    async with asyncio.timeout(5):
        await peer.ended.wait()
    return peer.endings[0]


def test_every_type_has_an_effect() -> None:
    assert list(EFFECTS) == list(TYPES)
    assert [line.partition("(")[0] for line in list_toxics().splitlines()] == list(TYPES)


async def test_without_toxics_bytes_pass_as_they_are(connect: Connect, peer: Peer) -> None:
    peer.echo = True
    reader, writer = await connect()
    writer.write(TEXT)
    writer.write_eof()
    assert await reader.read() == TEXT
    assert peer.received == TEXT


async def test_a_client_that_half_closes_still_gets_its_answer(connect: Connect, peer: Peer) -> None:
    peer.answer = b"late"
    reader, writer = await connect()
    writer.write(b"all")
    writer.write_eof()
    assert await reader.read() == b"late"


async def test_a_reset_passes_on_as_a_reset(connect: Connect, peer: Peer) -> None:
    _, writer = await connect()
    writer.write(b"x")
    await asyncio.sleep(0.05)
    writer.get_extra_info("socket").setsockopt(1, 13, b"\1\0\0\0\0\0\0\0")
    writer.transport.abort()
    assert await wait_for_end(peer) == "reset"


@pytest.mark.parametrize(
    "toxic",
    [
        "latency(latency=30, jitter=20)",
        "bandwidth(rate=2000)",
        "bandwidth(rate=0)",
        "slow_close(delay=20)",
        "slicer(average_size=1000, size_variation=900, delay=10)",
        "corrupt_event",
        "interim_flood",
    ],
)
async def test_toxics_of_time_lose_no_byte(connect: Connect, peer: Peer, proxy: ChaosProxy, toxic: str) -> None:
    peer.answer = TEXT
    proxy.add_toxic(parse_toxic(toxic))
    assert await ask(connect) == TEXT


async def test_latency_waits_and_delays_a_burst_once(connect: Connect, peer: Peer, proxy: ChaosProxy) -> None:
    """Both directions: 10 pieces of 30 ms each, sent while the first one waits, take 30 ms, not 300."""
    peer.echo = True
    proxy.add_toxic(Toxic("latency", {"latency": 300}, "upstream"))
    proxy.add_toxic(Toxic("latency", {"latency": 300}))
    reader, writer = await connect()
    loop = asyncio.get_running_loop()
    started = loop.time()
    for _ in range(10):
        writer.write(b"x")
        await asyncio.sleep(0.02)
    assert await reader.readexactly(10) == b"x" * 10
    assert loop.time() - started >= 0.6


async def test_a_removed_toxic_lets_go_at_once(connect: Connect, peer: Peer, proxy: ChaosProxy) -> None:
    peer.answer = b"done"
    proxy.add_toxic(Toxic("latency", {"latency": 3_600_000}))
    reader, writer = await connect()
    writer.write(b"x")
    await asyncio.sleep(0.05)
    proxy.remove_toxics()
    async with asyncio.timeout(5):
        assert await reader.read() == b"done"


async def test_a_changed_toxic_works_on_open_connections(connect: Connect, peer: Peer, proxy: ChaosProxy) -> None:
    peer.echo = True
    reader, writer = await connect()
    writer.write(b"one")
    assert await reader.readexactly(3) == b"one"
    proxy.add_toxic(Toxic("limit_data", {"bytes": 1_000_000}))
    writer.write(b"two")
    assert await reader.readexactly(3) == b"two"
    proxy.update_toxic("limit_data_downstream", {"attributes": {"bytes": 2}})
    writer.write(b"three")
    assert await reader.read() == b"th"


async def test_slicer_cuts_bytes_into_small_pieces(connect: Connect, peer: Peer, proxy: ChaosProxy) -> None:
    peer.answer = b"0123456789" * 3
    proxy.add_toxic(parse_toxic("slicer(average_size=3, size_variation=2, delay=5000)"))
    reader, writer = await connect()
    writer.write(b"x")
    pieces = []
    while piece := await reader.read(100):
        pieces.append(piece)
    assert b"".join(pieces) == peer.answer
    assert len(pieces) > 3


@pytest.mark.parametrize("limit", [0, 1, 40_000, len(TEXT)])
async def test_limit_data_closes_after_that_many_bytes(
    connect: Connect, peer: Peer, proxy: ChaosProxy, limit: int
) -> None:
    peer.answer = TEXT
    proxy.add_toxic(Toxic("limit_data", {"bytes": limit}))
    assert await ask(connect) == TEXT[:limit]


async def test_limit_of_a_request(connect: Connect, peer: Peer, proxy: ChaosProxy) -> None:
    proxy.add_toxic(Toxic("limit_data", {"bytes": 5}, "upstream"))
    _, writer = await connect()
    writer.write(b"0123456789")
    await wait_for_end(peer)
    assert peer.received == b"01234"


async def test_timeout_drops_everything_then_closes(connect: Connect, peer: Peer, proxy: ChaosProxy) -> None:
    peer.answer = TEXT
    proxy.add_toxic(Toxic("timeout", {"timeout": 50}))
    assert await ask(connect) == b""


async def test_timeout_of_zero_waits_until_it_is_removed(connect: Connect, peer: Peer, proxy: ChaosProxy) -> None:
    peer.echo = True
    proxy.add_toxic(Toxic("timeout"))
    reader, writer = await connect()
    writer.write(b"x")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await reader.read()
    proxy.remove_toxic("timeout_downstream")
    async with asyncio.timeout(5):
        assert await reader.read() == b""


@pytest.mark.parametrize("delay", [0, 30])
async def test_reset_peer_resets_both_sides(connect: Connect, peer: Peer, proxy: ChaosProxy, delay: int) -> None:
    peer.echo = True
    proxy.add_toxic(Toxic("reset_peer", {"timeout": delay}))
    with pytest.raises(ConnectionResetError):
        await ask(connect)
    assert await wait_for_end(peer) == "reset"


@pytest.mark.parametrize("cut", range(0, len(EVENTS), 7))
@pytest.mark.parametrize("number", [0, 3])
async def test_corrupt_event_breaks_one_event_or_all(
    connect: Connect, peer: Peer, proxy: ChaosProxy, number: int, cut: int
) -> None:
    """However the network cuts the stream, lengths stay the same, and only JSON breaks."""
    peer.echo = True
    proxy.add_toxic(Toxic("corrupt_event", {"event": number}))
    reader, writer = await connect()
    writer.write(EVENTS[:cut])
    await writer.drain()
    await asyncio.sleep(0.01)
    writer.write(EVENTS[cut:])
    writer.write_eof()
    answer = await reader.read()
    assert len(answer) == len(EVENTS)
    broken = [event.startswith(b"data: }") for event in answer.split(b"\n\n")[:5]]
    assert broken == [number in (0, place) for place in range(1, 6)]
    assert answer.endswith(b"data: [DONE]\n\n")


async def test_interim_flood_precedes_the_response(connect: Connect, peer: Peer, proxy: ChaosProxy) -> None:
    peer.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    proxy.add_toxic(parse_toxic("interim_flood(count=250, status=103)"))
    answer = await ask(connect)
    assert answer.endswith(peer.answer)
    assert len(re.findall(rb"HTTP/1\.1 103 Interim\r\n\r\n", answer)) == 250


async def test_an_endless_flood_holds_the_answer_back_and_ends_with_the_client(
    connect: Connect, peer: Peer, proxy: ChaosProxy
) -> None:
    peer.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    proxy.add_toxic(parse_toxic("interim_flood(count=0)"))
    reader, writer = await connect()
    writer.write(b"x")
    assert b"200" not in await reader.readexactly(100_000)
    writer.close()
    await wait_for_end(peer)


async def test_half_head_sends_a_part_then_nothing_then_closes(connect: Connect, peer: Peer, proxy: ChaosProxy) -> None:
    peer.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    proxy.add_toxic(parse_toxic("half_head(bytes=10, timeout=50)"))
    assert await ask(connect) == b"HTTP/1.1 2"


@pytest.mark.parametrize("toxicity", [0.0, 0.5, 1.0])
async def test_toxicity_is_a_share_of_connections_that_follows_from_the_seed(peer: Peer, toxicity: float) -> None:
    peer.answer = b"answer"

    async def run() -> list[bytes]:
        async with ChaosProxy("p", f"127.0.0.1:{peer.port}", seed=3) as proxy:
            proxy.add_toxic(Toxic("limit_data", {"bytes": 3}, toxicity=toxicity))
            host, _, port = proxy.listen.rpartition(":")
            answers = []
            for _ in range(20):
                reader, writer = await asyncio.open_connection(host, int(port))
                writer.write(b"x")
                answers.append(await reader.read())
                writer.close()
        return answers

    first = await run()
    assert first == await run()
    assert {0.0: {b"answer"}, 0.5: {b"answer", b"ans"}, 1.0: {b"ans"}}[toxicity] == set(first)


async def test_back_pressure_reaches_the_sender(connect: Connect, peer: Peer, proxy: ChaosProxy) -> None:
    """A client that does not read makes the upstream wait, instead of filling the proxy's memory."""
    size = 64_000_000
    peer.answer = b"x" * size
    proxy.add_toxic(parse_toxic("latency(latency=1)"))
    reader, writer = await connect()
    writer.write(b"x")
    await asyncio.sleep(0.3)
    (connection,) = proxy._open
    pipe = connection._pipes["downstream"]
    held = pipe._queue.qsize() * 16384 + pipe._writer.transport.get_write_buffer_size()
    assert held < 1_000_000
    got = 0
    while piece := await reader.read(1 << 20):
        got += len(piece)
    assert got == size


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("laten(latency=1)", "similar: latency"),
        ("latency(delay=1)", "it has latency, jitter"),
        ("latency(latency=x)", "latency must be a number"),
        ("latency(latency=-1)", "whole number from 0"),
        ("latency(latency=1.5)", "whole number from 0"),
        ("latency(latency)", "name=value"),
        ("latency(latency=1", "write a toxic as"),
        ("latency(stream=sideways)", "either upstream or downstream"),
        ("latency(toxicity=2)", "from 0 to 1"),
        ("latency(toxicity=nan)", "from 0 to 1"),
        ("latency(latency=inf)", "whole number from 0"),
        ("slicer(average_size=3, size_variation=3)", "smaller than average_size"),
        ("interim_flood(status=200)", "from 100 to 199"),
    ],
)
def test_wrong_toxics_are_refused(text: str, problem: str) -> None:
    with pytest.raises(ChaosError, match=re.escape(problem)):
        parse_toxic(text)


def test_a_toxic_is_written_as_a_call() -> None:
    toxic = parse_toxic(" latency( latency=300, stream=upstream,toxicity=0.5, name=slow ) ")
    assert toxic == Toxic("latency", {"latency": 300, "jitter": 0}, "upstream", 0.5, "slow")
    assert parse_toxic("reset_peer") == Toxic("reset_peer")
