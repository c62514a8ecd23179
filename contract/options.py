"""The command-line options of `dragoman contract`, with their help texts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from typer import Option

from .dialects import DIALECTS

__all__ = [
    "ApiKey",
    "Badge",
    "BaseUrl",
    "BudgetTokens",
    "Cases",
    "Concurrency",
    "Dialect",
    "DialectName",
    "Diff",
    "DryRun",
    "Expect",
    "Header",
    "Html",
    "Insecure",
    "JsonFile",
    "Junit",
    "Level",
    "LevelName",
    "Markdown",
    "Model",
    "Name",
    "OneDialect",
    "Only",
    "Profile",
    "Protocol",
    "Record",
    "Replay",
    "Timeout",
    "Upstream",
    "UpstreamPort",
    "Without",
]

if TYPE_CHECKING:
    DialectName: TypeAlias = str
else:
    DialectName = Literal[DIALECTS]
LevelName: TypeAlias = Literal["MUST", "SHOULD", "MAY"]
Texts: TypeAlias = list[str] | None
File: TypeAlias = Path | None

# The endpoint.
BaseUrl = Annotated[str, Option(help="The base URL that the dialect's own clients take.")]
Model = Annotated[str, Option(help="The model to request.")]
Dialect = Annotated[DialectName, Option(help="The dialect that the endpoint should speak.")]
OneDialect = Annotated[DialectName | None, Option("--dialect", help="Only this dialect.")]
Profile = Annotated[str, Option(help="Validate against this profile of the dialect's schemas.")]
ApiKey = Annotated[
    str | None, Option(envvar="DRAGOMAN_CONTRACT_KEY", help="The API key; better set in the environment.")
]
Header = Annotated[Texts, Option(help='An additional header, "name: value". Repeatable.')]
Insecure = Annotated[bool, Option("--insecure", help="Do not check TLS certificates.")]

# The cases.
Cases = Annotated[File, Option("--cases", help="A folder of cases, instead of the built-in ones.")]
Only = Annotated[Texts, Option(help="Run only cases whose id matches, as chat/stream/*. Repeatable.")]
Protocol = Annotated[Texts, Option(help="Run only cases of this protocol. Repeatable.")]
Level = Annotated[LevelName, Option(help="MUST leaves out cases of the levels SHOULD and MAY.")]
Without = Annotated[Texts, Option(help="A capability that the model lacks. Repeatable.")]
Upstream = Annotated[DialectName | None, Option(help="Drive a proxy: run a fake provider of this dialect behind it.")]
UpstreamPort = Annotated[int, Option(min=0, max=65535, help="The fake's port on 127.0.0.1.")]

# The run.
Concurrency = Annotated[int, Option(min=1, max=64, help="How many cases run at a time.")]
Timeout = Annotated[float, Option(min=0.1, help="The timeout of one reply, in seconds.")]
BudgetTokens = Annotated[int | None, Option(min=0, help="Skip cases that could exceed this total.")]
DryRun = Annotated[bool, Option("--dry-run", help="Show the cases and their maximum costs; send no request.")]
Record = Annotated[File, Option(help="Record every reply in this folder.")]
Replay = Annotated[File, Option(help="Replay the replies of this folder; send no request.")]

# The reports.
Expect = Annotated[File, Option(help="A file of known gaps, `case id: reason`.")]
Diff = Annotated[File, Option(help="Fail only for cases that passed in this older JSON report.")]
Name = Annotated[str | None, Option(help="The name of the target in reports.")]
JsonFile = Annotated[File, Option("--json", help="Write the report as JSON.")]
Junit = Annotated[File, Option(help="Write the report as JUnit XML.")]
Markdown = Annotated[File, Option(help="Write the report as Markdown; - is standard output.")]
Html = Annotated[File, Option(help="Write the report as one HTML file.")]
Badge = Annotated[File, Option(help="Write a badge as JSON for a shields endpoint.")]
