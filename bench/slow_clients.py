"""Slow clients, a thousand of each kind; the exit status is 1 if a figure of dragoman is not what it has to be.

    python bench/slow_clients.py [--server dragoman|nginx] [--count 1000] [--seconds 20] [head] [body] [read]

`head` sends a byte of a request's head each second, `body` ten bytes of its body, and `read` reads 1 kB of a stream
each second, which the upstream sends as fast as it can. Who is refused or cut off comes again. Once the buffers of the
streams are full, two neighbors ask for /live every 2 ms, and send small chat requests. For each kind, the last lines
say how much the memory of the server grows, and that of the kernel for all TCP connections, how long the neighbors
wait, compared with their waits without slow clients, and how much of a core it uses. Everything runs on 127.0.0.1.
Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from _processes import free_port, run_process, wait_until_listening
from pressure import REPLY, flood, measure_kernel, measure_memory, write_request

__all__: list[str] = []

HERE = Path(__file__).parent
TICKS = os.sysconf("SC_CLK_TCK")
WARM_UP = 3.0  # seconds in which the server loads what it needs
ALONE = 5.0  # seconds in which the neighbors are alone
SETTLED, MOST_SETTLING = 0.2, 60  # the share of a core that shows that buffers are full, and seconds
MOST_TIMES, MOST_MB = 2.0, 150.0
NGINX = """\
daemon off; master_process off; pid {folder}/nginx.pid; error_log /dev/null crit; worker_rlimit_nofile 20000;
events {{ worker_connections 8192; }}
http {{
  access_log off; client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder}; client_header_timeout 10s; client_body_timeout 30s;
  keepalive_requests 1000000;
  upstream provider {{ server 127.0.0.1:{upstream}; keepalive 64; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=1024;
    location = /live {{ return 200 "ok"; }}
    proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
    location / {{ proxy_pass http://provider; }}
  }}
}}
"""


@dataclass
class Figures:
    """Of one kind: MB of the server and of the kernel, milliseconds, and the share of a core."""

    grown: float
    kernel: float
    alone: dict[str, float]
    slow: dict[str, float]
    cpu: float

    @property
    def is_good(self) -> bool:
        return self.grown <= MOST_MB and all(self.slow[case] <= MOST_TIMES * self.alone[case] for case in self.slow)

    def describe(self, kind: str, count: int) -> str:
        waits = ", ".join(
            f"p99 of /{case} {self.slow[case]:.1f} ms (alone {self.alone[case]:.1f})" for case in self.slow
        )
        memory = f"{self.grown:.0f} MB, {self.kernel:.0f} MB in the kernel"
        return f"{kind}: {count} slow clients, {memory}, {waits}, {100 * self.cpu:.0f} % of a core"


def main() -> None:
    options = parse_arguments()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    found = {}
    for kind in options.kinds:
        with ExitStack() as stack:
            found[kind] = asyncio.run(measure(KINDS[kind], options, stack))
        print(f"... {found[kind].describe(kind, options.count)}", file=sys.stderr, flush=True)
    for kind, figures in found.items():
        print(figures.describe(kind, options.count))
    sys.exit(0 if options.server == "nginx" or all(figures.is_good for figures in found.values()) else 1)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", choices=("dragoman", "nginx"), default="dragoman")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("kinds", nargs="*", choices=("head", "body", "read", []), metavar="head|body|read")
    options = parser.parse_args()
    options.kinds = options.kinds or list(KINDS)
    return options


async def measure(behave: Behavior, options: argparse.Namespace, stack: ExitStack) -> Figures:
    port, pid = start_server(options.server, stack)
    await asyncio.to_thread(measure_waits, port, WARM_UP)
    alone = await asyncio.to_thread(measure_waits, port, ALONE)
    before, kernel, stop = measure_memory(pid), measure_kernel(), asyncio.Event()
    clients = [asyncio.create_task(be_slow(port, behave, number, stop)) for number in range(options.count)]
    grown = await settle(pid) - before
    cpu, began = read_cpu(pid), time.monotonic()
    waiting = asyncio.create_task(asyncio.to_thread(measure_waits, port, options.seconds))
    while not waiting.done():
        grown = max(grown, measure_memory(pid) - before)
        await asyncio.sleep(0.2)
    share = (read_cpu(pid) - cpu) / (time.monotonic() - began)
    kernel = measure_kernel() - kernel
    stop.set()
    await asyncio.gather(*clients)
    return Figures(grown, kernel, alone, await waiting, share)


async def settle(pid: int) -> float:
    """Wait until the clients are connected and the buffers of streams are full. Returns the most memory, in MB."""
    most, started = 0.0, time.monotonic()
    while True:
        cpu = read_cpu(pid)
        for _ in range(30):
            most = max(most, measure_memory(pid))
            await asyncio.sleep(0.1)
        if read_cpu(pid) - cpu < 3 * SETTLED or time.monotonic() > started + MOST_SETTLING:
            return most


# The server and its upstream


def start_server(server: str, stack: ExitStack) -> tuple[int, int]:
    """Run a server over the upstream; return its port and its process id."""
    folder, port, upstream = Path(stack.enter_context(tempfile.TemporaryDirectory())), free_port(), free_port()
    process = multiprocessing.get_context("spawn").Process(target=serve_upstream, args=(upstream,), daemon=True)
    process.start()
    stack.callback(process.terminate)
    wait_until_listening(upstream)
    command = write_nginx(folder, port, upstream) if server == "nginx" else write_dragoman(folder, port, upstream)
    running = stack.enter_context(run_process(command, folder / "log"))
    if not wait_until_listening(port, running):
        sys.exit(f"{server} does not serve:\n{(folder / 'log').read_text()[-2000:]}")
    return port, running.pid


def write_dragoman(folder: Path, port: int, upstream: int) -> list[str]:
    base = f"http://127.0.0.1:{upstream}/v1"
    config = {
        "server": {"port": port},
        "store": {"kind": "none"},
        "providers": {"p": {"dialect": "openai", "base_url": base, "pool": {"connections": 20_000}}},
        "models": {name: {"targets": [{"provider": "p", "model": "up"}]} for name in ("m", "neighbor")},
    }
    (folder / "dragoman.yaml").write_text(json.dumps(config))
    return [sys.executable, "-m", "dragoman", "serve", "--config", str(folder / "dragoman.yaml")]


def write_nginx(folder: Path, port: int, upstream: int) -> list[str]:
    nginx = shutil.which("nginx") or sys.exit("nginx is not installed: apt-get install nginx-light")
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port, upstream=upstream))
    return [nginx, "-p", str(folder), "-c", str(folder / "nginx.conf")]


def serve_upstream(port: int) -> None:
    """The upstream, in a process of its own: streams are sent as fast as they are taken."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(serve_forever(port))


async def serve_forever(port: int) -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
            body = await reader.readexactly(int(length))
            if json.loads(body).get("stream"):
                reader.feed_data(b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n")  # `flood` reads a request
                return await flood(reader, writer)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
            writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(REPLY), REPLY))
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def read_cpu(pid: int) -> float:
    """The processor time of a process in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


# The neighbors


def measure_waits(port: int, seconds: float) -> dict[str, float]:
    """The 99th percentile of the neighbors' waits, in milliseconds."""
    waits = {}
    with run_neighbor(port, "live", waits), run_neighbor(port, "chat", waits):
        time.sleep(seconds)
    return waits


