"""Compares the processor time of two checkouts of dragoman.

    python bench/compare.py BEFORE AFTER [--seconds 2] [--rounds 9] [--json FILE]

Each checkout needs its own environment in `.venv`. BEFORE is started twice, and the difference between its two
processes is the spread of the measurement. A case of AFTER counts as slower only if the difference exceeds that spread
and 3 %. Every round measures all processes one after the other, every second round in reverse order. Everything runs on
127.0.0.1. Linux only. The exit status is 1 if a case is slower.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from _load import CASES
from _processes import free_port, run_process, wait_until_listening
from relay import Row, dragoman_config, measure, script_command, split_cores

__all__: list[str] = []

TOLERANCE = 0.03
UPSTREAMS = (("openai", "/v1", tuple(CASES)), ("databricks", "", ("whole", "paced", "burst")))


def main() -> None:
    options = parse_arguments()
    proxy_cores, other_cores = split_cores()
    os.sched_setaffinity(0, other_cores)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        upstream = free_port()
        stack.enter_context(run_process(script_command("_upstream.py", upstream)))
        if not wait_until_listening(upstream):
            sys.exit("the benchmark's provider does not start")
        groups = [start_group(stack, folder, options, upstream, proxy_cores, *one) for one in UPSTREAMS]
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds} ...", file=sys.stderr, flush=True)
            for group in groups:
                for row in reversed(group) if number % 2 else group:
                    measure(row, options.seconds)
    slower = [line for group in groups for line in report_group(group)]
    if options.json:
        rows = {row.name: row.results for group in groups for row in group}
        options.json.write_text(json.dumps(rows, indent=2) + "\n")
    print(f"\n{len(slower)} cases are slower: {', '.join(slower)}" if slower else "\nno case is slower")
    sys.exit(1 if slower else 0)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("before", type=Path, help="a checkout with an environment in .venv")
    parser.add_argument("after", type=Path, help="a checkout with an environment in .venv")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one measurement (default 2)")
    parser.add_argument("--rounds", type=int, default=9, help="measurements of each case (default 9)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every measurement to FILE")
    return parser.parse_args()


def start_group(
    stack: ExitStack,
    folder: Path,
    options: argparse.Namespace,
    upstream: int,
    proxy_cores: set[int],
    dialect: str,
    base: str,
    cases: tuple[str, ...],
) -> list[Row]:
    """Start BEFORE, AFTER, and BEFORE again, all in front of the same provider."""
    rows = []
    for name, checkout in (("before", options.before), ("after", options.after), ("again", options.before)):
        port = free_port()
        config = folder / f"{dialect}-{name}.yaml"
        config.write_text(dragoman_config(dialect, f"http://127.0.0.1:{upstream}{base}", port))
        command = [str(checkout.resolve() / ".venv/bin/dragoman"), "serve", "--config", str(config)]
        log = folder / f"{dialect}-{name}.log"
        process = stack.enter_context(
            run_process([*command, "--log-format", "json"], log, cwd=checkout, cores=proxy_cores)
        )
        if not wait_until_listening(port, process):
            sys.exit(f"{checkout} does not serve:\n{log.read_text()[-2000:]}")
        rows.append(Row(f"{dialect}, {name}", port, process, cases))
    return rows


def report_group(rows: list[Row]) -> list[str]:
    """Print a table; return the cases in which AFTER is slower."""
    before, after, again = rows
    slower = []
    print(f"\n{before.name.partition(',')[0]}: CPU µs per request or event (medians), and ratios to before per round")
    print(f"  {'case':12}{'before':>9}{'after':>9}{'after/before':>14}{'again/before':>14}{'allowed':>9}")
    for case in before.cases:
        spread = abs(compare(again, before, case) - 1)
        found, allowed = compare(after, before, case), 1 + max(spread, TOLERANCE)
        cells = [f"{row.median(case, 'cpu_us') or 0:>9.1f}" for row in (before, after)]
        ratios = f"{found:>14.3f}{compare(again, before, case):>14.3f}{allowed:>9.3f}"
        print(f"  {case:12}{''.join(cells)}{ratios}{'  slower' if found > allowed else ''}")
        if found > allowed:
            slower.append(f"{before.name.partition(',')[0]} {case}")
    for row in rows:
        if row.note:
            sys.exit(f"{row.name}: {row.note}")
    return slower


def compare(row: Row, base: Row, case: str) -> float:
    """The median of the rounds' ratios of cost. Measurements of one round have the same conditions."""
    pairs = zip(row.results[case], base.results[case], strict=True)
    return statistics.median(one["cpu_us"] / other["cpu_us"] for one, other in pairs)


if __name__ == "__main__":
    main()
