"""The command `tail` and its options."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Literal

import typer

from dragoman.proxy.cli.options import exit_with_error

__all__ = ["tail"]

_Names = list[str] | None


def tail(
    source: Annotated[
        str,
        typer.Argument(
            metavar="[FILE|-|URL]",
            help="A JSON log, - for standard input, or the address of a running proxy's admin listener or page.",
        ),
    ] = "-",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is added to the file.")] = False,
    model: Annotated[_Names, typer.Option(help="Only exchanges of this model; * is a wildcard. Repeatable.")] = None,
    status: Annotated[_Names, typer.Option(help="Only this status, as 429 or 5xx. Repeatable.")] = None,
    outcome: Annotated[
        Literal["ok", "fault", "client_left"] | None, typer.Option(help="Only exchanges that ended so.")
    ] = None,
    key: Annotated[_Names, typer.Option(help="Only exchanges with the key of this name. Repeatable.")] = None,
    losses: Annotated[bool, typer.Option("--losses", help="Only exchanges in which something was lost.")] = False,
    admin_key: Annotated[
        str | None, typer.Option(envvar="DRAGOMAN_ADMIN_KEY", help="server.admin_key of the running proxy.")
    ] = None,
) -> None:
    """Show the log in short lines: what dragoman writes to terminals."""
    from .filters import Filter
    from .sources import SourceError, follow_events, follow_file, read_lines
    from .view import show

    try:
        chosen = Filter(model or (), status or (), outcome, key or (), losses)
    except ValueError as error:
        exit_with_error(str(error))
    try:
        if source.startswith(("http://", "https://")):
            lines = follow_events(source, admin_key)
        elif source == "-":
            lines = read_lines(sys.stdin.buffer)
        else:
            lines = follow_file(source, follow=follow)
        show(lines, chosen)
    except SourceError as error:
        exit_with_error(str(error))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
