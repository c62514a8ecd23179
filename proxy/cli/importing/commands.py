"""`dragoman import`: configurations of other proxies."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dragoman.proxy.cli.options import count, fail, problems_shown, report

__all__ = ["app"]

app = typer.Typer(name="import", help="Turn a configuration of another proxy into ours.", no_args_is_help=True)


@app.callback()
def _of_import() -> None:
    """Turn a configuration of another proxy into ours."""


@app.command(epilog="Example: dragoman import litellm config.yaml --output dragoman.yaml")
def litellm(
    file: Annotated[Path, typer.Argument(help="The configuration of the LiteLLM proxy.")],
    output: Annotated[Path | None, typer.Option(help="The file to write. Default: standard output.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Turn a LiteLLM configuration into ours, and list what could not be carried over. That alone is no failure."""
    from .litellm import imported

    with problems_shown():
        text, left = imported(file)
    report(left)
    if output is None or str(output) == "-":
        print(text, end="")
        return
    try:
        with output.open("w" if force else "x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        fail(f"{output} exists; --force overwrites it")
    except OSError as error:
        fail(f"cannot write {output}: {error.strerror}")
    print(
        f"{output} is written, {count(len(left), 'thing')} not carried over; now: dragoman check {output}",
        file=sys.stderr,
    )
