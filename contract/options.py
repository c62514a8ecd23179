"""The command-line options of `dragoman contract`, with their help texts. The groups are parameters of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from typer import Option

from .dialects import DEFAULT_DIALECT, DIALECTS

__all__ = [
    "CaseOptions",
    "Cases",
    "DialectName",
    "EndpointOptions",
    "JsonFile",
    "LevelName",
    "OneDialect",
    "Only",
    "ReportOptions",
    "RunOptions",
]

if TYPE_CHECKING:
    DialectName: TypeAlias = str
else:
    DialectName = Literal[DIALECTS]
LevelName: TypeAlias = Literal["MUST", "SHOULD", "MAY"]
Texts: TypeAlias = list[str] | None
File: TypeAlias = Path | None

OneDialect = Annotated[DialectName | None, Option("--dialect", help="Only this dialect.")]
Cases = Annotated[File, Option("--cases", help="A folder of cases, instead of the built-in ones.")]
Only = Annotated[
    Texts, Option(metavar="PATTERN", help="Run only cases whose id matches, as chat/stream/*. Repeatable.")
]
JsonFile = Annotated[File, Option("--json", help="Write the report as JSON.")]


@dataclass(frozen=True)
class EndpointOptions:
    """The endpoint under test."""

    base_url: Annotated[str, Option(help="The base URL that the dialect's own clients take.")]
    model: Annotated[str, Option(help="The model to request.")]
    dialect: Annotated[DialectName, Option(help="The dialect that the endpoint should speak.")] = DEFAULT_DIALECT
    profile: Annotated[str, Option(help="Validate against this profile of the dialect's schemas.")] = ""
    api_key: Annotated[
        str | None, Option(envvar="DRAGOMAN_CONTRACT_KEY", help="The API key; better set in the environment.")
    ] = None
    header: Annotated[Texts, Option(metavar="NAME:VALUE", help='An additional header, "name: value". Repeatable.')] = (
        None
    )
    insecure: Annotated[bool, Option("--insecure", help="Do not check TLS certificates.")] = False


@dataclass(frozen=True)
class CaseOptions:
    """Which cases run."""

    cases: Cases = None
    only: Only = None
    exclude: Annotated[
        Texts, Option(metavar="PATTERN", help="Leave out cases whose id matches, as chat/body/*. Repeatable.")
    ] = None
    protocol: Annotated[Texts, Option(metavar="PROTOCOL", help="Run only cases of this protocol. Repeatable.")] = None
    level: Annotated[LevelName, Option(help="MUST leaves out cases of the levels SHOULD and MAY.")] = "MAY"
    without: Annotated[Texts, Option(metavar="CAPABILITY", help="A capability that the model lacks. Repeatable.")] = (
        None
    )
    upstream: Annotated[
        DialectName | None, Option(help="Drive a proxy: run a fake provider of this dialect behind it.")
    ] = None
    upstream_port: Annotated[int, Option(min=0, max=65535, help="The fake's port on 127.0.0.1.")] = 9100


@dataclass(frozen=True)
class RunOptions:
    """How the cases run."""

    concurrency: Annotated[int, Option(min=1, max=64, help="How many cases run at a time.")] = 1
    delay: Annotated[float, Option(min=0.0, help="The least time between two requests, in seconds.")] = 0.0
    timeout: Annotated[float, Option(min=0.1, help="The timeout of one reply, in seconds.")] = 60.0
    max_wait: Annotated[
        float, Option(min=0.0, help="How many seconds one request waits for a server that is busy (429).")
    ] = 60.0
    budget_tokens: Annotated[int | None, Option(min=0, help="Skip cases that could exceed this total.")] = None
    dry_run: Annotated[bool, Option("--dry-run", help="Show the cases and their maximum costs; send no request.")] = (
        False
    )
    record: Annotated[File, Option(help="Record every reply in this folder.")] = None
    replay: Annotated[File, Option(help="Replay the replies of this folder; send no request.")] = None


@dataclass(frozen=True)
class ReportOptions:
    """What the run is compared with, and the reports to write."""

    expect: Annotated[File, Option(help="A file of accepted failures, `case id: reason`.")] = None
    diff: Annotated[File, Option(help="Fail only for cases that passed in this older JSON report.")] = None
    name: Annotated[str | None, Option(help="The name of the target in reports.")] = None
    json_file: JsonFile = None
    junit: Annotated[File, Option(help="Write the report as JUnit XML.")] = None
    markdown: Annotated[File, Option(help="Write the report as Markdown; - is standard output.")] = None
    html: Annotated[File, Option(help="Write the report as one HTML file.")] = None
    badge: Annotated[File, Option(help="Write a badge as JSON for a shields endpoint.")] = None
