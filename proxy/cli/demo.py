"""The command `demo`: fake providers of every dialect, the proxy before them, and its page, in one process."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import exit_with_error

__all__ = ["demo"]


def demo(
    port: Annotated[
        int | None,
        typer.Option(
            envvar="DRAGOMAN_PORT",
            min=0,
            max=65535,
            help="The proxy's port; 0 takes a free one. Default: 8080, or a free one.",
        ),
    ] = None,
) -> None:
    """Run the proxy with a fake provider of every dialect. It needs no account, no key and no network. Its page shows
    what each side sent. Ctrl-C ends everything."""
    from dragoman.contract.fakes import run_until_signal
    from dragoman.proxy.server.lifecycle import StartError

    from .demo_process import Demo, describe_demo

    try:
        run_until_signal(Demo(port), describe_demo)
    except StartError as error:
        exit_with_error(str(error))
