"""`dragoman contract ...`. Exit status: 0 all right, 1 failures, 2 wrong usage, 3 the endpoint cannot be reached."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from . import options
from .dialects import DEFAULT

if TYPE_CHECKING:
    from .model import Case
    from .session import Plan

__all__ = ["app"]

app = typer.Typer(
    name="contract",
    help="Ask any endpoint, or any proxy, what it gets wrong.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command(
    epilog="Example: dragoman contract run --base-url http://127.0.0.1:8080/v1 --model fast --html report.html"
)
def run(
    base_url: options.BaseUrl,
    model: options.Model,
    dialect: options.Dialect = DEFAULT,
    profile: options.Profile = "",
    api_key: options.ApiKey = None,
    header: options.Header = None,
    only: options.Only = None,
    protocol: options.Protocol = None,
    level: options.Level = "MAY",
    without: options.Without = None,
    upstream: options.Upstream = None,
    upstream_port: options.UpstreamPort = 9100,
    concurrency: options.Concurrency = 1,
    timeout: options.Timeout = 60.0,
    budget_tokens: options.BudgetTokens = None,
    insecure: options.Insecure = False,
    dry_run: options.DryRun = False,
    record: options.Record = None,
    replay: options.Replay = None,
    expect: options.Expect = None,
    diff: options.Diff = None,
    name: options.Name = None,
    json_file: options.JsonFile = None,
    junit: options.Junit = None,
    markdown: options.Markdown = None,
    html: options.Html = None,
    badge: options.Badge = None,
    cases: options.Cases = None,
) -> None:
    """Run the cases of a dialect against an endpoint, and say what it gets wrong."""
    from .session import Outputs, Plan, Unusable
    from .target import Target

    loaded = _loaded(cases)
    target = Target(
        base_url,
        dialect,
        model,
        key=api_key,
        profile=profile,
        headers=_headers(header or []),
        without=_known("--without", without, {"max_tokens", *(need for case in loaded for need in case.needs)}),
        protocols=_known("--protocol", protocol, {case.protocol for case in loaded}),
        upstream=upstream,
    )
    plan = Plan(
        target,
        _chosen(loaded, only, level, dialect),
        name=name or base_url,
        upstream_port=upstream_port,
        concurrency=concurrency,
        timeout=timeout,
        budget=budget_tokens,
        verify_tls=not insecure,
        record=record,
        replay=replay,
    )
    if dry_run:
        _show(plan)
        return
    try:
        status = plan.run(Outputs(json_file, junit, markdown, html, badge, expect, diff))
    except Unusable as error:
        _fail(str(error))
    raise typer.Exit(status)


@app.command(name="list", epilog="Example: dragoman contract list --dialect mindie")
def list_(
    dialect: options.OneDialect = None,
    only: options.Only = None,
    cases: options.Cases = None,
) -> None:
    """List the cases: id, level, dialects, title."""
    dialects: dict[str, list[str]] = {}
    found = {}
    for case in _chosen(_loaded(cases), only, "MAY", dialect):
        dialects.setdefault(case.id, []).append(case.dialect)
        found[case.id] = case
    for id_, case in found.items():
        if dialect is None or dialect in dialects[id_]:
            print(f"{id_:<52} {case.level:<6} {','.join(dialects[id_]):<32} {case.title}")


@app.command()
def checks() -> None:
    """List the vocabulary of checks that cases are written in."""
    from .checks import CHECKS, SENT

    for name, rule in CHECKS.items():
        print(f"{name:<22} {rule.about}")
    print("\nof what a proxy sent upstream:")
    for name, rule in SENT.items():
        print(f"{name:<22} {rule.about}")


@app.command(epilog="Example: dragoman contract faults --dialect mindie")
def faults(
    dialect: options.OneDialect = None,
    first: Annotated[
        bool, typer.Option("--first", help="Look for one case that notices a fault, not for all.")
    ] = False,
    json_file: options.JsonFile = None,
    cases: options.Cases = None,
) -> None:
    """Show which cases notice each way in which the fakes can misbehave. Status 1 where a fault goes unnoticed."""
    import asyncio

    from .faults import DIALECTS, table
    from .reports.faults import as_json, as_markdown

    rows = asyncio.run(table([dialect] if dialect else DIALECTS, _loaded(cases), first=first))
    if json_file is not None:
        json_file.write_text(as_json(rows), "utf-8")
    print(as_markdown(rows), end="")
    raise typer.Exit(1 if any(row.missed for row in rows) else 0)


@app.command(epilog="Example: dragoman contract report a.json b.json --html matrix.html")
def report(
    files: Annotated[list[Path], typer.Argument(help="JSON reports, one for each target.")],
    html: Annotated[Path | None, typer.Option(help="Write the matrix as one HTML file.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the matrix as Markdown.")] = None,
    brief: Annotated[
        bool,
        typer.Option("--brief", help="Keep the wire logs of failures alone in the HTML file, and cut what is long."),
    ] = False,
) -> None:
    """Make one matrix, targets x cases, of several reports."""
    from .reports.document import NotAReport, read_report, shortened
    from .reports.markdown import matrix

    try:
        reports = [read_report(file) for file in files]
    except NotAReport as error:
        _fail(str(error))
    if html is not None:
        from .reports.html import page

        html.write_text(page([shortened(told) for told in reports] if brief else reports), "utf-8")
    if markdown is not None:
        markdown.write_text(matrix(reports), "utf-8")
    if html is None and markdown is None:
        print(matrix(reports), end="")


def _loaded(folder: Path | None) -> Sequence[Case]:
    from .corpus import BUILT_IN, CaseErrors, load_cases

    try:
        return load_cases(folder or BUILT_IN)
    except CaseErrors as errors:
        _fail("\n".join(errors.problems))


def _chosen(
    cases: Sequence[Case], only: list[str] | None, level: options.LevelName, dialect: str | None
) -> Sequence[Case]:
    from .session import chosen

    found = chosen(cases, only or [], level)
    if not any(dialect in (None, case.dialect) for case in found):
        asked = " ".join(f"--only {pattern}" for pattern in only or ()) or f"--level {level}"
        _fail(f"no case of {dialect or 'any dialect'} fits {asked}; dragoman contract list shows all")
    return found


def _known(option: str, given: list[str] | None, words: set[str]) -> frozenset[str]:
    """What an option names, all of which some case knows."""
    for word in given or ():
        if word not in words:
            likely = get_close_matches(word, words, 1) or sorted(words)
            _fail(f"{option} {word}: no case knows it; did you mean {', '.join(likely)}?")
    return frozenset(given or ())


def _headers(texts: list[str]) -> dict[str, str]:
    pairs = [text.partition(":") for text in texts]
    for name, colon, _ in pairs:
        if not colon:
            _fail(f'--header takes "name: value", not {name!r}')
    return {name.strip(): value.strip() for name, _, value in pairs}


def _show(plan: Plan) -> None:
    forecast = list(plan.forecast())
    for cost in forecast:
        print(f"{cost.case.id:<52} {cost.case.level:<6} {cost.requests} requests, at most {cost.tokens} tokens")
    requests, tokens = sum(cost.requests for cost in forecast), sum(cost.tokens for cost in forecast)
    written = sum(cost.requests for cost in forecast if cost.tokens)
    print(
        f"\n{len(forecast)} cases, {requests} requests; the model may write an answer to {written} of them, and at most"
    )
    print(f"{tokens} tokens in all. A case is asked once more where the model does not cooperate.")


def _fail(text: str) -> NoReturn:
    print(f"error: {text}", file=sys.stderr)
    raise typer.Exit(2)
