"""`python -m tools.fuzz requests|replies|streams`: generate cases for all pairs, and report what does not hold.
`python -m tools.fuzz raw` sends mutated bytes to a running proxy."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

import typer

from .pairs import Pair, list_pairs
from .raw import draw_raw, fuzz_raw
from .replies import draw_reply, draw_stream
from .requests import draw_request
from .runner import Draw, Report, run_cases

__all__ = ["app"]

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)

Count = Annotated[int, typer.Option(min=1, help="How many cases; they take the pairs in turn.")]
Seed = Annotated[str, typer.Option(help="The same seed makes the same cases.")]
First = Annotated[int, typer.Option(min=0, help="The number of the first case, to repeat one that was reported.")]
Pairs = Annotated[
    str, typer.Option(help="Only pairs whose name contains this text, as `azure` or `/responses>openai`.")
]
Listing = Annotated[bool, typer.Option("--list", help="List the pairs, and run nothing.")]


@app.command("requests")
def fuzz_requests(
    count: Count = 1000, seed: Seed = "0", first: First = 0, pairs: Pairs = "", listing: Listing = False
) -> None:
    """Generate requests, valid and not, and write them for the providers."""
    _run(draw_request, list_pairs(), count, seed, first, pairs, listing)


@app.command("replies")
def fuzz_replies(
    count: Count = 1000, seed: Seed = "0", first: First = 0, pairs: Pairs = "", listing: Listing = False
) -> None:
    """Alter whole replies, and feed them whole and in random pieces."""
    _run(draw_reply, list_pairs(), count, seed, first, pairs, listing)


@app.command("streams")
def fuzz_streams(
    count: Count = 1000, seed: Seed = "0", first: First = 0, pairs: Pairs = "", listing: Listing = False
) -> None:
    """Alter streams, and feed them whole and in random pieces."""
    _run(draw_stream, list_pairs(streamed=True), count, seed, first, pairs, listing)


@app.command("raw")
def fuzz_raw_requests(
    count: Count = 1000,
    seed: Seed = "0",
    first: First = 0,
    show: Annotated[bool, typer.Option("--show", help="Print the bytes of the cases, and send nothing.")] = False,
) -> None:
    """Send mutated raw requests to a running proxy: no 5xx of its own, no hang over 1 s, no traceback."""
    if show:
        print(*(draw_raw(seed, number) for number in range(first, first + count)), sep="\n")
        return
    report = asyncio.run(fuzz_raw(seed, range(first, first + count)))
    for number, finding in list(report.findings.items())[:20]:
        print(f"NOT SO: {finding}\n  again: raw --count 1 --seed {seed} --first {number} --show")
    print(*report.tracebacks[:5], sep="\n")
    print(*(f"{status}: {times}" for status, times in sorted(report.statuses.items())), sep=", ")
    print(report.describe())
    raise typer.Exit(1 if report.findings or report.tracebacks else 0)


def _run(draw: Draw, known: Sequence[Pair], count: int, seed: str, first: int, part: str, listing: bool) -> None:
    pairs = [pair for pair in known if part in str(pair)]
    if not pairs:
        raise typer.BadParameter(f"no pair's name contains {part!r}: --list shows all")
    if listing:
        print(*pairs, sep="\n")
        return
    report = run_cases(draw, pairs, seed, range(first, first + count))
    print_report(report, len(pairs), f" --pairs '{part}'" if part else "")
    raise typer.Exit(1 if report.findings else 0)


def print_report(report: Report, pairs: int, options: str) -> None:
    """Print the findings, each with the options that repeat it, and the table of outcomes."""
    for (law, place), (again, case, finding) in report.findings.items():
        print(f"NOT SO: {law} ({place}), {report.times[law, place]} times\n  {finding.text}")
        print(f"  again: --count 1 {again}{options}")
        print("  " + case.describe().replace("\n", "\n  ") + "\n")
    print(f"| Outcome of {report.cases} cases, {pairs} pairs | Cases |\n|---|---|")
    for outcome, number in report.outcomes.most_common():
        print(f"| {outcome} | {number} |")
    print(f"| laws that do not hold | {len(report.findings)} |")


if __name__ == "__main__":
    app(prog_name="python -m tools.fuzz")
