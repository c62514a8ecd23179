"""The command `check`: it explains what is wrong with a configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import (
    DEFAULT_FILE,
    EnvFile,
    Format,
    Insecure,
    exit_on_config_errors,
    format_count,
    print_problems,
    read_environment,
)

__all__ = ["check"]


def check(
    file: Annotated[Path, typer.Argument(envvar="DRAGOMAN_CONFIG", help="The file to check.")] = DEFAULT_FILE,
    form: Annotated[
        Format, typer.Option("--format", envvar="DRAGOMAN_FORMAT", help="text, json, or GitHub's annotations.")
    ] = "text",
    insecure: Insecure = False,
    env_file: EnvFile = None,
) -> None:
    """List everything that is wrong with a configuration file. Warnings alone do not fail the check."""
    from dragoman.proxy.config.load import check as check_file

    with exit_on_config_errors(form):
        checked = check_file(file, read_environment(env_file, file), insecure=insecure)
    print_problems(checked.warnings, form)
    if form == "text":
        providers = format_count(len(checked.config.providers), "provider")
        print(f"{file}: {providers}, {format_count(len(checked.config.models), 'model')}, no errors")
