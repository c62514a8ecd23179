"""The options that `learn` and `drift` share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

__all__ = ["AskOptions"]


@dataclass(frozen=True)
class AskOptions:
    """How an endpoint is asked, and what that may cost."""

    budget: Annotated[
        int | None, Option(min=0, help="The most tokens of all requests together, read and written; an estimate.")
    ] = None
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask whether to begin.")] = False
    dry_run: Annotated[bool, Option("--dry-run", help="Show the cost, and send nothing.")] = False
    delay: Annotated[float, Option(min=0.0, help="The least time between two requests, in seconds.")] = 0.0
    timeout: Annotated[float, Option(min=0.1, help="The timeout of one reply, in seconds.")] = 60.0
    max_wait: Annotated[
        float, Option(min=0.0, help="How many seconds one request waits for a server that is busy (429).")
    ] = 60.0
    json_file: Annotated[
        Path | None, Option("--json", help="Write what was found as JSON, with its evidence; - is standard output.")
    ] = None
    force: Annotated[bool, Option("--force", help="Overwrite files.")] = False
    insecure: Annotated[
        bool, Option("--insecure", help="Do not check TLS certificates; allow a key over plain http.")
    ] = False
