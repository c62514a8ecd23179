"""The load generator in Python, for machines without a C compiler. It does what `native/load.c` does, except for the
open loop and the judging of JSON. The options and the result are the same: `python _load.py PORT [options] < REQUEST`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
from pathlib import Path
from typing import Any, cast

import uvloop

__all__ = ["find_percentile", "join_chunks"]

_TOKEN = re.compile(rb"@(\d{3})([0-9a-f]{12})")
_MASK = (1 << 48) - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("port", type=int)
    for name, kind in (("connections", int), ("answers", int), ("events", int), ("seconds", float), ("spread", float)):
        parser.add_argument(f"--{name}", type=kind, default=kind(name in ("connections", "seconds")))
    parser.add_argument("--warm-up", type=float, default=0.0)
    parser.add_argument("--needle", type=str.encode, default=b"")
    parser.add_argument("--pid", type=int, action="append", default=[])
    print(json.dumps(uvloop.run(measure(parser.parse_args(), sys.stdin.buffer.read()))))


async def measure(options: argparse.Namespace, request: bytes) -> dict[str, Any]:
    """Measure as `native/load.c` does; the result has the same fields."""
    loop = asyncio.get_running_loop()
    tally = Tally()
    clients = []
    for _ in range(options.connections):
        made = await loop.create_connection(lambda: Client(request, options, tally), "127.0.0.1", options.port)
        clients.append(made[1])
        await asyncio.sleep(options.spread / options.connections)
    await asyncio.sleep(max(options.warm_up - options.spread, 0))
    tally.reset()
    before, started, own = [read_cpu_ns(pid) for pid in options.pid], time.perf_counter(), time.process_time_ns()
    if options.answers:
        await tally.wait_for(options.answers)
    else:
        await asyncio.sleep(options.seconds)
    spent = [read_cpu_ns(pid) - old for pid, old in zip(options.pid, before, strict=True)]
    result = {
        "seconds": time.perf_counter() - started,
        **{name: getattr(tally, name) for name in ("answers", "tokens", "errors", "error")},
        **describe_times(latency_ms=tally.latencies, first_token_ms=tally.first_tokens, delay_us=tally.delays),
        "cpu_ns": spent,
        "own_cpu_ns": time.process_time_ns() - own,
    }
    for client in clients:
        client.stop()
    return result


def describe_times(**samples: list[float]) -> dict[str, float | None]:
    return {f"{name}_p{p}": find_percentile(found, p) for name, found in samples.items() for p in (50, 99)}


def find_percentile(samples: list[float], percent: int) -> float | None:
    """The percentile by the nearest rank, None without samples."""
    rank = -(-len(samples) * percent // 100)
    return sorted(samples)[rank - 1] if samples else None


class Tally:
    """Counts the answers since the last reset."""

    def __init__(self) -> None:
        self.errors = 0
        self.error = ""
        self.most, self.came = 0, asyncio.Event()
        self.reset()

    def reset(self) -> None:
        self.answers = self.tokens = 0
        self.latencies: list[float] = []
        self.first_tokens: list[float] = []
        self.delays: list[float] = []

    def record_answer(self, milliseconds: float) -> None:
        self.answers += 1
        self.latencies.append(milliseconds)
        if self.answers == self.most:
            self.came.set()

    def record_error(self, what: str) -> None:
        self.errors += 1
        self.error = self.error or what
        self.came.set()

    async def wait_for(self, answers: int) -> None:
        """Wait for as many answers, or for a wrong one."""
        self.most = answers
        await self.came.wait()


class Client(asyncio.Protocol):
    """A connection that sends one request after the other. It stops at the first wrong answer."""

    def __init__(self, request: bytes, options: argparse.Namespace, tally: Tally) -> None:
        self.request, self.options, self.tally = request, options, tally
        self.stopped = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's transport does not derive from it
        self.send()

    def send(self) -> None:
        self.received = bytearray()
        self.end: int | None = None  # where the answer ends, once known; a chunked one ends with its last chunk
        self.body = self.tokens = 0
        self.sent_at = time.monotonic_ns()
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.count_tokens(data)
        if not self.body and not self.read_head():
            return
        if len(self.received) == self.end if self.end else self.received.endswith(b"\r\n0\r\n\r\n"):
            self.finish()

    def count_tokens(self, data: bytes) -> None:
        """Count the tokens in their order. The last events of some protocols repeat them."""
        now = time.monotonic_ns()
        for number, sent in _TOKEN.findall(data):
            if int(number) == self.tokens:
                if not self.tokens:
                    self.tally.first_tokens.append((now - self.sent_at) / 1e6)
                self.tokens += 1
                self.tally.tokens += 1
                self.tally.delays.append((now - int(sent, 16) & _MASK) / 1e3)

    def read_head(self) -> bool:
        self.body = self.received.find(b"\r\n\r\n") + 4
        if self.body == 3:
            self.body = 0
            return False
        for line in self.received[: self.body].lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                self.end = self.body + int(line[15:])
        return True

    def finish(self) -> None:
        self.tally.record_answer((time.monotonic_ns() - self.sent_at) / 1e6)
        body = bytes(self.received[self.body :])
        if error := self.find_error(body if self.end else join_chunks(body)):
            self.tally.record_error(error)
            self.stop()
        else:
            self.send()

    def find_error(self, body: bytes) -> str:
        """Say what is wrong with the answer, empty if nothing."""
        if not self.received.startswith(b"HTTP/1.1 200 "):
            return self.received[:600].decode(errors="replace")
        if self.options.needle not in body:
            return f"an answer that lacks its end: {body[-200:]!r}"
        if self.tokens != self.options.events:
            return f"a stream of {self.tokens} tokens, not {self.options.events}"
        return ""

    def stop(self) -> None:
        self.stopped = True
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.stopped:
            self.tally.record_error(f"the connection was closed: {exc or 'without an error'}")


def join_chunks(body: bytes) -> bytes:
    parts: list[bytes] = []
    at = 0
    while True:
        line = body.index(b"\r\n", at)
        size = int(body[at:line].partition(b";")[0], 16)
        if not size:
            return b"".join(parts)
        parts.append(body[line + 2 : line + 2 + size])
        at = line + 4 + size


def read_cpu_ns(pid: int) -> int:
    """Read the processor time of the process, its threads and its descendants so far, user and system."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
        total += sum(read_cpu_ns(int(child)) for child in (task / "children").read_text().split())
    return total


if __name__ == "__main__":
    main()
