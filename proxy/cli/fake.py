"""The command `fake`: a fake provider on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.adapters.registry import NAMES

from .completion import complete_behaviour, complete_dialect
from .options import exit_with_error
from .profile_option import Profile

__all__ = ["fake"]


def fake(
    dialect: Annotated[
        str | None, typer.Argument(help=f"One of: {', '.join(NAMES)}.", autocompletion=complete_dialect)
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 0,
    behaviour: Annotated[
        str, typer.Option(help="What it does unless a request says otherwise.", autocompletion=complete_behaviour)
    ] = "as-asked",
    api_key: Annotated[str | None, typer.Option(help="The key to require. Default: none.")] = None,
    profile: Annotated[Profile, typer.Option(help="The profile of the dialect.")] = "actual",
    show_list: Annotated[bool, typer.Option("--list", allow_from_autoenv=False, help="List the behaviours.")] = False,
    replay: Annotated[Path | None, typer.Option(help="Replay the recordings of this folder instead.")] = None,
) -> None:
    """Run a fake provider, to test clients and proxies."""
    from dragoman.contract import fakes

    if show_list:
        print(fakes.list_behaviours())
        return
    try:
        if replay is not None:
            fakes.run_until_signal(fakes.ReplayProvider(replay, port=port), fakes.ReplayProvider.describe)
        elif dialect is not None:
            provider = fakes.FakeProvider(dialect, port=port, behaviour=behaviour, api_key=api_key, profile=profile)
            fakes.run_until_signal(provider, fakes.describe_fake)
        else:
            exit_with_error(f"name a dialect ({', '.join(NAMES)}), or a folder of recordings (--replay FOLDER)")
    except ValueError as error:
        exit_with_error(str(error))
    except OSError as error:
        exit_with_error(f"cannot listen on port {port}: {error.strerror}")
