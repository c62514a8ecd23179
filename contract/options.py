"""The options of `dragoman contract`, each with its help."""

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
BaseUrl = Annotated[str, Option(help="What the dialect's own clients take as their base address.")]
Model = Annotated[str, Option(help="The model to ask for.")]
Dialect = Annotated[DialectName, Option(help="The dialect that the endpoint is to speak.")]
OneDialect = Annotated[DialectName | None, Option("--dialect", help="Only this dialect.")]
Profile = Annotated[str, Option(help="Judge by this profile of the dialect's schemas.")]
ApiKey = Annotated[str | None, Option(envvar="DRAGOMAN_CONTRACT_KEY", help="Better set in the environment.")]
Header = Annotated[Texts, Option(help='Another header, "name: value". May be repeated.')]
Insecure = Annotated[bool, Option("--insecure", help="Do not check TLS certificates.")]

# The cases.
Cases = Annotated[File, Option("--cases", help="A folder of cases, instead of the built-in ones.")]
Only = Annotated[Texts, Option(help="Only cases whose id fits, as chat/stream/*. May be repeated.")]
Protocol = Annotated[Texts, Option(help="Only this protocol. May be repeated.")]
Level = Annotated[LevelName, Option(help="MUST leaves out what only SHOULD or MAY be.")]
Without = Annotated[Texts, Option(help="A capability that the model has not. May be repeated.")]
Upstream = Annotated[DialectName | None, Option(help="Drive a proxy: run a fake provider of this dialect behind it.")]
UpstreamPort = Annotated[int, Option(min=0, max=65535, help="The fake's port on 127.0.0.1.")]

# The run.
Concurrency = Annotated[int, Option(min=1, max=64, help="Cases at a time.")]
Timeout = Annotated[float, Option(min=0.1, help="Seconds for one reply.")]
BudgetTokens = Annotated[int | None, Option(min=0, help="Skip what could cost more than this in all.")]
DryRun = Annotated[bool, Option("--dry-run", help="Show the cases and what they may cost; send nothing.")]
Record = Annotated[File, Option(help="Keep every reply in this folder.")]
Replay = Annotated[File, Option(help="Take the replies from this folder; send nothing.")]

# What becomes of it.
Expect = Annotated[File, Option(help="A file of known gaps, `case id: reason`.")]
Diff = Annotated[File, Option(help="Fail only for what passed in this older JSON report.")]
Name = Annotated[str | None, Option(help="What to call the target in reports.")]
JsonFile = Annotated[File, Option("--json", help="Write the report as JSON.")]
Junit = Annotated[File, Option(help="Write the report as JUnit XML.")]
Markdown = Annotated[File, Option(help="Write the report as Markdown; - is standard output.")]
Html = Annotated[File, Option(help="Write the report as one HTML file.")]
Badge = Annotated[File, Option(help="Write a badge as JSON for a shields endpoint.")]
