"""`dragoman contract ...`. Exit status: 0 all right, 1 failures, 2 wrong usage, 3 the endpoint cannot be reached."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn, TypeAlias

import typer

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

DialectName: TypeAlias = Literal["openai", "databricks", "azure", "mindie"]
LevelName: TypeAlias = Literal["MUST", "SHOULD", "MAY"]
Texts: TypeAlias = list[str] | None
CasesFolder = Annotated[Path | None, typer.Option("--cases", help="A folder of cases, instead of the built-in ones.")]
Dialect = Annotated[DialectName, typer.Option(help="The dialect that the endpoint is to speak.")]


@app.command(
    epilog="Example: dragoman contract run --base-url http://127.0.0.1:8080/v1 --model fast --html report.html"
)
def run(
    base_url: Annotated[str, typer.Option(help="What the dialect's own clients take as their base address.")],
    model: Annotated[str, typer.Option(help="The model to ask for.")],
    dialect: Dialect = "openai",
    profile: Annotated[str, typer.Option(help="Judge by this profile of the dialect's schemas.")] = "",
    api_key: Annotated[
        str | None, typer.Option(envvar="DRAGOMAN_CONTRACT_KEY", help="Better set in the environment.")
    ] = None,
    header: Annotated[Texts, typer.Option(help='Another header, "name: value". May be repeated.')] = None,
    only: Annotated[Texts, typer.Option(help="Run cases whose id fits, as chat/stream/*. May be repeated.")] = None,
    protocol: Annotated[Texts, typer.Option(help="Run this protocol only. May be repeated.")] = None,
    level: Annotated[LevelName, typer.Option(help="MUST leaves out what only SHOULD or MAY be.")] = "MAY",
    without: Annotated[Texts, typer.Option(help="A capability that the model has not. May be repeated.")] = None,
    upstream: Annotated[
        DialectName | None, typer.Option(help="Drive a proxy: run a fake provider of this dialect behind it.")
    ] = None,
    upstream_port: Annotated[int, typer.Option(min=0, max=65535, help="The fake's port on 127.0.0.1.")] = 9100,
    concurrency: Annotated[int, typer.Option(min=1, max=64, help="Cases at a time.")] = 1,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for one reply.")] = 60.0,
    budget_tokens: Annotated[
        int | None, typer.Option(min=0, help="Skip what could cost more than this in all.")
    ] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Do not check TLS certificates.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the cases and what they may cost; send nothing.")
    ] = False,
    record: Annotated[Path | None, typer.Option(help="Keep every reply in this folder.")] = None,
    replay: Annotated[Path | None, typer.Option(help="Take the replies from this folder; send nothing.")] = None,
    expect: Annotated[Path | None, typer.Option(help="A file of known gaps, `case id: reason`.")] = None,
    diff: Annotated[Path | None, typer.Option(help="Fail only for what passed in this older JSON report.")] = None,
    name: Annotated[str | None, typer.Option(help="What to call the target in reports.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the report as JSON.")] = None,
    junit: Annotated[Path | None, typer.Option(help="Write the report as JUnit XML.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the report as Markdown; - is standard output.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write the report as one HTML file.")] = None,
    badge: Annotated[Path | None, typer.Option(help="Write a badge as JSON for a shields endpoint.")] = None,
    cases: CasesFolder = None,
) -> None:
    """Run the cases of a dialect against an endpoint, and say what it gets wrong."""
    from .session import Outputs, Plan, Unusable
    from .target import Target

    target = Target(
        base_url,
        dialect,
        model,
        key=api_key,
        profile=profile,
        headers=_headers(header or []),
        without=frozenset(without or ()),
        protocols=frozenset(protocol or ()),
        upstream=upstream,
    )
    plan = Plan(
        target,
        _chosen(cases, only or [], level),
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
    dialect: Annotated[DialectName | None, typer.Option(help="Only cases of this dialect.")] = None,
    only: Annotated[Texts, typer.Option(help="Only cases whose id fits, as chat/stream/*. May be repeated.")] = None,
    cases: CasesFolder = None,
) -> None:
    """List the cases: id, level, dialects, title."""
    dialects: dict[str, list[str]] = {}
    found = {}
    for case in _chosen(cases, only or [], "MAY"):
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
    dialect: Annotated[DialectName | None, typer.Option(help="Only the fake of this dialect.")] = None,
    first: Annotated[
        bool, typer.Option("--first", help="Look for one case that notices a fault, not for all.")
    ] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the table as JSON.")] = None,
    cases: CasesFolder = None,
) -> None:
    """Show which cases notice each way in which the fakes can misbehave. Status 1 where a fault goes unnoticed."""
    import asyncio

    from .faults import DIALECTS, table
    from .reports.faults import as_json, as_markdown

    rows = asyncio.run(table([dialect] if dialect else DIALECTS, _chosen(cases, [], "MAY"), first=first))
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
        bool, typer.Option("--brief", help="Keep the wire logs of failures alone in the HTML file.")
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


def _chosen(folder: Path | None, only: list[str], level: LevelName) -> list[Case]:
    from .corpus import BUILT_IN, CaseErrors, load_cases
    from .session import chosen

    try:
        return chosen(load_cases(folder or BUILT_IN), only, level)
    except CaseErrors as errors:
        _fail("\n".join(errors.problems))


def _headers(texts: list[str]) -> dict[str, str]:
    pairs = [text.partition(":") for text in texts]
    for name, colon, _ in pairs:
        if not colon:
            _fail(f'--header takes "name: value", not {name!r}')
    return {name.strip(): value.strip() for name, _, value in pairs}


def _show(plan: Plan) -> None:
    from .runner import skipped

    total = asked = 0
    for case in plan.cases:
        reason = skipped(case, plan.target)
        if case.dialect == plan.target.dialect and not reason:
            asked += 1
            total += case.max_tokens
            print(f"{case.id:<52} {case.level:<6} {len(case.steps)} requests, at most {case.max_tokens} tokens")
    print(f"\n{asked} cases, at most {total} tokens written by the model (twice that where it does not cooperate)")


def _fail(text: str) -> NoReturn:
    print(f"error: {text}", file=sys.stderr)
    raise typer.Exit(2)
