"""Measures dragoman, nginx and other proxies side by side: processor time, rates, delays, memory, start.

    python bench/side_by_side.py [--quick] [--targets NAME ...] [--cases NAME ...] [--json FILE [--add]] [--html FILE]

Every round starts all targets anew, and measures each case with all of them right after one another, every second
round in reverse order. The processor time of each is compared with that of nginx in the same round. Everything runs on
127.0.0.1, the proxies on a core of their own if there are three. Linux only: it reads /proc.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from _cases import CASES, build_request
from _flames import profile_load, summarize_stacks
from _native import CACHE, build_program
from _processes import REALTIME, free_port, run_first, run_process
from _rows import Cores, Row, measure_case, measure_growth, read_memory_mb, run_provider, split_cores, wait_until_idle
from _side_page import write_page
from _side_tables import describe_case, write_report, write_table
from _targets import DEFAULT, TARGETS, MissingTarget

__all__: list[str] = []

REFERENCES = ("direct", "bare")  # left out of quick runs
WARM_REQUESTS, GROWTH_REQUESTS = 10_000, 100_000
BYTECODE = CACHE / "bytecode"
DOCS = Path(__file__).parents[1] / "docs" / "performance.md"
LONGEST_START = 120.0  # seconds


def main() -> None:
    options = parse_arguments()
    if not Path("/proc/self/schedstat").exists():
        sys.exit("bench/side_by_side.py reads processor time from /proc/PID/task/*/schedstat: run it on Linux.")
    cores = split_cores()
    os.sched_setaffinity(0, cores.load)
    if options.realtime:
        run_first()
    keep_bytecode()
    if build_program("load") is None:
        print("no C compiler: Python makes the load, without the open loop and with less exact times", file=sys.stderr)
    if options.flame:
        report = profile_cases(options, cores)
        if options.docs:
            write_docs("profiled", report)
        print(report)
        return
    document = load_document(options)
    rows = {name: Row(TARGETS[name].title) for name in options.targets}
    rows |= read_rows(document)
    measure_rounds(options, cores, rows)
    document |= {"rows": write_rows(rows)} | (describe_run(options) if options.rounds else {})
    report = write_report(rows, document)
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    if options.html:
        options.html.write_text(write_page(rows, document), "utf-8")
    if options.docs:
        write_docs("measured", report)
    print(report)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--targets", nargs="+", choices=TARGETS, help=f"default: {' '.join(DEFAULT)}")
    cases = ("whole", "small", "large", "paced", "burst", "rate")
    parser.add_argument("--cases", nargs="+", choices=cases, default=cases, help="measure only these cases")
    parser.add_argument("--seconds", type=float, help="length of one measurement (default 3, with --quick 0.6)")
    parser.add_argument("--rounds", type=int, help="default 5, with --quick 3; 0 only shows what FILE has")
    parser.add_argument(
        "--quick", action="store_true", help="two minutes: short measurements, few rounds, without direct and bare"
    )
    parser.add_argument("--realtime", action="store_true", help=REALTIME)
    parser.add_argument("--growth", action="store_true", help="also the memory after 100,000 requests")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every measurement to FILE")
    parser.add_argument("--add", action="store_true", help="add the rounds to those that FILE has from earlier runs")
    parser.add_argument("--flame", type=Path, metavar="DIR", help="only profile dragoman, and draw flame graphs there")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with charts")
    parser.add_argument("--docs", action="store_true", help="write the tables to docs/performance.md")
    options = parser.parse_args()
    if options.add and not options.json:
        parser.error("--add needs --json FILE")
    if options.rounds == 0 and not (options.add and options.json.exists()):
        parser.error("--rounds 0 needs --add and a FILE with rounds")
    options.targets = options.targets or [name for name in DEFAULT if not (options.quick and name in REFERENCES)]
    options.seconds = options.seconds or (0.6 if options.quick else 3.0)
    options.rounds = (3 if options.quick else 5) if options.rounds is None else options.rounds
    return options


def keep_bytecode() -> None:
    """Let Python's programs find their bytecode in the cache, as every start but the first does."""
    os.environ["PYTHONPYCACHEPREFIX"] = str(BYTECODE)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def load_document(options: argparse.Namespace) -> dict[str, Any]:
    if options.add and options.json.exists():
        found: dict[str, Any] = json.loads(options.json.read_text())
        return found
    return {"rows": {}}


def read_rows(document: Mapping[str, Any]) -> dict[str, Row]:
    rows = {}
    for name, kept in document["rows"].items():
        rows[name] = Row(TARGETS[name].title, figures=kept["figures"], note=kept["note"])
        rows[name].results |= kept["results"]
    return rows


