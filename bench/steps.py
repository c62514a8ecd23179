"""Counts what dragoman does for one request or event: calls of functions, and the memory that is in use at most.

    python bench/steps.py [--check] [--write]

Unlike times, these counts are the same on any machine and under any load, so CI compares them: `--check` fails if a
case makes over 3 % more calls than `steps.json` says, `--write` replaces that file. A call of a Python function and one
of a function in C count alike. The proxy runs in this process; its client and its provider are threads, which are not
counted, and neither is the thread that saves responses. The provider sends an event when the client has got what the
one before became, so every event is a read of its own. The counts are medians.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import platform
import re
import socket
import statistics
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, NamedTuple

import uvloop
from _cases import CASES as REQUESTED
from _cases import Case as Requested
from _cases import build_request
from _upstream import PIECES, STREAM_HEAD, WHOLE

from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import start

__all__: list[str] = []

FILE = Path(__file__).with_name("steps.json")
TOLERANCE = 0.03
REQUESTS = 40
WARM_UP = 10
SETTLED = 0.004  # seconds in which the proxy does what follows an answer
LONGEST_TURN = 0.02  # seconds that the provider waits for the client; some events become nothing
_END = b"\r\n0\r\n\r\n"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class Case(NamedTuple):
    """`kind` is a case of the load generator, `dialect` the provider's, `client` the protocol if it is not the kind's,
    and `store` where responses are kept."""

    kind: str
    dialect: str
    client: str = ""
    store: str = "none"

    @property
    def is_stream(self) -> bool:
        return self.kind != "whole"

    @property
    def asked(self) -> Requested:
        """What the client asks for."""
        kind = REQUESTED[self.kind]
        return replace(kind, client=self.client or kind.client)


CASES = {
    "4 KB chat": Case("whole", "openai"),
    "4 KB chat to databricks": Case("whole", "databricks"),
    "event of a chat stream": Case("paced", "openai"),
    "event of a chat stream to databricks": Case("paced", "databricks"),
    "event of a Responses stream over chat": Case("responses", "openai"),
    "4 KB Responses over chat": Case("whole", "openai", "responses"),
    "4 KB Responses over chat, kept": Case("whole", "openai", "responses", "sqlite"),
}


class Count(NamedTuple):
    calls: int
    peak_kb: int


class Counter:
    """Counts the calls of the thread that it is installed in."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            self.calls += 1


class Provider:
    """Answers each connection in a thread of its own, until the process ends."""

    def __init__(self) -> None:
        self.turns = threading.Semaphore(0)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        for body in read_messages(connection.makefile("rb")):
            if b'"stream":true' not in body.replace(b" ", b""):
                connection.sendall(WHOLE)
                continue
            connection.sendall(STREAM_HEAD)
            for piece in PIECES:
                self.turns.acquire(timeout=LONGEST_TURN)
                connection.sendall(piece)


def read_messages(stream: io.BufferedReader) -> Iterator[bytes]:
    """The bodies of the messages of a connection."""
    while line := stream.readline():
        length = 0
        while line not in (b"\r\n", b""):
            found = _LENGTH.match(line)
            length = int(found[1]) if found else length
            line = stream.readline()
        yield stream.read(length)


def ask(port: int, case: Case, provider: Provider, look: Callable[[], None]) -> None:
    """Send requests one after the other, and call `look` before each, or before each event."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(10)
        request = build_request(port, case.asked)
        if case.is_stream:
            connection.sendall(request)
            tail = b""
            while (tail := (tail + connection.recv(65536))[-len(_END) :]) != _END:
                time.sleep(SETTLED / 4)
                look()
                provider.turns.release()
            return
        replies = read_messages(connection.makefile("rb"))
        for _ in range(WARM_UP + REQUESTS):
            connection.sendall(request)
            next(replies)
            time.sleep(SETTLED)
            look()


async def count_case(case: Case, provider: Provider) -> Count:
    """Run one case with counters, once for each of the two."""
    calls = await run_case(case, provider, Counter())
    tracemalloc.start()
    peaks = await run_case(case, provider, None)
    tracemalloc.stop()
    return Count(calls, peaks // 1024)


async def run_case(case: Case, provider: Provider, counter: Counter | None) -> int:
    """The median of what one request or event takes: calls with a counter, else bytes."""
    folder = TemporaryDirectory()
    running = await start(create_config(case, provider.port, folder.name), log_stream=io.BytesIO())
    seen: list[int] = []

    def look() -> None:
        if counter is not None:
            seen.append(counter.calls)
            return
        current, peak = tracemalloc.get_traced_memory()
        seen.append(peak - current)
        tracemalloc.reset_peak()

    sys.setprofile(counter)
    try:
        await asyncio.to_thread(ask, running.port, case, provider, look)
    finally:
        sys.setprofile(None)
        running.stop_now.set()
        await running.stop()
        folder.cleanup()
    kept = seen[WARM_UP:]
    counts = [after - before for before, after in pairwise(kept)] if counter is not None else kept
    return int(statistics.median(counts))


def create_config(case: Case, port: int, folder: str) -> Config:
    base = f"http://127.0.0.1:{port}" + ("" if case.dialect == "databricks" else "/v1")
    return Config.from_values(
        {
            "server": {"port": 0},
            "store": {"kind": case.store, "path": f"{folder}/responses.db" if case.store == "sqlite" else None},
            "providers": {"p": {"dialect": case.dialect, "base_url": base, "api_key": "bench"}},
            "models": {f"bench-{case.asked.workload}": {"targets": [{"provider": "p", "model": "up"}]}},
        }
    )


async def count_all() -> dict[str, Count]:
    provider = Provider()
    return {name: await count_case(case, provider) for name, case in CASES.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail if a case makes over 3 %% more calls")
    parser.add_argument("--write", action="store_true", help="write the counts to steps.json")
    options = parser.parse_args()
    found = uvloop.run(count_all())
    known = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    version = ".".join(platform.python_version_tuple()[:2])
    comparable = known.get("python") == version
    more = print_table(found, known.get("counts", {}) if comparable else {})
    if options.write:
        counts = {name: count._asdict() for name, count in found.items()}
        FILE.write_text(json.dumps({"python": version, "counts": counts}, indent=2) + "\n", "utf-8")
    if not comparable:
        print(f"steps.json has no counts of Python {version}: nothing is compared")
    if options.check and more:
        sys.exit(f"over 3 % more calls: {', '.join(more)}. If that is meant, run `python bench/steps.py --write`.")


def print_table(found: dict[str, Count], known: dict[str, dict[str, int]]) -> list[str]:
    """Print the counts, and return the cases that make more calls than is allowed."""
    more = []
    print(f"{'case':40} {'calls':>7} {'change':>8} {'peak kB':>8}")
    for name, count in found.items():
        before = known.get(name, {}).get("calls")
        change = count.calls / before - 1 if before else 0.0
        print(f"{name:40} {count.calls:7} {change:+8.1%} {count.peak_kb:8}")
        if change > TOLERANCE:
            more.append(name)
    return more


if __name__ == "__main__":
    main()
