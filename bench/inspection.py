"""What it costs to keep exchanges for the page: the processor time of each way, compared with keeping nothing.

    python bench/inspection.py [--seconds 0.5] [--rounds 21] [--cases CASE ...]

`nothing` listens where no page can be served; `off`, `heads` and `bodies` are values of server.inspect; `watched` is
`bodies` with a browser that follows the live list. Two processes that do the same may differ by a tenth, because their
memory lies elsewhere. So every round starts two, one for `nothing` and one that changes from each way to the next when
its configuration is reloaded. Before each measurement the buffer is filled: while it grows, the system's work for new
memory comes on top. Each case is measured in all ways, and once more in reverse order, so that what drifts in a round
counts for all. The processor times of a round give one ratio. The median of these is compared with the goal, by its
interval of 95 %; the last line says whether all goals are met. Everything runs on 127.0.0.1. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from urllib.request import urlopen

from _cases import CASES
from _intervals import estimate_median
from _processes import REALTIME, free_port, run_first, run_process, wait_until_listening
from _rows import Row, dragoman_config, measure_case, run_provider, send_requests, split_cores

__all__: list[str] = []

WAYS = {
    "nothing": ("0.0.0.0", "off"),
    "off": ("127.0.0.1", "off"),
    "heads": ("127.0.0.1", "heads"),
    "bodies": ("127.0.0.1", "bodies"),
    "watched": ("127.0.0.1", "bodies"),
}
COMPARED = {"off": "nothing", "heads": "off", "bodies": "off", "watched": "off"}
GOALS = {"off": 1.02, "bodies": 1.10, "watched": 1.10}
"""The most processor time, in multiples of that of the way that it is compared with."""

FILLING = 8_000  # requests that fill 64 MiB, after which memory is used again
LISTING = 1_500  # requests that fill a list without recordings
RELOAD = 10.0  # seconds that it may take


def main() -> None:
    options = parse_arguments()
    cores = split_cores()
    os.sched_setaffinity(0, cores.load)
    if options.realtime:
        run_first()
    rows = {name: Row(name, cases=tuple(options.cases)) for name in WAYS}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        upstream, _ = stack.enter_context(run_provider(cores))
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds} ...", file=sys.stderr, flush=True)
            first = number % len(rows)
            ordered = [*rows.values()]
            run_round(ordered[first:] + ordered[:first], folder, upstream, options.seconds, cores.proxy)
    verdicts = [verdict for case in options.cases for verdict in report(rows, case)]
    print(f"\n{write_conclusion(verdicts)}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=0.5, help="length of one measurement (default 0.5)")
    parser.add_argument("--rounds", type=int, default=21, help="pairs of measurements of each case (default 21)")
    parser.add_argument("--realtime", action="store_true", help=REALTIME)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=["whole", "paced", "burst"])
    return parser.parse_args()


def run_round(rows: list[Row], folder: Path, upstream: int, seconds: float, cores: set[int]) -> None:
    with ExitStack() as stack:
        proxies = {host: Proxy(host, stack, folder, upstream, cores) for host in {host for host, _ in WAYS.values()}}
        for case in rows[0].cases:
            for row in (*rows, *reversed(rows)):
                host, inspect = WAYS[row.name]
                proxy = proxies[host]
                proxy.inspect(inspect)
                row.port, row.process = proxy.port, proxy.process
                with watch(proxy.port) if row.name == "watched" else nullcontext():
                    send_requests(row, LISTING if inspect == "off" else FILLING)
                    measure_case(row, case, seconds)


class Proxy:
    """A process that serves, with `server.inspect: off` at first."""

    def __init__(self, host: str, stack: ExitStack, folder: Path, upstream: int, cores: set[int]) -> None:
        self.port = free_port()
        self._inspect = "off"
        self._config = folder / f"{host}.yaml"
        self._host = f"host: {host}"
        self._text = dragoman_config("openai", f"http://127.0.0.1:{upstream}/v1", self.port)
        self._write()
        dragoman = str(Path(sys.executable).with_name("dragoman"))
        command = [dragoman, "serve", "--insecure", "--config", str(self._config), "--log-format", "json"]
        log = self._config.with_suffix(".log")
        self.process = stack.enter_context(run_process(command, log, cores=cores))
        if not wait_until_listening(self.port, self.process):
            sys.exit(f"dragoman does not serve:\n{log.read_text()[-2000:]}")

    def inspect(self, mode: str) -> None:
        """Keep so much of each exchange from now on."""
        if mode == self._inspect:
            return
        self._inspect, before = mode, self._read_digest()
        self._write()
        self.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + RELOAD
        while self._read_digest() == before:
            if time.monotonic() > end:
                sys.exit(f"dragoman did not reload its configuration within {RELOAD:.0f} s")
            time.sleep(0.02)

    def _write(self) -> None:
        self._config.write_text(self._text.replace("host: 127.0.0.1", f"{self._host}, inspect: {self._inspect}"))

    def _read_digest(self) -> object:
        with urlopen(f"http://127.0.0.1:{self.port}/health") as response:
            return json.load(response)["configuration"]


@contextmanager
def watch(port: int) -> Iterator[None]:
    """Read the live list meanwhile, as the page does."""
    with socket.create_connection(("127.0.0.1", port)) as feed:
        feed.sendall(b"GET /page/api/events?most=20 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        reader = threading.Thread(target=read_all, args=(feed,), daemon=True)
        reader.start()
        yield
        feed.shutdown(socket.SHUT_RDWR)
        reader.join()


def read_all(connection: socket.socket) -> None:
    with suppress(OSError):
        while connection.recv(65536):
            pass


def report(rows: dict[str, Row], case: str) -> Iterator[str]:
    """Print what each way costs, and yield whether its goals are met."""
    print(f"\n{case}, {CASES[case].connections} connections")
    for name, row in rows.items():
        base = rows[COMPARED.get(name, name)]
        if note := row.note or base.note:
            print(f"  {name:10}{note}")
            yield f"{case}, {name}: not measured"
            continue
        costs = list_costs(row, case)
        line = f"  {name:10}{statistics.median(costs):9.1f} µs of processor time"
        if row is base:
            print(line)
            continue
        ratios = [one / other for one, other in zip(costs, list_costs(base, case), strict=True)]
        found, goal = estimate_median(ratios), GOALS.get(name)
        verdict = f", at most {goal}: {found.judge(goal)}" if goal is not None else ""
        print(f"{line}{found.median:9.3f} of {base.name} ({found.low:.3f} to {found.high:.3f}){verdict}")
        if goal is not None:
            yield f"{case}, {name}: {found.judge(goal)}"


def list_costs(row: Row, case: str) -> list[float]:
    """The processor time of each round: the mean of its two measurements."""
    found = [one["cpu_us"] for one in row.results[case]]
    return [(one + other) / 2 for one, other in zip(found[::2], found[1::2], strict=True)]


def write_conclusion(verdicts: Sequence[str]) -> str:
    """One line for all goals."""
    open_ones = [verdict for verdict in verdicts if not verdict.endswith(": met")]
    return f"goals not met: {'; '.join(open_ones)}" if open_ones else "all goals are met"


if __name__ == "__main__":
    main()