def measure_rounds(options: argparse.Namespace, cores: Cores, rows: Mapping[str, Row]) -> None:
    run = time.strftime("%Y%m%d-%H%M%S")
    if options.rounds and not BYTECODE.exists():  # the first start writes it
        with run_targets(options.targets, {name: Row(name) for name in rows}, cores):
            pass
    earlier = len({one["round"] for row in rows.values() for found in row.results.values() for one in found})
    for number in range(options.rounds):
        print(f"round {number + 1} of {options.rounds} ...", file=sys.stderr, flush=True)
        names = [name for name in options.targets if not rows[name].note]
        with run_targets(names, rows, cores) as provider:
            for case in options.cases:
                for name in reversed(names) if (earlier + number) % 2 else names:
                    if case in TARGETS[name].cases:
                        measure_case(rows[name], case, options.seconds, provider, f"{run}-{number}")
            for name in names:
                record_memory(rows[name], "after_mb")
                if options.growth and name == "dragoman":
                    measure_growth(rows[name], WARM_REQUESTS, GROWTH_REQUESTS)


@contextmanager
def run_targets(names: Sequence[str], rows: Mapping[str, Row], cores: Cores) -> Iterator[subprocess.Popen[bytes]]:
    """Run the provider and the targets in front of it. Yield the provider's process."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        upstream, provider = stack.enter_context(run_provider(cores))
        for name in names:
            start_target(name, rows[name], Path(folder), upstream, cores, stack)
            if (process := rows[name].process) is not None:
                wait_until_idle(process)  # what it does after its first answer would slow the next start
        yield provider


def start_target(name: str, row: Row, folder: Path, upstream: int, cores: Cores, stack: ExitStack) -> None:
    """Start a target, and measure its start and its memory. A target that does not start gets a note."""
    target = TARGETS[name]
    row.client, row.warm_up, row.process = target.client, target.warm_up, None
    row.port = free_port() if target.command else upstream
    if target.command is None:
        return
    (folder / name).mkdir()
    try:
        command = target.command(folder / name, upstream, row.port)
    except MissingTarget as missing:
        row.note = f"left out: {missing}"
        return
    log = folder / name / "log"
    begin = time.perf_counter()
    row.process = stack.enter_context(run_process(command, log, env=target.env, cwd=folder / name, cores=cores.proxy))
    if not wait_for_answer(row):
        row.note = f"left out: it does not answer; its log ends with: {log.read_text(errors='replace')[-500:]}"
        return
    row.figures.setdefault("start_s", []).append(time.perf_counter() - begin)
    record_memory(row, "idle_mb")


def wait_for_answer(row: Row) -> bool:
    """Ask until the first answer with the status 200. Return False if the process ends, or takes too long."""
    case = replace(CASES["small"], client=row.client)
    body = build_request(row.port, case).partition(b"\r\n\r\n")[2]
    path = build_request(row.port, case).split(b" ", 2)[1].decode()
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
    deadline = time.monotonic() + LONGEST_START
    while row.process and row.process.poll() is None and time.monotonic() < deadline:
        with connect(row.port) as connection:
            try:
                connection.request("POST", path, body, headers)
                if connection.getresponse().status == 200:
                    return True
            except (OSError, http.client.HTTPException):
                time.sleep(0.002)
    return False


@contextmanager
def connect(port: int) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        yield connection
    finally:
        connection.close()


def record_memory(row: Row, key: str) -> None:
    if row.process and not row.note:
        row.figures.setdefault(key, []).append(read_memory_mb(row.process.pid))


def profile_cases(options: argparse.Namespace, cores: Cores) -> str:
    """Profile dragoman's targets in each case, and write tables of the heaviest functions."""
    options.flame.mkdir(parents=True, exist_ok=True)
    parts = []
    for name in (one for one in options.targets if TARGETS[one].title.startswith("dragoman")):
        row = Row(TARGETS[name].title)
        with run_targets([name], {name: row}, cores):
            for case in (one for one in options.cases if one in TARGETS[name].cases):
                file = profile_load(row, case, options.seconds, options.flame / f"{name}-{case}")
                table = write_table(["function", "self %", "total %"], summarize_stacks(file.read_text()))
                parts.append(f"### {row.name}: {describe_case(CASES[case])}\n\n{table}")
    return "\n\n".join(parts) + "\n"


def write_docs(mark: str, text: str) -> None:
    """Replace the part of docs/performance.md between two marks."""
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    before, _, rest = DOCS.read_text("utf-8").partition(begin)
    DOCS.write_text(f"{before}{begin}\n{text}{end}{rest.partition(end)[2]}", "utf-8")


def write_rows(rows: Mapping[str, Row]) -> dict[str, Any]:
    return {name: {"note": row.note, "figures": row.figures, "results": row.results} for name, row in rows.items()}


def describe_run(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "command": " ".join(["python", *sys.argv]),
        "seconds": options.seconds,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "versions": {name: version(name) for name in ("dragoman", "aiohttp", "uvloop")},
    }


if __name__ == "__main__":
    main()
