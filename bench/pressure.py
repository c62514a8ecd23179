"""A proxy under pressure, in a process of its own; the exit status is 1 if a figure is not what it has to be.

    python bench/pressure.py stall [--count 1000] [--most-mb 150]
    python bench/pressure.py outage [--seconds 60] [--rate 100]
    python bench/pressure.py hedge [--seconds 20] [--rate 50]

`stall` lets clients ask for streams and read nothing, while the upstream sends as fast as it can; it prints by how much
the proxy's memory grows, and that of the kernel for all TCP connections of the machine. `outage` sends requests at a
steady rate to a model with three targets that answer 503, and then recover; it prints how many calls the targets get
for each request, and how long the recovery takes. `hedge` sends requests to a model with two targets that answer after
20 ms, but three of a hundred times after 2 s; it prints the 99th percentile without hedging and with `hedge_after:
100ms`, and how many calls that costs. Everything runs on 127.0.0.1. Linux only. The last line is the figure.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import socket
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from _processes import free_port, run_process, wait_until_listening

__all__: list[str] = []

PAGE_MB = resource.getpagesize() / 1024**2
CHOICE = {"index": 0, "delta": {"content": "word " * 20}, "logprobs": None, "finish_reason": None}
CHUNK = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [CHOICE]}
EVENT = b"data: " + json.dumps(CHUNK).encode() + b"\n\n"
MESSAGE = {"index": 0, "message": {"role": "assistant", "content": "ok", "refusal": None}, "finish_reason": "stop"}
REPLY = json.dumps({"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [MESSAGE]}).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    stall = commands.add_parser("stall")
    stall.add_argument("--count", type=int, default=1000)
    stall.add_argument("--most-mb", type=float, default=150)
    outage = commands.add_parser("outage")
    outage.add_argument("--seconds", type=float, default=60)
    outage.add_argument("--rate", type=float, default=100, help="requests a second")
    hedge = commands.add_parser("hedge")
    hedge.add_argument("--seconds", type=float, default=20)
    hedge.add_argument("--rate", type=float, default=50, help="requests a second")
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with ExitStack() as stack:
        run = {"stall": run_stall, "outage": run_outage, "hedge": run_hedge}[options.command]
        sys.exit(0 if asyncio.run(run(options, stack)) else 1)


def start_proxy(stack: ExitStack, upstreams: list[int], **settings: str) -> tuple[int, int]:
    """Run dragoman with one model, which has these targets and settings; return its port and its process id."""
    folder, port = Path(stack.enter_context(tempfile.TemporaryDirectory())), free_port()
    pool = {"connections": 20_000}
    providers = {
        f"p{number}": {"dialect": "openai", "base_url": f"http://127.0.0.1:{upstream}/v1", "pool": pool}
        for number, upstream in enumerate(upstreams)
    }
    models = {"m": {"targets": [{"provider": name, "model": "up"} for name in providers], **settings}}
    config = {"server": {"port": port}, "store": {"kind": "none"}, "providers": providers, "models": models}
    (folder / "dragoman.yaml").write_text(json.dumps(config))
    command = [sys.executable, "-m", "dragoman", "serve", "--config", str(folder / "dragoman.yaml")]
    process = stack.enter_context(run_process(command, folder / "log"))
    if not wait_until_listening(port, process):
        sys.exit(f"dragoman does not serve:\n{(folder / 'log').read_text()[-2000:]}")
    return port, process.pid


def write_request(stream: bool) -> bytes:
    body = json.dumps({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "hi"}]}).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def measure_memory(pid: int) -> float:
    """The resident memory of a process in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_MB


def measure_kernel() -> float:
    """The memory of the kernel for all TCP connections of the machine in MB."""
    words = Path("/proc/net/sockstat").read_text().partition("TCP:")[2].split()
    return int(words[words.index("mem") + 1]) * PAGE_MB


