"""Compares the processor time of two checkouts of dragoman.

    python bench/compare.py BEFORE AFTER [--seconds 1] [--rounds 15] [--cases CASE ...] [--json FILE]

Each checkout needs its own environment in `.venv`. Every round starts BEFORE twice and AFTER once, measures each case
in these processes one right after the other, every second round in reverse order, and compares their costs. The
spread of the measurement is how far the median ratio of BEFORE to itself may lie from 1: the farther end of its 95 %
interval, found by drawing rounds again (bootstrap). A case of AFTER counts as slower only if its median ratio exceeds
that spread and 3 %. Everything runs on 127.0.0.1. Linux only. The exit status is 1 if a case is slower.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from _cases import CASES
from _processes import REALTIME, free_port, run_first, run_process, wait_until_listening
from _rows import Row, dragoman_config, measure_case, run_provider, split_cores

__all__: list[str] = []

TOLERANCE = 0.03
DRAWS = 4000
UPSTREAMS = (("openai", "/v1", tuple(CASES)), ("databricks", "", ("whole", "paced", "burst")))
USUAL = ("whole", "paced", "burst", "responses")  # the cases that are measured if none are named


def main() -> None:
    options = parse_arguments()
    cores = split_cores()
    os.sched_setaffinity(0, cores.load)
    if options.realtime:
        run_first()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        upstream, _ = stack.enter_context(run_provider(cores))
        groups = [create_group(folder, options, upstream, *one) for one in UPSTREAMS]
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds} ...", file=sys.stderr, flush=True)
            for group in groups:
                run_round(group, options.seconds, cores.proxy, is_reversed=bool(number % 2))
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
    parser.add_argument("--seconds", type=float, default=1.0, help="length of one measurement (default 1)")
    parser.add_argument("--rounds", type=int, default=15, help="measurements of each case (default 15)")
    parser.add_argument("--cases", nargs="+", choices=CASES, help="measure only these cases")
    parser.add_argument("--realtime", action="store_true", help=REALTIME)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every measurement to FILE")
    return parser.parse_args()


class Server(Row):
    """A row whose process is started for each round by `command`, in the folder `checkout`."""

    def __init__(self, name: str, checkout: Path, config: Path, cases: tuple[str, ...]) -> None:
        super().__init__(name, 0, None, cases)
        self.checkout, self.config = checkout.resolve(), config

    def start(self, stack: ExitStack, cores: set[int]) -> None:
        command = [str(self.checkout / ".venv/bin/dragoman"), "serve", "--config", str(self.config)]
        self.port, log = free_port(), self.config.with_suffix(".log")
        command += ["--port", str(self.port), "--log-format", "json"]
        self.process = stack.enter_context(run_process(command, log, cwd=self.checkout, cores=cores))
        if not wait_until_listening(self.port, self.process):
            sys.exit(f"{self.checkout} does not serve:\n{log.read_text()[-2000:]}")


def create_group(
    folder: Path, options: argparse.Namespace, upstream: int, dialect: str, base: str, cases: tuple[str, ...]
) -> list[Server]:
    """BEFORE, AFTER, and BEFORE again, all in front of the same provider."""
    rows = []
    for name, checkout in (("before", options.before), ("after", options.after), ("again", options.before)):
        config = folder / f"{dialect}-{name}.yaml"
        config.write_text(dragoman_config(dialect, f"http://127.0.0.1:{upstream}{base}", 0))
        wanted = tuple(case for case in cases if case in (options.cases or USUAL))
        rows.append(Server(f"{dialect}, {name}", checkout, config, wanted))
    return rows


def run_round(group: list[Server], seconds: float, cores: set[int], *, is_reversed: bool) -> None:
    """Measure each case in fresh processes, one right after the other: the cost of one process differs from that of
    the next by up to 10 %, by where its memory lies."""
    ordered = group[::-1] if is_reversed else group
    with ExitStack() as stack:
        for row in ordered:
            row.start(stack, cores)
        for case in group[0].cases:
            for row in ordered:
                measure_case(row, case, seconds)


def report_group(rows: list[Server]) -> list[str]:
    """Print a table; return the cases in which AFTER is slower."""
    before, after, again = rows
    slower = []
    print(f"\n{before.name.partition(',')[0]}: CPU µs per request or event (medians), and ratios to before per round")
    print(f"  {'case':12}{'before':>9}{'after':>9}{'after/before':>14}{'again/before':>14}{'allowed':>9}")
    for case in before.cases:
        found, again_ratio = (statistics.median(compare(row, before, case)) for row in (after, again))
        allowed = 1 + max(find_spread(compare(again, before, case)), TOLERANCE)
        cells = [f"{row.median(case, 'cpu_us') or 0:>9.1f}" for row in (before, after)]
        ratios = f"{found:>14.3f}{again_ratio:>14.3f}{allowed:>9.3f}"
        print(f"  {case:12}{''.join(cells)}{ratios}{'  slower' if found > allowed else ''}")
        if found > allowed:
            slower.append(f"{before.name.partition(',')[0]} {case}")
    for row in rows:
        if row.note:
            sys.exit(f"{row.name}: {row.note}")
    return slower


def compare(row: Row, base: Row, case: str) -> list[float]:
    """Each round's ratio of cost. Measurements of one round have the same conditions."""
    pairs = zip(row.results[case], base.results[case], strict=True)
    return [one["cpu_us"] / other["cpu_us"] for one, other in pairs]


def find_spread(ratios: list[float]) -> float:
    """How far from 1 the median of as many such ratios may lie: the farther end of its 95 % interval."""
    draw = random.Random(0).choices
    medians = sorted(statistics.median(draw(ratios, k=len(ratios))) for _ in range(DRAWS))
    return max(1 - medians[DRAWS // 40], medians[-DRAWS // 40] - 1)


if __name__ == "__main__":
    main()