@contextmanager
def run_neighbor(port: int, case: str, waits: dict[str, float]) -> Iterator[None]:
    command = [sys.executable, str(HERE / "_neighbor.py"), str(port), case]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield
        output, _ = process.communicate()
    took = [seconds for _, seconds in json.loads(output)]
    waits[case] = 1000 * statistics.quantiles(took, n=100)[98] if len(took) > 1 else float("inf")


# The slow clients

Behavior = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


async def be_slow(port: int, behave: Behavior, number: int, stop: asyncio.Event) -> None:
    """A client that connects again and again."""
    await asyncio.sleep(number % 100 / 50)
    while not stop.is_set():
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
            reader, writer = await asyncio.open_connection(sock=connection, limit=1024)
        except OSError:
            connection.close()
            await asyncio.sleep(0.1)
            continue
        acting, stopping = asyncio.ensure_future(behave(reader, writer)), asyncio.create_task(stop.wait())
        await asyncio.wait((acting, stopping), return_when=asyncio.FIRST_COMPLETED)
        for task in (acting, stopping):
            task.cancel()
        await asyncio.gather(acting, stopping, return_exceptions=True)
        writer.transport.abort()


async def send_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b"X-Slow: ")
    await drip(reader, writer, b"a")


async def send_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b'Content-Length: 1000000\r\n\r\n{"model":"')
    await drip(reader, writer, b"m" * 10)


async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes) -> None:
    """Write some bytes each second, until the server answers or closes."""
    answered = asyncio.create_task(reader.read(1))
    try:
        while not answered.done():
            writer.write(data)
            await asyncio.sleep(1)
    finally:
        answered.cancel()


async def read_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(write_request(stream=True))
    while await reader.read(1024):  # noqa: ASYNC110 - it is slow
        await asyncio.sleep(1)


KINDS: dict[str, Behavior] = {"head": send_head, "body": send_body, "read": read_stream}


if __name__ == "__main__":
    main()
