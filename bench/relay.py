"""Compares the processor time of dragoman with that of a bare relay.

    uv run python bench/relay.py [--seconds 5] [--rounds 3] [--json FILE]

Measures the processor time of every proxy per 4 KB chat request and per stream event. Every round measures all proxies,
every second round in reverse order, so that other load on the machine affects all of them alike. Everything runs on
127.0.0.1. If there are two cores, the proxy has one to itself. Linux only: it reads /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from _load import CASES, WARM_UP
from _processes import free_port, run_process, wait_until_listening

__all__: list[str] = []

HERE = Path(__file__).parent
BARE = "bare aiohttp relay"
CHAT = "dragoman, to openai"
GOALS = {"whole": 2.0, "paced": 1.6, "burst": 1.6}  # dragoman's cost, in multiples of the bare relay's
TRANSLATED = {"responses": "Responses", "messages": "Messages"}  # cases whose clients speak another protocol than chat
TIMES_CHAT = 1.25  # the goal for an event of theirs over chat, in multiples of a chat client's event
TITLES = {"whole": "4 KB chat request", "paced": "stream event, one per 5 ms", "burst": "stream event, in bursts"}
NGINX = """\
daemon off; master_process off; pid {folder}/nginx.pid; error_log /dev/null crit;
events {{ worker_connections 1024; }}
http {{
  access_log off; client_body_temp_path {folder}; proxy_temp_path {folder}; client_body_buffer_size 64k;
  fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder}; keepalive_requests 1000000;
  upstream provider {{ server 127.0.0.1:{upstream}; keepalive 64; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port};
    proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
    location / {{ proxy_pass http://provider; }}
  }}
}}
"""


@dataclass
class Row:
    """One connection between the clients and the provider. `process` is the proxy, None without one. `cases` are the
    cases that it can serve."""

    name: str
    port: int
    process: subprocess.Popen[bytes] | None = None
    cases: tuple[str, ...] = tuple(GOALS)
    note: str = ""
    results: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {case: [] for case in CASES})

    def median(self, case: str, key: str) -> float | None:
        found = [result[key] for result in self.results[case] if result[key] is not None]
        return statistics.median(found) if found else None


def main() -> None:
    options = parse_arguments()
    if not Path("/proc/self/schedstat").exists():
        sys.exit("bench/relay.py reads processor time from /proc/PID/task/*/schedstat: run it on Linux.")
    proxy_cores, other_cores = split_cores()
    os.sched_setaffinity(0, other_cores)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        rows = start_proxies(stack, folder, proxy_cores)
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds} ...", file=sys.stderr, flush=True)
            for row in reversed(rows) if number % 2 else rows:
                measure(row, options.seconds)
    report(rows)
    if options.json:
        options.json.write_text(json.dumps(build_document(rows, options), indent=2) + "\n")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="length of one measurement, 0.5 to 60 (default 5)")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each case, 1 to 20 (default 3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every measurement to FILE")
    options = parser.parse_args()
    if not 0.5 <= options.seconds <= 60:
        parser.error("--seconds must be between 0.5 and 60")
    if not 1 <= options.rounds <= 20:
        parser.error("--rounds must be between 1 and 20")
    return options


def split_cores() -> tuple[set[int], set[int]]:
    """Return the proxy's core and the other cores; the same core if there is only one."""
    first, *rest = sorted(os.sched_getaffinity(0))
    return {first}, set(rest) or {first}


def start_proxies(stack: ExitStack, folder: Path, proxy_cores: set[int]) -> list[Row]:
    upstream = free_port()
    stack.enter_context(run_process(script_command("_upstream.py", upstream)))
    if not wait_until_listening(upstream):
        sys.exit(f"the benchmark's provider does not start; try: {' '.join(script_command('_upstream.py', upstream))}")
    rows = [Row("direct", upstream)]
    for name, port, command in list_proxies(folder, upstream):
        row = Row(name, port, cases=tuple(CASES) if name == CHAT else tuple(GOALS))
        rows.append(row)
        if command is None:
            row.note = "left out: not installed"
            continue
        row.process = stack.enter_context(run_process(command, cores=proxy_cores))
        if not wait_until_listening(port, row.process):
            row.note = f"left out: nothing listens on its port; started with: {' '.join(command)}"
    return rows


def list_proxies(folder: Path, upstream: int) -> Iterator[tuple[str, int, list[str] | None]]:
    port = free_port()
    yield BARE, port, script_command("_bare.py", port, upstream)
    port = free_port()
    nginx = shutil.which("nginx")
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, port=port, upstream=upstream))
    yield "nginx", port, [nginx, "-p", str(folder), "-c", str(config)] if nginx else None
    dragoman = Path(sys.executable).with_name("dragoman")
    for dialect, base in (("openai", "/v1"), ("databricks", "")):
        port = free_port()
        config = folder / f"{dialect}.yaml"
        config.write_text(dragoman_config(dialect, f"http://127.0.0.1:{upstream}{base}", port))
        serve = [str(dragoman), "serve", "--config", str(config), "--log-format", "json"]
        yield f"dragoman, to {dialect}", port, serve if dragoman.exists() else None


