"""The command `chaos`: a TCP proxy that injects faults."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import exit_with_error

__all__ = ["chaos"]


def chaos(
    upstream: Annotated[
        str | None, typer.Argument(help="Add a proxy to this address, host:port.", show_default=False)
    ] = None,
    listen: Annotated[str, typer.Option(help="Where that proxy listens; port 0 takes a free one.")] = "127.0.0.1:0",
    toxic: Annotated[
        list[str] | None,
        typer.Option(metavar="TOXIC", help="A toxic of that proxy, as 'latency(latency=300, jitter=100)'. Repeatable."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--config", help="Add the proxies of this JSON file, a list as in POST /populate.")
    ] = None,
    host: Annotated[str, typer.Option(help="The address of the HTTP API.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port of the HTTP API; 0 takes a free one.")] = 8474,
    seed: Annotated[int, typer.Option(help="The same seed makes the same choices of chance.")] = 0,
    show_list: Annotated[bool, typer.Option("--list", allow_from_autoenv=False, help="List the toxics.")] = False,
) -> None:
    """Run a TCP proxy that injects faults. Toxiproxy's HTTP API controls it."""
    from dragoman.contract.chaos import ChaosError, list_toxics
    from dragoman.contract.chaos.command import describe_chaos, start_chaos
    from dragoman.contract.fakes import run_until_signal

    if show_list:
        print(list_toxics())
        return
    try:
        run_until_signal(start_chaos(upstream, listen, toxic or [], file, host, port, seed), describe_chaos)
    except ChaosError as error:
        exit_with_error(str(error))
    except OSError as error:
        exit_with_error(f"{error.filename or 'cannot listen'}: {error.strerror}")
