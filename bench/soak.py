"""Long runs against a proxy in a process of its own; the exit status is 1 if a figure is not what it has to be.

    python bench/soak.py [--python PYTHON] streams [--count 2000] [--events 60] [--interval 1.0] [--most-kb 40]
    python bench/soak.py [--python PYTHON] vanish [--count 10000] [--at-once 100] [--seed 0]

`streams` opens that many paced streams at once, whose events are chained by a hash, and checks every event; it prints
the proxy's memory for each stream and its processor time for each event. `vanish` lets clients go at a random byte of
the request or of the response; it prints how long the longest upstream connection outlived its client, and how much
memory is left. Everything runs on 127.0.0.1. Linux only. The last line is the figure.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path

from _processes import free_port, run_process, wait_until_listening

sys.path.insert(0, str(Path(__file__).parents[1]))
from dragoman.contract.fakes import FakeProvider
from tests.resilience.paced import ChainedUpstream, follow_stream
from tests.resilience.vanishing import draw_vanishing, vanish

__all__: list[str] = []

_REST = 3.0  # seconds after which the proxy has given back what a busy time needed
_PAGE_KB = resource.getpagesize() // 1024
_TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    options = parse_arguments()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    run = soak_streams if options.command == "streams" else soak_vanishing
    raise SystemExit(0 if run(options) else 1)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the Python that runs dragoman, to compare checkouts")
    commands = parser.add_subparsers(dest="command", required=True)
    streams = commands.add_parser("streams")
    streams.add_argument("--count", type=int, default=2000)
    streams.add_argument("--events", type=int, default=60)
    streams.add_argument("--interval", type=float, default=1.0, help="seconds between two events of a stream")
    streams.add_argument("--most-kb", type=float, default=40.0, help="the memory that a stream may take")
    vanishing = commands.add_parser("vanish")
    vanishing.add_argument("--count", type=int, default=10_000)
    vanishing.add_argument("--at-once", type=int, default=100)
    vanishing.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


# The proxy


@contextmanager
def run_proxy(upstream: int, python: str) -> Iterator[tuple[int, int]]:
    """Run dragoman over an upstream; yield its port and its process id."""
    pool = {"connections": 20_000}
    provider = {"dialect": "openai", "base_url": f"http://127.0.0.1:{upstream}/v1", "pool": pool}
    config = {
        "server": {"port": (port := free_port()), "drain": {"delay": "100ms", "timeout": "1s"}},
        "store": {"kind": "none"},
        "providers": {"p": {**provider, "protocols": ["chat", "completions"]}},
        "models": {"m": {"targets": [{"provider": "p", "model": "up"}]}},
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "dragoman.json"
        file.write_text(json.dumps(config), "utf-8")
        code = "from dragoman.proxy.cli.main import main; main()"
        with run_process([python, "-c", code, "serve", "--config", str(file)], Path(folder) / "log") as process:
            if not wait_until_listening(port, process):
                raise SystemExit((Path(folder) / "log").read_text("utf-8", "replace"))
            yield port, process.pid


def read_memory(pid: int) -> int:
    """The resident memory of a process in kB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_KB


def read_cpu(pid: int) -> float:
    """The processor time of a process in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


async def watch_lag(stop: asyncio.Event, port: int) -> float:
    """Ask for /live every 50 ms; the longest answer in seconds."""
    longest = 0.0
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while not stop.is_set():
        started = time.monotonic()
        writer.write(b"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]))
        longest = max(longest, time.monotonic() - started)
        await asyncio.sleep(0.05)
    writer.close()
    return longest


# Streams


def serve_chains(port: int, events: int, interval: float) -> None:
    """The upstream, in a process of its own."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    async def serve() -> None:
        server = await ChainedUpstream(events, interval).start(port)
        await server.serve_forever()

    asyncio.run(serve())


def soak_streams(options: argparse.Namespace) -> bool:
    port = free_port()
    upstream = multiprocessing.get_context("spawn").Process(
        target=serve_chains, args=(port, options.events, options.interval), daemon=True
    )
    upstream.start()
    try:
        wait_until_listening(port)
        with run_proxy(port, options.python) as (proxy_port, pid):
            return asyncio.run(follow_all(proxy_port, pid, options))
    finally:
        upstream.terminate()