def dragoman_config(dialect: str, base_url: str, port: int) -> str:
    sources = {case: "paced" if case in TRANSLATED else case for case in CASES}  # the provider only speaks chat
    models = "".join(
        f"  bench-{case}: {{targets: [{{provider: upstream, model: bench-{own}}}]}}\n" for case, own in sources.items()
    )
    return f"""\
server: {{host: 127.0.0.1, port: {port}}}
store: {{kind: none}}
providers:
  upstream: {{dialect: {dialect}, base_url: "{base_url}", api_key: bench}}
models:
{models}"""


def script_command(name: str, *words: object) -> list[str]:
    return [sys.executable, str(HERE / name), *map(str, words)]


def measure(row: Row, seconds: float) -> None:
    """Measure every case once. After a wrong answer the row gets a note, and is not measured any more."""
    for case in row.cases:
        measure_case(row, case, seconds)


def measure_case(row: Row, case: str, seconds: float) -> None:
    if row.note:
        return
    pid = row.process.pid if row.process else 0
    load = script_command("_load.py", row.port, case, seconds, pid)
    run = subprocess.run(load, capture_output=True, text=True, timeout=seconds + WARM_UP + 60)
    if run.returncode:
        row.note = f"{case}: the load generator failed: {run.stderr[-600:]}"
        return
    result = json.loads(run.stdout)
    if result["errors"]:
        row.note = f"{case}: {result['errors']} wrong answers, the first: {result['error']}"
        return
    row.results[case].append(result)


def report(rows: list[Row]) -> None:
    bare = next(row for row in rows if row.name == BARE)
    for case, title in TITLES.items():
        unit = "requests/s" if case == "whole" else "events/s"
        print(f"\n{title}, {CASES[case]} connections; goal for dragoman: <= {GOALS[case]} bare relays")
        print(f"  {'':26}{'CPU µs':>9}{'x bare':>9}{unit:>13}{'answer p50 ms':>15}")
        for row in rows:
            cells = [format_cell(row.median(case, "cpu_us"), 9, 1), format_cell(compute_ratio(row, bare, case), 9, 2)]
            rate, latency = row.median(case, "per_second"), row.median(case, "p50_ms")
            cells += [format_cell(rate, 13, 0), format_cell(latency, 15, 2)]
            print(f"  {row.name:26}{''.join(cells)}{describe_result(row, bare, case)}")
    report_translated(next(row for row in rows if row.name == CHAT))
    for row in rows:
        if row.note:
            print(f"\n{row.name}: {row.note}")


def report_translated(row: Row) -> None:
    goal = f"goal: <= {TIMES_CHAT} of the chat client's"
    print(f"\nstream event, one per 5 ms, {CASES['paced']} connections, translated from chat by {row.name}; {goal}")
    print(f"  {'client':26}{'CPU µs':>9}{'x chat':>9}{'events/s':>13}{'answer p50 ms':>15}")
    for case, name in {"paced": "chat", **TRANSLATED}.items():
        found = compute_ratio(row, row, case, "paced")
        cells = [format_cell(row.median(case, "cpu_us"), 9, 1), format_cell(found, 9, 2)]
        cells += [format_cell(row.median(case, "per_second"), 13, 0), format_cell(row.median(case, "p50_ms"), 15, 2)]
        print(f"  {name:26}{''.join(cells)}{describe_goal(found, TIMES_CHAT) if case in TRANSLATED else ''}")


def format_cell(value: float | None, width: int, digits: int) -> str:
    return f"{'-':>{width}}" if value is None else f"{value:>{width}.{digits}f}"


def compute_ratio(row: Row, bare: Row, case: str, bare_case: str | None = None) -> float | None:
    """The median of the rounds' ratios. The two measurements of a round have the same conditions."""
    pairs = zip(row.results[case], bare.results[bare_case or case], strict=False)
    found = [one["cpu_us"] / other["cpu_us"] for one, other in pairs if one["cpu_us"] and other["cpu_us"]]
    return statistics.median(found) if found else None


def describe_result(row: Row, bare: Row, case: str) -> str:
    found = compute_ratio(row, bare, case)
    if row.note:
        return "  see the note below"
    if not row.name.startswith("dragoman"):
        return ""
    return describe_goal(found, GOALS[case])


def describe_goal(found: float | None, goal: float) -> str:
    return "" if found is None else "  goal met" if found <= goal else "  goal missed"


def build_document(rows: list[Row], options: argparse.Namespace) -> dict[str, Any]:
    bare = next(row for row in rows if row.name == BARE)
    return {
        "seconds": options.seconds,
        "rounds": options.rounds,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "versions": {name: version(name) for name in ("dragoman", "aiohttp", "uvloop")},
        "goals": {**GOALS, **dict.fromkeys(TRANSLATED, TIMES_CHAT)},
        "rows": {
            row.name: {
                "note": row.note,
                "ratio": {case: compute_ratio(row, bare, case) for case in GOALS},
                "times_chat": {case: compute_ratio(row, row, case, "paced") for case in TRANSLATED},
                "results": row.results,
            }
            for row in rows
        },
    }


if __name__ == "__main__":
    main()