async def read_request(reader: asyncio.StreamReader) -> bool:
    """Read one request; False at the end of the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]))
    except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):  # the last one at the end of the run
        return False
    return True


# Readers that stall


async def run_stall(options: argparse.Namespace, stack: ExitStack) -> bool:
    server = await asyncio.start_server(flood, "127.0.0.1", 0)
    port, pid = start_proxy(stack, [server.sockets[0].getsockname()[1]])
    before, kernel, clients = measure_memory(pid), measure_kernel(), []
    for number in range(options.count):
        client = stack.enter_context(socket.socket())
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", port))
        client.sendall(write_request(stream=True))
        clients.append(client)
        if number % 20 == 0:
            await asyncio.sleep(0.02)
    grown = 0.0
    for _ in range(16):
        await asyncio.sleep(1)
        grown = max(grown, measure_memory(pid) - before)
    kernel = measure_kernel() - kernel
    server.close()
    each = 1000 * grown / options.count
    print(f"{options.count} readers that stall: {grown:.0f} MB, {each:.0f} kB each; {kernel:.0f} MB in the kernel")
    return bool(grown <= options.most_mb)


async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send a stream of 30 MB as fast as it is taken."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # not the proxy's memory
    try:
        if await read_request(reader):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(2000):
                writer.write(b"%x\r\n%s\r\n" % (60 * len(EVENT), EVENT * 60))
                await writer.drain()
    except (ConnectionError, asyncio.CancelledError):
        pass
    finally:
        writer.close()


# Targets that fail


class FailingTargets:
    """Upstreams that answer 503 until they are `healed`, and count the calls until then."""

    def __init__(self) -> None:
        self.calls = 0
        self.healed = False

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await read_request(reader):
            self.calls += not self.healed
            status, body = ("200 OK", REPLY) if self.healed else ("503 Service Unavailable", b"{}")
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        writer.close()


async def run_outage(options: argparse.Namespace, stack: ExitStack) -> bool:
    targets = FailingTargets()
    servers = [await asyncio.start_server(targets.answer, "127.0.0.1", 0) for _ in range(3)]
    port, _ = start_proxy(stack, [server.sockets[0].getsockname()[1] for server in servers])
    statuses: list[tuple[float, int]] = []
    tasks = [
        asyncio.create_task(ask_at(port, time.monotonic() + number / options.rate, statuses))
        for number in range(int(options.seconds * options.rate))
    ]
    await asyncio.gather(*tasks)
    requests, calls, targets.healed = len(statuses), targets.calls, True
    healed_at = time.monotonic()
    after: list[tuple[float, int]] = []
    await asyncio.gather(*(ask_at(port, healed_at + number / options.rate, after) for number in range(300)))
    failed = [at for at, status in after if status != 200]
    recovery = max(failed) - healed_at if failed else 0.0
    for server in servers:
        server.close()
    print(f"{requests} requests in an outage: {calls / requests:.3f} calls for each, recovered after {recovery:.2f} s")
    return calls <= 1.1 * requests and recovery <= 2


# Targets that are slow now and then


class SlowTargets:
    """Upstreams that answer after 20 ms, but three of a hundred times after 2 s. Counts the calls, and those that the
    proxy has closed before the answer."""

    def __init__(self) -> None:
        self.calls = 0
        self.closed = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await read_request(reader):
            self.calls += 1
            if self.calls % 100 in (7, 41, 83):
                try:
                    await asyncio.wait_for(reader.read(1), 2)
                    self.closed += 1
                    break
                except TimeoutError:
                    pass  # the proxy still waits
            else:
                await asyncio.sleep(0.02)
            writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(REPLY)}\r\n\r\n".encode() + REPLY)
        writer.close()


async def run_hedge(options: argparse.Namespace, stack: ExitStack) -> bool:
    found, calls, closed = [], [], []
    count = int(options.seconds * options.rate)
    for settings in ({}, {"hedge_after": "100ms"}):
        targets = SlowTargets()
        servers = [await asyncio.start_server(targets.answer, "127.0.0.1", 0) for _ in range(2)]
        port, _ = start_proxy(stack, [server.sockets[0].getsockname()[1] for server in servers], **settings)
        start = time.monotonic()
        times = await asyncio.gather(*(time_at(port, start + number / options.rate) for number in range(count)))
        found.append(sorted(times)[int(0.99 * count)])
        calls.append(targets.calls / count)
        closed.append(targets.closed)
        for server in servers:
            server.close()
    print(f"{closed[1]} calls were closed because the other target had answered")
    text = f"99 % of {count} requests within {found[0]:.2f} s without hedging, {found[1]:.2f} s with it"
    print(f"{text}, for {calls[1]:.3f} calls each")
    return found[1] < found[0] / 4 and calls[1] <= 1.1 and closed[1] > 0


async def time_at(port: int, moment: float) -> float:
    """Send a request at this moment of the monotonic clock; return how long the answer took, in seconds."""
    statuses: list[tuple[float, int]] = []
    await ask_at(port, moment, statuses)
    return time.monotonic() - statuses[0][0]


async def ask_at(port: int, moment: float, statuses: list[tuple[float, int]]) -> None:
    """Send a request at this moment of the monotonic clock, and note when it was sent and its status."""
    await asyncio.sleep(moment - time.monotonic())
    sent = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(write_request(stream=False))
    statuses.append((sent, int((await reader.readline()).split()[1])))
    writer.close()


if __name__ == "__main__":
    main()