async def follow_all(port: int, pid: int, options: argparse.Namespace) -> bool:
    await asyncio.gather(*(follow_stream(port, f"warm-{n}", options.events) for n in range(20)))
    idle, cpu, stop = read_memory(pid), read_cpu(pid), asyncio.Event()
    lag = asyncio.create_task(watch_lag(stop, port))
    streams = [asyncio.create_task(start_later(n, port, options)) for n in range(options.count)]
    peak = idle
    while not all(stream.done() for stream in streams):
        peak = max(peak, read_memory(pid))
        await asyncio.sleep(0.2)
    stop.set()
    wrong = [problem for problem in await asyncio.gather(*streams) if problem]
    each, event = (peak - idle) / options.count, (read_cpu(pid) - cpu) / (options.count * options.events)
    print(*wrong[:10], sep="\n")
    print(f"slowest /live meanwhile: {await lag * 1000:.0f} ms")
    print(
        f"{options.count} streams of {options.events} events: {len(wrong)} wrong, {each:.1f} kB a stream,"
        f" {event * 1e6:.0f} µs of CPU an event"
    )
    return not wrong and each <= options.most_kb


async def start_later(number: int, port: int, options: argparse.Namespace) -> str:
    """Start the streams within five seconds, so that their events are spread as those of real clients are."""
    await asyncio.sleep(number * 5 / options.count)
    return await follow_stream(port, f"stream-{number}", options.events)


# Vanishing clients


def serve_fake(port: int, stop: Event, results: multiprocessing.SimpleQueue[tuple[int, int]]) -> None:
    """The upstream, in a process of its own: on each `stop` it says how many requests it still answers."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    async def serve() -> None:
        async with FakeProvider("openai", port=port) as fake:
            while True:
                await asyncio.sleep(0.01)
                if stop.is_set():
                    stop.clear()
                    results.put((len(fake._tasks), fake._number))
                    fake.requests.clear()

    asyncio.run(serve())


def soak_vanishing(options: argparse.Namespace) -> bool:
    context, port = multiprocessing.get_context("spawn"), free_port()
    stop, results = context.Event(), context.SimpleQueue()
    upstream = context.Process(target=serve_fake, args=(port, stop, results), daemon=True)
    upstream.start()

    def count_answering() -> tuple[int, int]:
        stop.set()
        return results.get()

    try:
        wait_until_listening(port)
        with run_proxy(port, options.python) as (proxy_port, pid):
            chance = random.Random(options.seed)
            asyncio.run(send_away(proxy_port, chance, options.count * 6 // 10, options.at_once))  # fills the allocator
            wait_until_none(count_answering)
            time.sleep(_REST)
            before, longest, left = read_memory(pid), 0.0, options.count
            while left > 0:
                asyncio.run(send_away(proxy_port, chance, min(options.at_once, left), options.at_once))
                longest = max(longest, wait_until_none(count_answering))
                left -= options.at_once
            time.sleep(_REST)
            after, (_, asked) = read_memory(pid), count_answering()
            open_files = len(os.listdir(f"/proc/{pid}/fd"))
    finally:
        upstream.terminate()
    grown = (after - before) / before * 100
    print(
        f"{options.count} clients vanished, {asked} requests had been sent on: the last upstream closed after"
        f" {longest:.2f} s, {open_files} files open, memory {before} kB before, {after} kB after ({grown:+.1f} %)"
    )
    return longest <= 1.0 and grown <= 5.0


async def send_away(port: int, chance: random.Random, count: int, at_once: int) -> None:
    busy = asyncio.Semaphore(at_once)

    async def one() -> None:
        plan = draw_vanishing(chance)
        async with busy:
            await vanish(port, plan)

    await asyncio.gather(*(one() for _ in range(count)))


def wait_until_none(count_answering: object) -> float:
    """Wait until the upstream answers no request; how long that took in seconds, at most 30."""
    assert callable(count_answering)
    started = time.monotonic()
    while count_answering()[0] and time.monotonic() < started + 30:
        time.sleep(0.01)
    return time.monotonic() - started


if __name__ == "__main__":
    main()
