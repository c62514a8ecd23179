"""What it costs to keep exchanges for the page: the processor time of each way, compared with keeping nothing.

    python bench/inspection.py [--seconds 2] [--rounds 7] [--cases CASE ...]

`nothing` listens where no page can be served; `off`, `heads` and `bodies` are values of server.inspect; `watched` is
`bodies` with a browser that follows the live list. Every round starts a process for each, and measures each case in
them one right after the other, every second round in reverse order. Everything runs on 127.0.0.1. Linux only.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import sys
import tempfile
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

from _cases import CASES
from _processes import free_port, run_process, wait_until_listening
from _rows import Row, dragoman_config, measure_case, run_provider, split_cores

__all__: list[str] = []

WAYS = {
    "nothing": ("0.0.0.0", "off"),
    "off": ("127.0.0.1", "off"),
    "heads": ("127.0.0.1", "heads"),
    "bodies": ("127.0.0.1", "bodies"),
    "watched": ("127.0.0.1", "bodies"),
}
GOAL = 1.10  # the processor time of bodies, in multiples of that of off


def main() -> None:
    options = parse_arguments()
    cores = split_cores()
    os.sched_setaffinity(0, cores.load)
    rows = {name: Row(name, cases=tuple(options.cases)) for name in WAYS}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        upstream, _ = stack.enter_context(run_provider(cores))
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds} ...", file=sys.stderr, flush=True)
            ordered = [*rows.values()][:: -1 if number % 2 else 1]
            run_round(ordered, folder, upstream, options.seconds, cores.proxy)
    for case in options.cases:
        report(rows, case)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one measurement (default 2)")
    parser.add_argument("--rounds", type=int, default=7, help="measurements of each case (default 7)")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=["whole", "paced", "burst"])
    return parser.parse_args()


def run_round(rows: list[Row], folder: Path, upstream: int, seconds: float, cores: set[int]) -> None:
    with ExitStack() as stack:
        for row in rows:
            start(row, stack, folder, upstream, cores)
        for case in rows[0].cases:
            for row in rows:
                measure_case(row, case, seconds)


def start(row: Row, stack: ExitStack, folder: Path, upstream: int, cores: set[int]) -> None:
    """Start the process of a row, and what watches it."""
    host, inspect = WAYS[row.name]
    row.port = free_port()
    config = folder / f"{row.name}.yaml"
    text = dragoman_config("openai", f"http://127.0.0.1:{upstream}/v1", row.port)
    config.write_text(text.replace("host: 127.0.0.1", f"host: {host}, inspect: {inspect}"))
    dragoman = str(Path(sys.executable).with_name("dragoman"))
    command = [dragoman, "serve", "--insecure", "--config", str(config), "--log-format", "json"]
    log = config.with_suffix(".log")
    row.process = stack.enter_context(run_process(command, log, cores=cores))
    if not wait_until_listening(row.port, row.process):
        sys.exit(f"{row.name} does not serve:\n{log.read_text()[-2000:]}")
    if row.name == "watched":
        watch(row.port, stack)


def watch(port: int, stack: ExitStack) -> None:
    """Read the live list, as the page does, until the end of the round."""
    feed = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
    feed.sendall(b"GET /page/api/events?most=20 HTTP/1.1\r\nHost: localhost\r\n\r\n")

    def read() -> None:
        with suppress(OSError):
            while feed.recv(65536):
                pass

    threading.Thread(target=read, daemon=True).start()


def report(rows: dict[str, Row], case: str) -> None:
    print(f"\n{case}, {CASES[case].connections} connections; the goal for bodies and watched is at most {GOAL} of off")
    for name, row in rows.items():
        if row.note:
            print(f"  {name:10}{row.note}")
            continue
        cost = row.median(case, "cpu_us") or 0.0
        ratio = statistics.median(
            one["cpu_us"] / base["cpu_us"]
            for one, base in zip(row.results[case], rows["off"].results[case], strict=True)
        )
        print(f"  {name:10}{cost:9.1f} µs of processor time{ratio:9.3f} of off")


if __name__ == "__main__":
    main()
