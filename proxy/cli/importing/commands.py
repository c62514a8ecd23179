"""The commands `import ...`: one for each proxy whose configuration dragoman can convert."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dragoman.proxy.cli.options import exit_on_config_errors, format_count, print_problems, write_new_file

__all__ = ["app"]

app = typer.Typer(name="import", help="Convert the configuration of another proxy.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Convert the configuration of another proxy."""


@app.command(epilog="Example: dragoman import litellm config.yaml --output dragoman.yaml")
def litellm(
    file: Annotated[Path, typer.Argument(help="The configuration of the LiteLLM proxy.")],
    output: Annotated[Path | None, typer.Option(help="The file to write. Default: standard output.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Convert a LiteLLM configuration, and list the settings that could not be converted. They do not
    fail the command."""
    from .litellm import import_config

    with exit_on_config_errors():
        text, warnings = import_config(file)
    print_problems(warnings)
    if output is None or str(output) == "-":
        print(text, end="")
        return
    write_new_file(output, text, force)
    left_out = format_count(len(warnings), "warning")
    print(f"wrote {output}, with {left_out}; now run: dragoman check {output}", file=sys.stderr)
