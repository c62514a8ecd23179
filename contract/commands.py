"""`dragoman contract ...`. Exit status: 0 success, 1 failures, 2 wrong usage, 3 the endpoint cannot be reached."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from . import options
from .option_groups import expand_groups

if TYPE_CHECKING:
    from .model import Case
    from .session import Session
    from .target import Target

__all__ = ["app"]

app = typer.Typer(
    name="contract",
    help="Test any endpoint or proxy for conformance with its dialect.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command(
    epilog="Example: dragoman contract run --base-url http://127.0.0.1:8080/v1 --model fast --html report.html"
)
@expand_groups
def run(
    endpoint: options.EndpointOptions,
    selection: options.CaseOptions,
    run: options.RunOptions,
    reports: options.ReportOptions,
) -> None:
    """Run the cases of a dialect against an endpoint, and report its failures."""
    from .session import ReportFiles, SessionError

    session = _build_session(endpoint, selection, run, reports.name)
    if run.dry_run:
        _print_forecast(session)
        return
    names = ("junit", "markdown", "html", "badge", "expect", "diff")
    try:
        status = session.run(ReportFiles(reports.json_file, **{name: getattr(reports, name) for name in names}))
    except SessionError as error:
        _fail(str(error))
    raise typer.Exit(status)


def _build_session(
    endpoint: options.EndpointOptions, selection: options.CaseOptions, run: options.RunOptions, name: str | None
) -> Session:
    from .session import Session

    loaded = _load_cases(selection.cases)
    return Session(
        _build_target(endpoint, selection, loaded),
        _select_cases(loaded, selection.only, selection.level, endpoint.dialect, selection.exclude),
        name=name or endpoint.base_url,
        upstream_port=selection.upstream_port,
        concurrency=run.concurrency,
        timeout=run.timeout,
        delay=run.delay,
        max_wait=run.max_wait,
        budget=run.budget_tokens,
        verify_tls=not endpoint.insecure,
        record=run.record,
        replay=run.replay,
    )


def _build_target(endpoint: options.EndpointOptions, selection: options.CaseOptions, cases: Sequence[Case]) -> Target:
    from .target import Target

    needs = {"max_tokens", *(need for case in cases for need in case.needs)}
    return Target(
        endpoint.base_url,
        endpoint.dialect,
        endpoint.model,
        key=endpoint.api_key,
        profile=endpoint.profile,
        headers=_parse_headers(endpoint.header or []),
        without=_parse_words("--without", selection.without, needs),
        protocols=_parse_words("--protocol", selection.protocol, {case.protocol for case in cases}),
        upstream=selection.upstream,
    )


@app.command(epilog="Example: dragoman contract expect report.json --reason 'known, to be fixed' > gaps.yaml")
def expect(
    file: Annotated[Path, typer.Argument(help="A JSON report.")],
    reason: Annotated[str, typer.Option(help="Why these cases may fail; replace it case by case.")],
) -> None:
    """Write the first file of accepted failures: every case that fails in a report, with its cause and a reason."""
    from .known_gaps import render_known_gaps
    from .reports.json_report import InvalidReportError, read_report

    if not reason.strip():
        _fail("--reason must say why these cases may fail")
    try:
        print(render_known_gaps(read_report(file), reason), end="")
    except InvalidReportError as error:
        _fail(str(error))


@app.command(name="list", epilog="Example: dragoman contract list --dialect mindie")
def list_(
    dialect: options.OneDialect = None,
    only: options.Only = None,
    cases: options.Cases = None,
) -> None:
    """List the cases: id, level, dialects, title."""
    dialects: dict[str, list[str]] = {}
    found = {}
    for case in _select_cases(_load_cases(cases), only, "MAY", dialect):
        dialects.setdefault(case.id, []).append(case.dialect)
        found[case.id] = case
    for id_, case in found.items():
        if dialect is None or dialect in dialects[id_]:
            print(f"{id_:<52} {case.level:<6} {','.join(dialects[id_]):<32} {case.title}")


@app.command()
def checks() -> None:
    """List the checks that cases may use."""
    from .checks import REPLY_CHECKS, UPSTREAM_CHECKS

    for name, rule in REPLY_CHECKS.items():
        print(f"{name:<22} {rule.description}")
    print("\nchecks of the requests that a proxy sends upstream:")
    for name, rule in UPSTREAM_CHECKS.items():
        print(f"{name:<22} {rule.description}")


@app.command(epilog="Example: dragoman contract faults --dialect mindie")
def faults(
    dialect: options.OneDialect = None,
    first: Annotated[bool, typer.Option("--first", help="Stop at the first case that detects a fault.")] = False,
    json_file: options.JsonFile = None,
    cases: options.Cases = None,
) -> None:
    """Show which cases detect each fault of the fake providers. Exit status 1 if no case detects a fault."""
    import asyncio

    from .faults import build_fault_table
    from .model import DIALECTS
    from .reports.faults import render_fault_json, render_fault_markdown

    _check_outputs({"json": json_file})
    rows = asyncio.run(build_fault_table([dialect] if dialect else DIALECTS, _load_cases(cases), first=first))
    if json_file is not None:
        json_file.write_text(render_fault_json(rows), "utf-8")
    print(render_fault_markdown(rows), end="")
    raise typer.Exit(1 if any(row.is_missed for row in rows) else 0)


@app.command(epilog="Example: dragoman contract report a.json b.json --html matrix.html")
def report(
    files: Annotated[list[Path], typer.Argument(help="JSON reports, one for each target.")],
    html: Annotated[Path | None, typer.Option(help="Write the matrix as one HTML file.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the matrix as Markdown.")] = None,
    brief: Annotated[
        bool,
        typer.Option("--brief", help="Keep only the wire logs of failures in the HTML file, and cut long texts."),
    ] = False,
) -> None:
    """Combine several reports into one matrix, cases x targets."""
    from .reports.json_report import InvalidReportError, read_report, shorten_report
    from .reports.markdown import render_matrix

    try:
        reports = [read_report(file) for file in files]
    except InvalidReportError as error:
        _fail(str(error))
    _check_outputs({"html": html, "markdown": markdown})
    if html is not None:
        from .reports.html import render_page

        html.write_text(render_page([shorten_report(one) for one in reports] if brief else reports), "utf-8")
    if markdown is not None:
        markdown.write_text(render_matrix(reports), "utf-8")
    if html is None and markdown is None:
        print(render_matrix(reports), end="")


def _load_cases(folder: Path | None) -> Sequence[Case]:
    from .case_files import BUILT_IN_CASES, CaseFileError, load_cases

    try:
        return load_cases(folder or BUILT_IN_CASES)
    except CaseFileError as error:
        _fail("\n".join(error.problems))


def _select_cases(
    cases: Sequence[Case],
    only: list[str] | None,
    level: options.LevelName,
    dialect: str | None,
    exclude: list[str] | None = None,
) -> Sequence[Case]:
    from .session import select_cases

    found = select_cases(cases, only or [], level, exclude or [])
    if not any(dialect in (None, case.dialect) for case in found):
        filters = " ".join(f"--only {pattern}" for pattern in only or ()) or f"--level {level}"
        _fail(f"no case of {dialect or 'any dialect'} matches {filters}; dragoman contract list shows all")
    return found


def _parse_words(option: str, given: list[str] | None, words: set[str]) -> frozenset[str]:
    """Return the words that an option names. Each of them must be one that a case uses."""
    for word in given or ():
        if word not in words:
            likely = get_close_matches(word, words, 1) or sorted(words)
            _fail(f"{option} {word}: no case uses it; did you mean {', '.join(likely)}?")
    return frozenset(given or ())


def _parse_headers(texts: list[str]) -> dict[str, str]:
    pairs = [text.partition(":") for text in texts]
    for name, colon, _ in pairs:
        if not colon:
            _fail(f'--header takes "name: value", not {name!r}')
    return {name.strip(): value.strip() for name, _, value in pairs}


def _check_outputs(files: dict[str, Path | None]) -> None:
    from .reports.output import OutputError, check_outputs

    try:
        check_outputs({name: file for name, file in files.items() if file is not None})
    except OutputError as error:
        _fail(str(error))


def _print_forecast(session: Session) -> None:
    forecast = list(session.forecast_costs())
    for cost in forecast:
        print(f"{cost.case.id:<52} {cost.case.level:<6} {cost.requests} requests, at most {cost.tokens} tokens")
    answered = [cost for cost in forecast if cost.tokens and not cost.case.is_refusal]
    tokens = sum(cost.tokens for cost in answered)
    print(
        f"\n{len(forecast)} cases, {sum(cost.requests for cost in forecast)} requests; the model answers at most"
        f" {sum(cost.requests for cost in answered)} of them, with at most {tokens} tokens.\nAn endpoint that answers"
        f" what it must refuse writes at most {sum(cost.tokens for cost in forecast) - tokens} tokens more. A case is"
        " retried once if the model does not cooperate."
    )


def _fail(text: str) -> NoReturn:
    print(f"error: {text}", file=sys.stderr)
    raise typer.Exit(2)
